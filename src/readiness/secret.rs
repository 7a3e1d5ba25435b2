//! Values that go to a service and nowhere else.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{Error, ErrorKind, Read};
use std::path::Path;

use super::env_file;
use crate::config::{Credential, Environment, Part, Template};

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

/// Why a value is not to be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    /// It is not there: this place is empty, or holds nothing but blanks.
    Absent(String),
    /// It may be there, but cannot be read.
    Unreadable(String),
    /// What stands there is no UTF-8, so that it cannot be sent.
    NotText(String),
}

/// The value at a place. Reads files: not for the threads that serve.
pub(super) fn value(environment: &Environment, place: &Credential) -> Result<Secret, Missing> {
    let absent = || Missing::Absent(place.to_string());
    let found = match place {
        Credential::Env(name) => environment.get(name).map(|value| Secret::new(value.to_owned())),
        Credential::File(path) => {
            read(path, place)?.map(|text| Secret::new(text.trim_end_matches(['\n', '\r']).to_owned()))
        }
        Credential::EnvFile(path, key) => {
            read(path, place)?.and_then(|text| env_file::parse(&text).remove(&**key)).map(Secret::new)
        }
    };
    found.filter(|secret| !secret.reveal().trim().is_empty()).ok_or_else(absent)
}

fn read(path: &Path, place: &Credential) -> Result<Option<String>, Missing> {
    let mut text = String::new();
    let unreadable = |error: Error| match error.kind() {
        ErrorKind::InvalidData => Missing::NotText(place.to_string()),
        _ => Missing::Unreadable(place.to_string()),
    };
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
    fn an_empty_or_blank_variable_is_none_and_no_value_is_shown() {
        let places = ["A", "EMPTY", "GONE", "BLANK"].map(|name| Credential::Env(name.into()));
        let variables = [("A", "hunter2"), ("EMPTY", ""), ("BLANK", " \t\n")];
        let environment = Environment::new(variables.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert_eq!(["A", "EMPTY", "GONE", "BLANK"].map(|name| environment.has(name)), [true, false, false, false]);
        assert_eq!(value(&environment, &places[3]), Err(Missing::Absent("env:BLANK".into())));
        assert_eq!(value(&environment, &places[0]).unwrap().reveal(), "hunter2");
        assert_eq!(value(&environment, &places[1]), Err(Missing::Absent("env:EMPTY".into())));
        assert_eq!(value(&environment, &places[1]), Err(Missing::Absent("env:EMPTY".into())));
        assert_eq!(value(&environment, &places[2]), Err(Missing::Absent("env:GONE".into())));
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
        assert_eq!(value(&none, &place), Err(Missing::NotText(place.to_string())));
        std::fs::write(&path, "T=' '\n").unwrap();
        assert!(matches!(value(&none, &Credential::EnvFile(path.clone(), "T".into())), Err(Missing::Absent(_))));
        std::fs::write(&path, " \n").unwrap();
        assert!(matches!(value(&none, &place), Err(Missing::Absent(_))));
    }
}
