//! Where credentials of integrations stand (DESIGN 11): references alone, never the credentials themselves.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::sections::path;
use crate::yaml::{At, Fields};

/// Longest name of a variable or key, in bytes.
const NAME_MAX: usize = 256;
/// Longest text with references in it, in bytes.
const TEMPLATE_MAX: usize = 16 * 1024;

/// A place where a credential may stand.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Credential {
    /// An environment variable of this process, as it was at the start.
    Env(Arc<str>),
    /// A file, whole.
    File(PathBuf),
    /// A key of a file with lines `KEY=VALUE`.
    EnvFile(PathBuf, Arc<str>),
}

impl Credential {
    /// The file that it stands in; `None` for a variable.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Credential::Env(_) => None,
            Credential::File(path) | Credential::EnvFile(path, _) => Some(path),
        }
    }
}

impl fmt::Display for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Credential::Env(name) => write!(f, "env:{name}"),
            Credential::File(path) => write!(f, "file:{}", path.display()),
            Credential::EnvFile(path, key) => write!(f, "env_file:{}#{key}", path.display()),
        }
    }
}

/// A text with references to credentials, which are filled in when it is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// Its parts, in order.
    pub parts: Vec<Part>,
}

/// A part of a [`Template`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Itself.
    Text(Arc<str>),
    /// What stands at this place.
    Credential(Credential),
    /// The access token that the exchange before gave.
    Token,
}

impl Template {
    /// The places it refers to.
    pub fn credentials(&self) -> impl Iterator<Item = &Credential> {
        self.parts.iter().filter_map(|part| match part {
            Part::Credential(credential) => Some(credential),
            Part::Text(_) | Part::Token => None,
        })
    }

    /// Whether it needs the access token of an exchange.
    pub fn needs_token(&self) -> bool {
        self.parts.contains(&Part::Token)
    }

    /// The access token of an exchange as a bearer token.
    pub(super) fn bearer() -> Template {
        Template { parts: vec![Part::Text(Arc::from("Bearer ")), Part::Token] }
    }

    fn is_literal(&self) -> bool {
        self.parts.iter().all(|part| matches!(part, Part::Text(_)))
    }

    pub(super) fn parse(text: &str, directory: &Path) -> Result<Template, String> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            let (reference, behind) = after.split_once('}').ok_or("a `${` has no `}`")?;
            if !before.is_empty() {
                parts.push(Part::Text(Arc::from(before)));
            }
            parts.push(part(reference, directory)?);
            rest = behind;
        }
        if !rest.is_empty() || parts.is_empty() {
            parts.push(Part::Text(Arc::from(rest)));
        }
        Ok(Template { parts })
    }
}

fn part(reference: &str, directory: &Path) -> Result<Part, String> {
    const FORMS: &str =
        "a reference is `${env:NAME}`, `${file:PATH}`, `${env_file:PATH#KEY}` or `${oauth:access_token}`";
    let named = |name: &str| (1..=NAME_MAX).contains(&name.len()) && !name.contains(char::is_control);
    match reference.split_once(':') {
        Some(("env", name)) if named(name) => Ok(Part::Credential(Credential::Env(Arc::from(name)))),
        Some(("file", path)) if !path.is_empty() => Ok(Part::Credential(Credential::File(directory.join(path)))),
        Some(("env_file", both)) => match both.rsplit_once('#') {
            Some((path, key)) if !path.is_empty() && named(key) => {
                Ok(Part::Credential(Credential::EnvFile(directory.join(path), Arc::from(key))))
            }
            _ => Err(FORMS.to_owned()),
        },
        Some(("oauth", "access_token")) => Ok(Part::Token),
        _ => Err(FORMS.to_owned()),
    }
}

/// A text with references.
pub(super) fn template(at: At<'_>, directory: &Path) -> Option<Template> {
    let what = "a text, with `${env:NAME}` and the like for what is secret";
    at.parse(what, "", |text| {
        if text.len() > TEMPLATE_MAX {
            return Err(format!("it has {} bytes, at most {TEMPLATE_MAX} are read", text.len()));
        }
        Template::parse(text, directory)
    })
}

/// A text that is a secret: it must be a reference, so that the file and whatever shows it holds none.
pub(super) fn secret(at: At<'_>, directory: &Path) -> Option<Template> {
    let template = template(at, directory)?;
    if template.is_literal() {
        return at.fail_with(format!("{} must not stand in the file itself", at.name()), |problem| {
            problem.help("refer to it: `${env:NAME}` or `${file:PATH}`")
        });
    }
    Some(template)
}

/// One place: `{env: NAME}`, `{file: PATH}` or `{env_file: PATH, key: NAME}`.
pub(super) fn credential(at: At<'_>, directory: &Path) -> Option<Credential> {
    at.map(|f| one(f, directory))?
}

fn one(f: &Fields<'_>, directory: &Path) -> Option<Credential> {
    let env = f.opt("env", "An environment variable, as it was when toolvane started.", |at| at.line(NAME_MAX));
    let file = f.opt("file", "A file that is there and not empty; it is watched.", |at| path(at, directory));
    let env_file = f.opt("env_file", "A file with lines `KEY=VALUE`; it is watched.", |at| path(at, directory));
    let key = f.opt("key", "The key in `env_file`.", |at| at.line(NAME_MAX));
    let given = [f.has("env"), f.has("file"), f.has("env_file")].into_iter().filter(|given| *given).count();
    if given != 1 || f.has("env_file") != f.has("key") {
        return f
            .at()
            .fail_with("a credential has exactly one of `env`, `file`, and `env_file` with `key`", |problem| {
                problem.help("`{env: NAME}`, `{file: PATH}` or `{env_file: PATH, key: NAME}`")
            });
    }
    match (env, file, env_file.zip(key)) {
        (Some(name), ..) => Some(Credential::Env(name)),
        (_, Some(path), _) => Some(Credential::File(path)),
        (.., Some((path, key))) => Some(Credential::EnvFile(path, key)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Vec<Part>, String> {
        Template::parse(text, Path::new("/etc")).map(|template| template.parts)
    }

    #[test]
    fn references_stand_anywhere_in_a_text() {
        let text = |text: &str| Part::Text(Arc::from(text));
        assert_eq!(
            parse("Bearer ${env:T}, ${file:k}${file:/abs}!").unwrap(),
            [
                text("Bearer "),
                Part::Credential(Credential::Env("T".into())),
                text(", "),
                Part::Credential(Credential::File("/etc/k".into())),
                Part::Credential(Credential::File("/abs".into())),
                text("!"),
            ]
        );
        assert_eq!(parse("").unwrap(), [text("")]);
        assert_eq!(parse("$5 {x}").unwrap(), [text("$5 {x}")]);
        assert_eq!(parse("${env_file:a#b#K}").unwrap()[0].clone(), {
            Part::Credential(Credential::EnvFile("/etc/a#b".into(), "K".into()))
        });
    }

    #[test]
    fn what_is_no_reference_is_refused() {
        for text in ["${env:T", "${T}", "${env:}", "${vault:x}", "${oauth:refresh_token}", "${env_file:x}"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
