//! Values that go to a service and nowhere else.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;
use std::sync::Arc;

use super::env_file;
use crate::config::{Credential, Part, Template};

/// The largest file that a credential is read from, in bytes.
pub(super) const FILE_MAX: u64 = 64 * 1024;

/// A value that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Secret(String);

impl Secret {
    pub(super) fn new(value: String) -> Secret {
        Secret(value)
    }

    /// The value, for the one who sends it.
    pub(super) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(not shown)")
    }
}

/// The environment variables that the configuration names, as they were at the start. Values are never shown.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    variables: BTreeMap<Arc<str>, Secret>,
}

impl Environment {
    /// Takes the variables that `places` name from `read`; nothing else of the environment is kept.
    pub fn of<'a>(places: impl Iterator<Item = &'a Credential>, read: impl Fn(&str) -> Option<String>) -> Environment {
        let names = places.filter_map(|place| match place {
            Credential::Env(name) => Some(name),
            Credential::File(_) | Credential::EnvFile(..) => None,
        });
        let given = names.filter_map(|name| Some((Arc::clone(name), Secret::new(read(name)?))));
        Environment { variables: given.filter(|(_, value)| !value.reveal().is_empty()).collect() }
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.variables.contains_key(name)
    }

    fn get(&self, name: &str) -> Option<Secret> {
        self.variables.get(name).cloned()
    }
}

/// Why a value is not to be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    /// It is not there: this place is empty.
    Absent(String),
    /// It may be there, but cannot be read.
    Unreadable(String),
}

/// The value at a place. Reads files: not for the threads that serve.
pub(super) fn value(environment: &Environment, place: &Credential) -> Result<Secret, Missing> {
    let absent = || Missing::Absent(place.to_string());
    let found = match place {
        Credential::Env(name) => environment.get(name),
        Credential::File(path) => {
            read(path, place)?.map(|text| Secret::new(text.trim_end_matches(['\n', '\r']).to_owned()))
        }
        Credential::EnvFile(path, key) => {
            read(path, place)?.and_then(|text| env_file::parse(&text).remove(&**key)).map(Secret::new)
        }
    };
    found.filter(|secret| !secret.reveal().is_empty()).ok_or_else(absent)
}

fn read(path: &Path, place: &Credential) -> Result<Option<String>, Missing> {
    let mut text = String::new();
    let unreadable = |_| Missing::Unreadable(place.to_string());
    match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(error)),
        Ok(file) => file.take(FILE_MAX).read_to_string(&mut text).map_err(unreadable)?,
    };
    Ok(Some(text))
}

/// The values of everything that a probe refers to.
pub(super) type Values = BTreeMap<Credential, Secret>;

/// The text with its references filled in. The values must hold all of them.
pub(super) fn fill(template: &Template, values: &Values, token: Option<&Secret>) -> Secret {
    let mut text = String::new();
    for part in &template.parts {
        text.push_str(match part {
            Part::Text(text) => text,
            Part::Credential(place) => values.get(place).map_or("", Secret::reveal),
            Part::Token => token.map_or("", Secret::reveal),
        });
    }
    Secret(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_named_variables_are_kept_and_no_value_is_shown() {
        let places = [Credential::Env("A".into()), Credential::Env("EMPTY".into()), Credential::Env("GONE".into())];
        let environment = Environment::of(places.iter(), |name| match name {
            "A" => Some("hunter2".to_owned()),
            "EMPTY" => Some(String::new()),
            "OTHER" => Some("other".to_owned()),
            _ => None,
        });
        assert!(environment.has("A") && !environment.has("EMPTY") && !environment.has("OTHER"));
        assert_eq!(value(&environment, &places[0]).unwrap().reveal(), "hunter2");
        assert_eq!(value(&environment, &places[1]), Err(Missing::Absent("env:EMPTY".into())));
        assert!(!format!("{environment:?}").contains("hunter2"));
    }

    #[test]
    fn a_file_gives_its_text_without_the_line_end_and_a_key_its_value() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let place = Credential::File(path.clone());
        let none = Environment::default();
        assert!(matches!(value(&none, &place), Err(Missing::Absent(_))));
        std::fs::write(&path, "T=s3cret\n").unwrap();
        assert_eq!(value(&none, &place).unwrap().reveal(), "T=s3cret");
        assert_eq!(value(&none, &Credential::EnvFile(path.clone(), "T".into())).unwrap().reveal(), "s3cret");
        std::fs::write(&path, [0xff, 0xfe]).unwrap();
        assert!(matches!(value(&none, &place), Err(Missing::Unreadable(_))));
    }
}
