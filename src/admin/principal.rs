//! Who asks, and what he may do (DESIGN 14).

use std::fmt;
use std::sync::Arc;

use crate::config::{AdminAccess, Environment, Role};

/// The shortest token that is accepted, in bytes: a shorter one can be guessed.
const TOKEN_MIN: usize = 16;

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// The name of his token, or `local`.
    pub name: Arc<str>,
    roles: Arc<[Role]>,
}

impl Principal {
    /// Somebody with these roles.
    pub fn new(name: &str, roles: &[Role]) -> Principal {
        Principal { name: Arc::from(name), roles: Arc::from(roles) }
    }

    /// Whether he may do what a role allows. Everybody who is anybody may read, an operator may do everything.
    pub fn may(&self, role: Role) -> bool {
        let held = |wanted| self.roles.contains(&wanted);
        held(role) || held(Role::Operator) || role == Role::Reader && !self.roles.is_empty()
    }
}

/// Why the tokens cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// Nothing is there.
    #[error("token `{name}`: cannot read {source}: {why}")]
    Unreadable {
        /// Whose.
        name: Arc<str>,
        /// From where.
        source: Shown,
        /// The reason.
        why: String,
    },
    /// It can be guessed.
    #[error("token `{name}`: {source} holds fewer than {TOKEN_MIN} bytes; make one with `openssl rand -hex 32`")]
    Short {
        /// Whose.
        name: Arc<str>,
        /// From where.
        source: Shown,
    },
    /// It would name two.
    #[error("tokens `{name}` and `{other}` are the same; give each user his own")]
    Same {
        /// Whose.
        name: Arc<str>,
        /// Whose else.
        other: Arc<str>,
    },
}

/// Where a secret comes from, in words. (`thiserror` takes a field `source` of another kind for a cause.)
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown(String);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Shown {}

/// The tokens, as hashes: comparing hashes takes the same time wherever they differ, and a memory dump holds no token.
pub struct Tokens(Vec<(blake3::Hash, Principal)>);

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tokens({})", self.0.len())
    }
}

impl Tokens {
    /// Reads all tokens from where they are kept.
    ///
    /// # Errors
    /// The first that is not there, too short, or given twice.
    pub fn read(access: &AdminAccess, environment: &Environment) -> Result<Tokens, TokenError> {
        let mut all: Vec<(blake3::Hash, Principal)> = Vec::new();
        for token in &access.tokens {
            let shown = || Shown(token.secret.to_string());
            let name = || Arc::clone(&token.name);
            let text = token.secret.read(environment).map_err(|why| TokenError::Unreadable {
                name: name(),
                source: shown(),
                why,
            })?;
            if text.len() < TOKEN_MIN {
                return Err(TokenError::Short { name: name(), source: shown() });
            }
            let hash = blake3::hash(text.as_bytes());
            if let Some((_, other)) = all.iter().find(|(known, _)| *known == hash) {
                return Err(TokenError::Same { name: name(), other: Arc::clone(&other.name) });
            }
            all.push((hash, Principal { name: name(), roles: token.roles.clone().into() }));
        }
        Ok(Tokens(all))
    }

    /// Whether there is a token of this name.
    pub fn knows(&self, name: &str) -> bool {
        self.0.iter().any(|(_, principal)| *principal.name == *name)
    }

    /// Whose token this is. Takes as long for a wrong one as for a right one.
    pub fn owner(&self, token: &str) -> Option<&Principal> {
        let hash = blake3::hash(token.as_bytes());
        self.whose(|known| *known == hash)
    }

    /// Asks of every token whether it fits, also after one that does.
    fn whose(&self, mut fits: impl FnMut(&blake3::Hash) -> bool) -> Option<&Principal> {
        self.0.iter().fold(None, |found, (known, principal)| if fits(known) { Some(principal) } else { found })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{LocalWrites, SecretSource, Token};

    fn access(tokens: &[(&str, &str)]) -> (AdminAccess, Environment) {
        let token = |(name, _): &(&str, &str)| Token {
            name: Arc::from(*name),
            secret: SecretSource::Env(Arc::from(*name)),
            roles: vec![Role::Prober],
            place: crate::yaml::Place::START,
        };
        let access = AdminAccess {
            socket: None,
            tokens: tokens.iter().map(token).collect(),
            local_writes: LocalWrites::Off,
            hosts: Vec::new(),
            origins: Vec::new(),
            body: 1024,
        };
        let variables = tokens.iter().filter(|(_, value)| !value.is_empty());
        (access, Environment::new(variables.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))))
    }

    fn read_all(tokens: &[(&str, &str)]) -> Result<Tokens, TokenError> {
        let (access, environment) = access(tokens);
        Tokens::read(&access, &environment)
    }

    #[test]
    fn a_token_names_its_owner_and_nothing_else_does() {
        let tokens = read_all(&[("a", "aaaaaaaaaaaaaaaaaaaa\n"), ("b", "bbbbbbbbbbbbbbbbbbbb")]).unwrap();
        assert_eq!(&*tokens.owner("aaaaaaaaaaaaaaaaaaaa").unwrap().name, "a");
        assert_eq!(&*tokens.owner("bbbbbbbbbbbbbbbbbbbb").unwrap().name, "b");
        for wrong in ["", "aaaaaaaaaaaaaaaaaaa", "aaaaaaaaaaaaaaaaaaaaa", "aaaaaaaaaaaaaaaaaaaa\n"] {
            assert!(tokens.owner(wrong).is_none(), "{wrong:?}");
        }
    }

    #[test]
    fn every_token_is_compared_whichever_fits() {
        let tokens =
            read_all(&[("a", "aaaaaaaaaaaaaaaaaaaa"), ("b", "bbbbbbbbbbbbbbbbbbbb"), ("c", "cccccccccccccccccccc")]);
        let tokens = tokens.unwrap();
        for fitting in [Some("a"), Some("b"), Some("c"), None] {
            let mut compared = 0;
            let names = ["a", "b", "c"];
            let found = tokens.whose(|_| {
                compared += 1;
                names.get(compared - 1).copied() == fitting
            });
            assert_eq!((found.map(|who| &*who.name), compared), (fitting, 3));
        }
    }

    #[test]
    fn tokens_that_protect_nothing_are_refused_with_the_place_they_come_from() {
        for (tokens, words) in [
            (&[("a", "")][..], "token `a`: cannot read environment variable a: it is not set"),
            (&[("a", "short")], "fewer than 16 bytes"),
            (&[("a", "aaaaaaaaaaaaaaaaaaaa"), ("b", "aaaaaaaaaaaaaaaaaaaa")], "tokens `b` and `a` are the same"),
        ] {
            let error = read_all(tokens).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn every_role_reads_and_only_the_operator_does_everything() {
        let prober = Principal::new("p", &[Role::Prober]);
        assert!(prober.may(Role::Reader) && prober.may(Role::Prober));
        assert!(!prober.may(Role::HealthWriter) && !prober.may(Role::Operator));
        let operator = Principal::new("o", &[Role::Operator]);
        assert!(
            [Role::Reader, Role::HealthWriter, Role::Prober, Role::Operator].iter().all(|role| operator.may(*role))
        );
        assert!(!Principal::new("n", &[]).may(Role::Reader));
    }
}
