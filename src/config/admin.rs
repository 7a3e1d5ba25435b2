//! Who may do what on the admin listener (DESIGN 14).

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::sections::{KIB, MIB, path};
use crate::yaml::{At, Fields, Place};

/// Longest name of a token, in bytes.
const NAME_MAX: usize = 64;

/// A right on the admin surface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Reads what is believed. Every other role may too.
    Reader,
    /// Writes health of sessions, users and projects, as a diagnosis engine does.
    HealthWriter,
    /// Has tools probed.
    Prober,
    /// Everything, also for tenants and everybody.
    Operator,
}

/// The roles by the names that files and answers use.
pub const ROLES: [(&str, Role); 4] = [
    ("reader", Role::Reader),
    ("tool-health-writer", Role::HealthWriter),
    ("tool-prober", Role::Prober),
    ("operator", Role::Operator),
];

impl Role {
    /// The name.
    pub fn as_str(self) -> &'static str {
        ROLES.iter().find(|role| role.1 == self).map_or("", |role| role.0)
    }
}

/// Where a secret is read from at the start. It never stands in the file itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretSource {
    /// An environment variable.
    Env(Arc<str>),
    /// A file; white space at its end does not count.
    File(PathBuf),
}

impl SecretSource {
    /// The secret, without white space around it.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub fn read(&self, environment: &Environment) -> Result<String, String> {
        let text = match self {
            SecretSource::Env(name) => environment.get(name).map(str::to_owned).ok_or("it is not set")?,
            SecretSource::File(path) => std::fs::read_to_string(path).map_err(|error| error.to_string())?,
        };
        let text = text.trim();
        if text.is_empty() { Err("it is empty".to_owned()) } else { Ok(text.to_owned()) }
    }
}

impl fmt::Display for SecretSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SecretSource::Env(name) => write!(f, "environment variable {name}"),
            SecretSource::File(path) => write!(f, "file {}", path.display()),
        }
    }
}

/// The environment of the process, as the command line read it. Its values are never shown.
#[derive(Clone, Default)]
pub struct Environment(Arc<HashMap<String, String>>);

impl Environment {
    /// An environment with these variables.
    pub fn new(variables: impl IntoIterator<Item = (String, String)>) -> Environment {
        Environment(Arc::new(variables.into_iter().collect()))
    }

    /// The value of a variable.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Whether a variable has a value that is more than blanks.
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| !value.trim().is_empty())
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Environment({} variables)", self.0.len())
    }
}

/// A bearer token of the admin surface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Whose it is, as the audit log names him.
    pub name: Arc<str>,
    /// Where it is read from.
    pub secret: SecretSource,
    /// What it is good for.
    pub roles: Vec<Role>,
    /// Where the file says from where it is read.
    pub place: Place,
}

/// Who may write without a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LocalWrites {
    /// Nobody.
    Off,
    /// Whoever may open the unix socket.
    Socket,
    /// He, and whoever reaches a loopback listener.
    Loopback,
}

/// What guards the admin listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminAccess {
    /// A unix socket that answers beside the listener.
    pub socket: Option<PathBuf>,
    /// The tokens.
    pub tokens: Vec<Token>,
    /// Who may write without one.
    pub local_writes: LocalWrites,
    /// Names that requests may be addressed to, besides `localhost` and addresses.
    pub hosts: Vec<Arc<str>>,
    /// Origins that browsers may send requests from, besides the listener's own.
    pub origins: Vec<Arc<str>>,
    /// The largest request body, in bytes.
    pub body: usize,
}

pub(super) fn access(f: &Fields<'_>, directory: &Path) -> AdminAccess {
    let hosts = "Names that requests may be addressed to (`Host`), besides `localhost` and addresses.";
    let origins = "Origins that browsers may send requests from, such as `https://ops.example`, besides our own.";
    let names = |at: At<'_>| at.list(|at| at.line(256));
    let tokens = f.opt("tokens", "Bearer tokens.", |at| at.list(|at| token(at, directory)));
    let access = AdminAccess {
        socket: f.opt("socket", "A unix socket that answers beside `listen`; mode 0600.", |at| path(at, Path::new(""))),
        tokens: tokens.unwrap_or_default(),
        local_writes: f.word("local_writes", LOCAL, LocalWrites::Off, &WHO),
        hosts: f.opt("hosts", hosts, names).unwrap_or_default(),
        origins: f.opt("origins", origins, names).unwrap_or_default(),
        body: f.size("body", "The largest request body.", MIB, KIB..=16 * MIB),
    };
    for (index, token) in access.tokens.iter().enumerate() {
        if access.tokens.iter().take(index).any(|earlier| earlier.name == token.name) {
            let message = format!("the name `{}` belongs to two tokens", token.name);
            f.fail::<()>("tokens", message, |problem| problem.help("the audit log tells tokens apart by their names"));
        }
    }
    access
}

const WHO: [(&str, LocalWrites); 3] =
    [("off", LocalWrites::Off), ("socket", LocalWrites::Socket), ("loopback", LocalWrites::Loopback)];
const LOCAL: &str = "Who may write without a token: nobody (`off`), whoever may open the unix socket (`socket`), or also whoever \
    reaches a loopback listener (`loopback`).";

fn token(at: At<'_>, directory: &Path) -> Option<Token> {
    at.map(|f| {
        let name = f.need("name", "Whose it is, as the audit log names him.", |at| at.line(NAME_MAX));
        let secret =
            f.need("token", "Where it is read from: `{env: NAME}` or `{file: PATH}`.", |at| secret(at, directory));
        let roles = f.need("roles", "What it is good for.", |at| {
            let roles = at.list(|at| at.word(&ROLES))?;
            if roles.is_empty() { at.fail("`roles` needs at least one role") } else { Some(roles) }
        });
        Some(Token { name: name?, secret: secret?, roles: roles?, place: f.place_of("token") })
    })?
}

/// A reference to a secret.
pub(super) fn secret(at: At<'_>, directory: &Path) -> Option<SecretSource> {
    at.map(|f| {
        let env = f.opt("env", "An environment variable.", |at| at.line(256));
        let file = f.opt("file", "A file; relative paths start where this file lies.", |at| path(at, directory));
        match (env, file) {
            (Some(name), None) => Some(SecretSource::Env(name)),
            (None, Some(path)) => Some(SecretSource::File(path)),
            _ => f.at().fail("a secret is read from one place: `{env: NAME}` or `{file: PATH}`"),
        }
    })?
}
