//! How secrets give themselves away. One table for all who mask them, however strictly.

use std::sync::LazyLock;

/// Parts of names whose values are secrets; between their words may stand `_`, `-` or nothing, and case does not matter.
pub const NAMES: [&str; 14] = [
    "password",
    "passwd",
    "pwd",
    "secret",
    "api_key",
    "access_key",
    "private_key",
    "access_token",
    "refresh_token",
    "id_token",
    "authorization",
    "cookie",
    "session_id",
    "credential",
];

/// How keys and tokens of well-known services begin.
pub const PREFIXES: [&str; 19] = [
    "eyJ",
    "sk-",
    "sk_",
    "pk_",
    "rk_",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "xoxa-",
    "xoxb-",
    "xoxp-",
    "xoxr-",
    "xoxs-",
    "AKIA",
    "AIza",
];

/// [`NAMES`] without anything between the words.
static BARE: LazyLock<[String; 14]> = LazyLock::new(|| NAMES.map(bare));

fn bare(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '-' | '_')).collect::<String>().to_ascii_lowercase()
}

/// Whether a value under this name is a secret, or may be one.
pub fn is_secret_name(name: &str) -> bool {
    let name = bare(name);
    name == "token" || name == "auth" || BARE.iter().any(|part| name.contains(part.as_str()))
}
