//! Readers of single values: text, numbers, durations, sizes, words, addresses, patterns.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::at::At;
use super::fields::nearest;
use super::schema;
use super::tree::Value;
use super::units::{duration_text, parse_duration, parse_size, size_text};
use crate::glob::{Glob, MAX_PATTERN};

impl At<'_> {
    /// A text. Numbers and `true` are none: they must be quoted, so that `1.10` does not become `1.1`.
    pub fn text(&self) -> Option<Arc<str>> {
        self.draw(|| json!({"type": "string"}));
        match self.value()? {
            Value::Text(text) => Some(text.clone()),
            Value::Bool(_) | Value::Int(_) | Value::Float(_) => self
                .fail_with(format!("{} must be a text, not {}", self.name(), self.found()), |problem| {
                    problem.help("put it in quotes")
                }),
            _ => self.wrong("a text"),
        }
    }

    /// A text of `1..=max` bytes without control characters.
    pub fn line(&self, max: usize) -> Option<Arc<str>> {
        self.draw(|| json!({"type": "string", "minLength": 1, "maxLength": max}));
        let text = self.text()?;
        if text.is_empty() || text.len() > max {
            return self.fail(format!("{} must have 1 to {max} bytes, not {}", self.name(), text.len()));
        }
        if text.chars().any(char::is_control) {
            return self.fail(format!("{} must be one line without control characters", self.name()));
        }
        Some(text)
    }

    /// A text that `parse` understands; `what` as in "a URL such as …", `pattern` says the same to a JSON Schema. An
    /// error of `parse` is appended to the message.
    pub fn parse<T>(&self, what: &str, pattern: &str, parse: impl FnOnce(&str) -> Result<T, String>) -> Option<T> {
        self.draw(|| json!({"type": "string", "pattern": pattern}));
        match self.value()? {
            Value::Text(text) => match parse(text) {
                Ok(value) => Some(value),
                Err(why) if why.is_empty() => self.wrong(what),
                Err(why) => self.fail(format!("{} must be {what}, not {}: {why}", self.name(), self.found())),
            },
            _ => self.wrong(what),
        }
    }

    /// `true` or `false`.
    pub fn bool(&self) -> Option<bool> {
        self.draw(|| json!({"type": "boolean"}));
        match self.value()? {
            Value::Bool(value) => Some(*value),
            Value::Text(text) if matches!(&**text, "yes" | "no" | "on" | "off") => self
                .fail_with(format!("{} must be true or false, not {}", self.name(), self.found()), |problem| {
                    problem.help(if matches!(&**text, "yes" | "on") { "write `true`" } else { "write `false`" })
                }),
            _ => self.wrong("true or false"),
        }
    }

    /// A whole number within bounds.
    pub fn int(&self, bounds: RangeInclusive<i64>) -> Option<i64> {
        let (min, max) = (*bounds.start(), *bounds.end());
        self.draw(|| json!({"type": "integer", "minimum": min, "maximum": max}));
        match self.value()? {
            Value::Int(value) if bounds.contains(value) => Some(*value),
            Value::Int(value) => self.fail(format!("{} must be between {min} and {max}, not {value}", self.name())),
            _ => self.wrong(&format!("a whole number between {min} and {max}")),
        }
    }

    /// A whole number within bounds, to count with.
    pub fn count(&self, bounds: RangeInclusive<usize>) -> Option<usize> {
        let bound = |value: usize| i64::try_from(value).unwrap_or(i64::MAX);
        let value = self.int(bound(*bounds.start())..=bound(*bounds.end()))?;
        usize::try_from(value).ok()
    }

    /// A duration within bounds: `30s`, `5m`, `24h`, `250ms`, `1h 30m`, or ISO 8601 such as `PT24H`.
    pub fn duration(&self, bounds: RangeInclusive<Duration>) -> Option<Duration> {
        self.draw(schema::duration);
        let Value::Text(text) = self.value()? else {
            return match self.value()? {
                Value::Int(number) => self.fail_with(
                    format!("{} must be a duration with its unit, not {}", self.name(), self.found()),
                    |problem| problem.help(format!("write `{number}s` for seconds")),
                ),
                _ => self.wrong("a duration such as `30s`, `5m` or `PT24H`"),
            };
        };
        let Some(duration) = parse_duration(text) else {
            return self.wrong("a duration such as `30s`, `5m` or `PT24H`");
        };
        if bounds.contains(&duration) {
            return Some(duration);
        }
        let (min, max) = (duration_text(*bounds.start()), duration_text(*bounds.end()));
        self.fail(format!("{} must be between {min} and {max}, not {}", self.name(), self.found()))
    }

    /// A duration within bounds, or `off`, which is `Some(None)`.
    pub fn duration_or_off(&self, bounds: RangeInclusive<Duration>) -> Option<Option<Duration>> {
        self.draw(|| json!({"anyOf": [{"const": "off"}, schema::duration()]}));
        match self.value()? {
            Value::Text(text) if &**text == "off" => Some(None),
            Value::Bool(false) => self
                .fail_with(format!("{} must be a duration or `off`, not {}", self.name(), self.found()), |problem| {
                    problem.help("write `off`")
                }),
            _ => At { sketch: None, ..*self }.duration(bounds).map(Some),
        }
    }

    /// A size in bytes within bounds: `1MiB`, `64KiB`, or a plain number.
    pub fn size(&self, bounds: RangeInclusive<usize>) -> Option<usize> {
        self.draw(schema::size);
        let size = match self.value()? {
            Value::Int(value) => usize::try_from(*value).ok(),
            Value::Text(text) => parse_size(text),
            _ => None,
        };
        let Some(size) = size else {
            return self.wrong("a size such as `64KiB`, `1MiB` or a number of bytes");
        };
        if bounds.contains(&size) {
            return Some(size);
        }
        let (min, max) = (size_text(*bounds.start()), size_text(*bounds.end()));
        self.fail(format!("{} must be between {min} and {max}, not {}", self.name(), self.found()))
    }

    /// One word of a closed set.
    pub fn word<T: Clone>(&self, words: &[(&'static str, T)]) -> Option<T> {
        let names: Vec<&str> = words.iter().map(|word| word.0).collect();
        self.draw(|| json!({"enum": names}));
        let allowed = names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let Value::Text(text) = self.value()? else {
            return self.wrong(&format!("one of {allowed}"));
        };
        if let Some((_, value)) = words.iter().find(|word| word.0 == &**text) {
            return Some(value.clone());
        }
        let message = format!("{} must be one of {allowed}, not {}", self.name(), self.found());
        self.fail_with(message, |problem| match nearest(text, names.iter().copied()) {
            Some(name) => problem.label(format!("did you mean `{name}`?")),
            None => problem,
        })
    }

    /// A socket address such as `127.0.0.1:8080` or `[::1]:8080`.
    pub fn socket(&self) -> Option<SocketAddr> {
        self.parse("an address with port such as `127.0.0.1:8080`", "^.+:[0-9]{1,5}$", |text| {
            text.parse()
                .map_err(|_| if text.starts_with(':') { "write `0.0.0.0` for all interfaces" } else { "" }.to_owned())
        })
    }

    /// A name pattern such as `jira_*`.
    pub fn glob(&self) -> Option<Glob> {
        self.draw(|| json!({"type": "string", "minLength": 1, "maxLength": MAX_PATTERN}));
        match self.value()? {
            Value::Text(text) => match Glob::new(text) {
                Ok(glob) => Some(glob),
                Err(why) => self.fail(format!("{} is no name pattern: {why}", self.name())),
            },
            _ => At { sketch: None, ..*self }.text().and(None),
        }
    }
}
