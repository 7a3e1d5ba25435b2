//! Which downstream requests go to a backend: by host and path prefix, the most specific first.

use std::sync::Arc;

use crate::yaml::{At, Fields};

/// What a request must be like to go to a backend.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Match {
    /// The host in lower case and without port; `None` is any.
    pub host: Option<Arc<str>>,
    /// The path itself or a parent of it, by whole segments, without `/` at its end; `/` alone is any.
    pub path_prefix: Arc<str>,
}

impl Match {
    /// How well a request fits, more is better; `None` if not at all.
    pub fn rank(&self, host: Option<&str>, path: &str) -> Option<(bool, usize)> {
        let named = match (&self.host, host) {
            (None, _) => false,
            (Some(wanted), Some(host)) if wanted.eq_ignore_ascii_case(without_port(host)) => true,
            _ => return None,
        };
        let prefix = if &*self.path_prefix == "/" { "" } else { &*self.path_prefix };
        let rest = path.strip_prefix(prefix)?;
        (rest.is_empty() || rest.starts_with('/') || prefix.is_empty()).then_some((named, prefix.len()))
    }
}

impl Default for Match {
    fn default() -> Match {
        Match { host: None, path_prefix: Arc::from("/") }
    }
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if !name.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => {
            if name.starts_with('[') == name.ends_with(']') { name } else { host }
        }
        _ => host,
    }
}

pub(super) fn matching(f: &Fields<'_>) -> Match {
    let host = f.opt("host", "Host of the request, without port; left out: any.", |at| {
        at.parse("a host name without port such as `tools.example`", "^[A-Za-z0-9._\\[\\]:-]{1,253}$", host)
    });
    let doc = "The path or a parent of it, by whole segments: `/a` holds `/a` and `/a/b`, not `/ab`.";
    let path_prefix = f.with_default("path_prefix", doc, Some("/".into()), path);
    Match { host, path_prefix: path_prefix.unwrap_or_else(|| Arc::from("/")) }
}

fn host(text: &str) -> Result<Arc<str>, String> {
    let known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    let literal = text.starts_with('[') && text.ends_with(']');
    if text.is_empty() || text.len() > 253 || !(literal || text.bytes().all(known)) {
        return Err(if text.contains(':') { "leave out the port" } else { "" }.to_owned());
    }
    Ok(Arc::from(text.to_ascii_lowercase()))
}

fn path(at: At<'_>) -> Option<Arc<str>> {
    at.parse("a path that starts with `/`", "^/[^?#\\s]*$", |text| {
        let fine = text.starts_with('/') && !text.contains(['?', '#']) && !text.contains(char::is_whitespace);
        match text.trim_end_matches('/') {
            _ if !fine => Err(String::new()),
            "" => Ok(Arc::from("/")),
            path => Ok(Arc::from(path)),
        }
    })
}
