//! A configuration without a file: from the arguments of the command line alone.

use std::path::Path;
use std::sync::Arc;

use serde_json::json;

use super::Config;
use crate::yaml::{Report, Source};

/// What the command line says in place of a file. Everything else has its default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arguments {
    /// `--listen`.
    pub listen: Option<String>,
    /// `--admin`.
    pub admin: Option<String>,
    /// `--backend`: the URL of an MCP server.
    pub backend: String,
}

impl Config {
    /// The configuration that the arguments stand for: one MCP backend, named by its host if that is a name.
    ///
    /// # Errors
    /// Every argument that does not fit, shown in the file that the arguments stand for.
    pub fn from_args(arguments: &Arguments) -> Result<Config, Report> {
        let mut lines = Vec::new();
        if let Some(listen) = &arguments.listen {
            lines.push(format!("listen: {}", json!(listen)));
        }
        if let Some(admin) = &arguments.admin {
            lines.push(format!("admin: {{listen: {}}}", json!(admin)));
        }
        lines.push("backends:".to_owned());
        lines.push(format!("  - name: {}", json!(backend_name(&arguments.backend))));
        lines.push("    kind: mcp".to_owned());
        lines.push(format!("    url: {}", json!(arguments.backend)));
        let source = Arc::new(Source::new("<command line>", lines.join("\n") + "\n"));
        Config::read(&source, Path::new(""))
    }
}

fn backend_name(url: &str) -> String {
    let host = url.parse::<http::Uri>().ok().and_then(|uri| uri.host().map(str::to_ascii_lowercase));
    let is_name = |host: &String| {
        let known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
        let number = host.parse::<std::net::IpAddr>().is_ok();
        !number && host != "localhost" && (1..=64).contains(&host.len()) && host.bytes().all(known)
    };
    host.filter(is_name).unwrap_or_else(|| "backend".to_owned())
}
