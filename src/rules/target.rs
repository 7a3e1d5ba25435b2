//! Which hosts a call's arguments name (`target: auto | /pointer | off`, DESIGN 6): a failure of such a host is the
//! target's, not the tool's.

use serde_json::Value;

/// At most this many hosts are kept, and so many values looked at.
const HOSTS_MAX: usize = 16;
const VALUES_MAX: usize = 2_000;
/// A host name is never longer, in bytes.
const HOST_BOUND: usize = 253;
/// Members whose text may be a host without a scheme before it.
const HOST_MEMBERS: [&str; 12] =
    ["url", "uri", "urls", "href", "link", "host", "hostname", "domain", "endpoint", "address", "site", "website"];

/// Where a tool's target stands in its arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TargetSource {
    /// Any URL, and any host under a member that is named like one.
    #[default]
    Auto,
    /// The value behind this JSON pointer.
    Pointer(String),
    /// The tool has none.
    Off,
}

/// The hosts that arguments name, given as raw JSON; what is no JSON names none.
pub fn hosts_in(arguments: &[u8], source: &TargetSource) -> Vec<String> {
    if !may_name_one(arguments, source) {
        return Vec::new();
    }
    serde_json::from_slice(arguments).map(|arguments| hosts(&arguments, source)).unwrap_or_default()
}

/// Whether arguments, given as raw JSON, may name a host: at a glance, without reading them.
pub fn may_name_one(arguments: &[u8], source: &TargetSource) -> bool {
    match source {
        TargetSource::Off => false,
        TargetSource::Pointer(_) => true,
        // What is spelt with escapes, or named like a host, has to be read.
        TargetSource::Auto => {
            memchr::memchr(b'\\', arguments).is_some()
                || memchr::memmem::find(arguments, b"://").is_some()
                || strings(arguments).any(is_host_member)
        }
    }
}

/// The strings of a JSON text without escapes, keys among them.
fn strings(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut quotes = memchr::memchr_iter(b'"', text);
    std::iter::from_fn(move || text.get(quotes.next()? + 1..quotes.next()?))
}

/// The hosts that the arguments name, lower case, without port, each once, at most 16.
pub fn hosts(arguments: &Value, source: &TargetSource) -> Vec<String> {
    let mut found = Vec::new();
    match source {
        TargetSource::Off => {}
        TargetSource::Auto => collect(arguments, &mut found),
        TargetSource::Pointer(pointer) => {
            let value = arguments.pointer(pointer).and_then(Value::as_str);
            found.extend(value.and_then(|text| host_of_url(text).or_else(|| bare_host(text))));
        }
    }
    found
}

fn collect(arguments: &Value, found: &mut Vec<String>) {
    let mut pending = vec![(arguments, false)];
    for _ in 0..VALUES_MAX {
        let Some((value, named)) = pending.pop() else { return };
        match value {
            Value::String(text) => {
                let host = host_of_url(text).or_else(|| named.then(|| bare_host(text)).flatten());
                if let Some(host) = host.filter(|host| !found.contains(host) && found.len() < HOSTS_MAX) {
                    found.push(host);
                }
            }
            Value::Array(items) => pending.extend(items.iter().rev().map(|item| (item, named))),
            Value::Object(members) => {
                pending.extend(members.iter().rev().map(|(name, value)| (value, is_host_member(name.as_bytes()))));
            }
            _ => {}
        }
    }
}

fn is_host_member(name: &[u8]) -> bool {
    HOST_MEMBERS.iter().any(|member| name.eq_ignore_ascii_case(member.as_bytes()))
}

/// The host of `scheme://user@host:port/path`.
fn host_of_url(text: &str) -> Option<String> {
    let (scheme, rest) = text.trim().split_once("://")?;
    let scheme_fits =
        !scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    let authority = rest.split(['/', '?', '#', '\\']).next()?;
    let host = authority.rsplit('@').next()?;
    scheme_fits.then(|| clean(host)).flatten()
}

/// A host or `host:port` that stands alone; a single word without a dot is none.
fn bare_host(text: &str) -> Option<String> {
    let first = text.trim().split(['/', '?', '#']).next()?;
    clean(first).filter(|host| host.contains('.') || host.contains(':') || host == "localhost")
}

fn clean(authority: &str) -> Option<String> {
    let host = match authority.strip_prefix('[') {
        Some(v6) => v6.split(']').next()?,
        None => authority.split(':').next()?,
    };
    let fits = !host.is_empty()
        && host.len() <= HOST_BOUND
        && host.chars().all(|c| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '%'));
    fits.then(|| host.trim_end_matches('.').to_lowercase()).filter(|host| !host.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn urls_anywhere_and_hosts_under_a_fitting_name_are_targets() {
        for (arguments, expected) in [
            (json!({"url": "https://Example.com:8443/a?b"}), vec!["example.com"]),
            (json!({"page": {"link": ["http://a.test/", "http://b.test"]}}), vec!["a.test", "b.test"]),
            (json!({"host": "db.internal"}), vec!["db.internal"]),
            (json!({"query": "db.internal"}), vec![]),
            (json!({"url": "not a url"}), vec![]),
            (json!({"u": "http://user:pw@[2001:db8::1]:80/"}), vec!["2001:db8::1"]),
            (json!({"u": "javascript:alert(1)"}), vec![]),
            (json!(null), vec![]),
        ] {
            assert_eq!(hosts(&arguments, &TargetSource::Auto), expected, "{arguments}");
            assert_eq!(hosts_in(arguments.to_string().as_bytes(), &TargetSource::Auto), expected, "{arguments}");
        }
        // As a client may spell it.
        for spelt in [r#"{"\u0075rl":"a.test"}"#, r#"{"u":"http:\/\/a.test"}"#, r#"{ "URL" : [ "a.test" ] }"#] {
            assert_eq!(hosts_in(spelt.as_bytes(), &TargetSource::Auto), ["a.test"], "{spelt}");
        }
    }

    #[test]
    fn a_pointer_names_the_one_place_and_off_names_none() {
        let arguments = json!({"to": "a.test", "url": "http://b.test"});
        assert_eq!(hosts(&arguments, &TargetSource::Pointer("/to".to_owned())), ["a.test"]);
        assert!(hosts(&arguments, &TargetSource::Off).is_empty());
    }

    #[test]
    fn hostile_arguments_cost_little() {
        let many: Vec<Value> = (0..100_000).map(|i| json!(format!("http://h{i}.test"))).collect();
        assert_eq!(hosts(&Value::Array(many), &TargetSource::Auto).len(), HOSTS_MAX);
    }
}
