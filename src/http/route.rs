//! Which tool a request of an HTTP backend calls: method and path pattern to name (DESIGN 3, HTTP tools).
//!
//! A pattern is a path of segments, each a literal or a whole `{param}`; the last may be `{*rest}`, which takes one or
//! more segments. The most specific pattern wins, segment by segment from the left: literal before `{param}` before
//! `{*rest}`, then a named method before any. Two patterns that no request can tell apart are an error.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use http::Method;
use thiserror::Error;

/// The most segments of a pattern.
const MAX_SEGMENTS: usize = 64;

/// What is wrong with a route.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RouteError {
    /// Not `METHOD /path`.
    #[error("route {route:?} is not `METHOD /path`, for example `GET /v1/items/{{id}}`")]
    Form {
        /// The route as it was given.
        route: String,
    },
    /// A method that is not a token.
    #[error("{method:?} in route {route:?} is no HTTP method; use one, or `*` for any")]
    Method {
        /// The method as it was given.
        method: String,
        /// The route as it was given.
        route: String,
    },
    /// A segment that is neither a literal nor a parameter.
    #[error("segment {segment:?} in route {route:?} must be a literal, a whole `{{param}}`, or at the end `{{*rest}}`")]
    Segment {
        /// The segment as it was given.
        segment: String,
        /// The route as it was given.
        route: String,
    },
    /// A pattern of more than 64 segments.
    #[error("route {route:?} has {count} segments, at most {MAX_SEGMENTS} are allowed")]
    TooLong {
        /// The route as it was given.
        route: String,
        /// How many it has.
        count: usize,
    },
    /// Two routes that match the same requests.
    #[error("route {route:?} of tool {tool:?} matches the same requests as that of tool {other:?}")]
    Conflict {
        /// The route as it was given.
        route: String,
        /// Its tool.
        tool: String,
        /// The tool that has the same pattern.
        other: String,
    },
}

/// A checked set of routes.
#[derive(Clone, Debug, Default)]
pub struct Routes {
    root: Node,
}

#[derive(Clone, Debug, Default)]
struct Node {
    literals: HashMap<Box<str>, Node>,
    param: Option<Box<Node>>,
    /// Tools of patterns that end here, by method; `None` is any.
    here: Vec<(Option<Method>, Arc<str>)>,
    /// Tools of patterns that go on with `{*rest}`.
    rest: Vec<(Option<Method>, Arc<str>)>,
}

enum Segment<'a> {
    Literal(Cow<'a, str>),
    Param,
    Rest,
}

impl Routes {
    /// No routes: nothing is a tool.
    pub fn new() -> Routes {
        Routes::default()
    }

    /// Adds `route`, written as `GET /v1/items/{id}` or `* /path`, for `tool`.
    ///
    /// # Errors
    /// What is wrong with the route by itself or beside the earlier ones. The set is unchanged but for inner structure.
    pub fn add(&mut self, route: &str, tool: &str) -> Result<(), RouteError> {
        let form = || RouteError::Form { route: route.into() };
        let (method, path) = route.trim().split_once(char::is_whitespace).ok_or_else(form)?;
        let path = path.trim().strip_prefix('/').ok_or_else(form)?;
        let method = parse_method(method, route)?;
        let segments = path.split('/').map(|s| parse_segment(s, route)).collect::<Result<Vec<_>, _>>()?;
        if segments.len() > MAX_SEGMENTS {
            return Err(RouteError::TooLong { route: route.into(), count: segments.len() });
        }
        let ends = self
            .root
            .ends_of(segments)
            .ok_or_else(|| RouteError::Segment { segment: "{*…}".into(), route: route.into() })?;
        if let Some((_, other)) = ends.iter().find(|(m, _)| *m == method) {
            return Err(RouteError::Conflict { route: route.into(), tool: tool.into(), other: other.to_string() });
        }
        ends.push((method, tool.into()));
        Ok(())
    }

    /// The tool that `method` on `path` calls. `path` is as on the wire, without the query; a percent-encoded character
    /// counts as the character (but `%2F` separates nothing), so that no spelling passes by a pattern.
    pub fn find(&self, method: &Method, path: &str) -> Option<&Arc<str>> {
        let segments: Vec<Cow<'_, str>> = path.strip_prefix('/')?.split('/').take(4096).map(decode).collect();
        self.root.find(method, &segments)
    }
}

impl Node {
    /// The list that a pattern of these segments ends in; `None` if `{*rest}` is not the last of them.
    fn ends_of(&mut self, segments: Vec<Segment<'_>>) -> Option<&mut Vec<(Option<Method>, Arc<str>)>> {
        let mut node = self;
        let mut segments = segments.into_iter();
        while let Some(segment) = segments.next() {
            node = match segment {
                Segment::Literal(text) => node.literals.entry(text.into()).or_default(),
                Segment::Param => node.param.get_or_insert_default(),
                Segment::Rest => return segments.next().is_none().then_some(&mut node.rest),
            };
        }
        Some(&mut node.here)
    }

    fn find(&self, method: &Method, segments: &[Cow<'_, str>]) -> Option<&Arc<str>> {
        let Some((first, others)) = segments.split_first() else { return pick(&self.here, method) };
        let literal = self.literals.get(first.as_ref()).and_then(|node| node.find(method, others));
        let param = || match &self.param {
            Some(node) if !first.is_empty() => node.find(method, others),
            _ => None,
        };
        literal.or_else(param).or_else(|| pick(&self.rest, method))
    }
}

fn pick<'a>(tools: &'a [(Option<Method>, Arc<str>)], method: &Method) -> Option<&'a Arc<str>> {
    let of = |wanted: Option<&Method>| tools.iter().find(|(m, _)| m.as_ref() == wanted).map(|(_, tool)| tool);
    of(Some(method)).or_else(|| of(None))
}

fn parse_method(method: &str, route: &str) -> Result<Option<Method>, RouteError> {
    if method == "*" {
        return Ok(None);
    }
    let wrong = || RouteError::Method { method: method.into(), route: route.into() };
    Method::from_bytes(method.to_ascii_uppercase().as_bytes()).map(Some).map_err(|_| wrong())
}

fn parse_segment<'a>(segment: &'a str, route: &str) -> Result<Segment<'a>, RouteError> {
    let wrong = || RouteError::Segment { segment: segment.into(), route: route.into() };
    let name = segment.strip_prefix('{').and_then(|s| s.strip_suffix('}'));
    let is_name = |name: &str| !name.is_empty() && !name.contains(['{', '}', '*']);
    match name {
        Some(name) => match name.strip_prefix('*') {
            Some(rest) if is_name(rest) => Ok(Segment::Rest),
            None if is_name(name) => Ok(Segment::Param),
            _ => Err(wrong()),
        },
        None if segment.contains(['{', '}', '?', '#']) => Err(wrong()),
        None => Ok(Segment::Literal(decode(segment))),
    }
}

/// Percent-decodes a segment; what is not valid UTF-8 or no valid escape stays as it is.
fn decode(segment: &str) -> Cow<'_, str> {
    if !segment.contains('%') {
        return Cow::Borrowed(segment);
    }
    let mut out = Vec::with_capacity(segment.len());
    let mut rest = segment.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = match escaped(after) {
            Some((decoded, after)) if byte == b'%' && decoded != b'/' => {
                out.push(decoded);
                after
            }
            _ => {
                out.push(byte);
                after
            }
        };
    }
    String::from_utf8(out).map_or(Cow::Borrowed(segment), Cow::Owned)
}

/// The byte that two hexadecimal digits at the start of `text` stand for, and what follows them.
fn escaped(text: &[u8]) -> Option<(u8, &[u8])> {
    let (digits, after) = text.split_at_checked(2)?;
    let digits = std::str::from_utf8(digits).ok().filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()))?;
    Some((u8::from_str_radix(digits, 16).ok()?, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn routes(list: &[(&str, &str)]) -> Routes {
        let mut routes = Routes::new();
        for (route, tool) in list {
            routes.add(route, tool).unwrap();
        }
        routes
    }

    #[test]
    fn the_most_specific_pattern_wins() {
        let routes = routes(&[
            ("GET /v1/items/{id}", "get_item"),
            ("DELETE /v1/items/{id}", "delete_item"),
            ("GET /v1/items/search", "search"),
            ("* /v1/items/{id}", "any_item"),
            ("GET /v1/{kind}/search", "search_kind"),
            ("GET /v1/{*rest}", "rest"),
            ("GET /", "root"),
            ("POST /v1/caf%C3%A9", "cafe"),
        ]);
        let cases = [
            ("GET", "/v1/items/7", Some("get_item")),
            ("DELETE", "/v1/items/7", Some("delete_item")),
            ("PATCH", "/v1/items/7", Some("any_item")),
            ("GET", "/v1/items/search", Some("search")),
            ("GET", "/v1/users/search", Some("search_kind")),
            ("GET", "/v1/items/7/parts/9", Some("rest")),
            ("GET", "/v1/items/", Some("rest")),
            ("GET", "/v1/it%65ms/7", Some("get_item")),
            ("GET", "/v1/items%2F7", Some("rest")),
            ("GET", "/v1/items/%zz", Some("get_item")),
            ("GET", "/", Some("root")),
            ("POST", "/v1/caf%c3%a9", Some("cafe")),
            ("GET", "/v1", None),
            ("POST", "/v2", None),
            ("GET", "*", None),
            ("GET", "", None),
        ];
        for (method, path, expected) in cases {
            let found = routes.find(&method.parse().unwrap(), path).map(AsRef::as_ref);
            assert_eq!(found, expected, "{method} {path}");
        }
    }

    #[test]
    fn routes_that_cannot_be_told_apart_or_read_are_errors() {
        let mut routes = routes(&[("GET /items/{id}", "get_item"), ("* /items/{id}", "any_item")]);
        let long = format!("GET {}", "/a".repeat(65));
        let cases = [
            ("get /items/{name}", "matches the same requests as that of tool \"get_item\""),
            ("* /items/{x}", "matches the same requests as that of tool \"any_item\""),
            ("/items", "is not `METHOD /path`"),
            ("GET items", "is not `METHOD /path`"),
            ("G@T /items", "is no HTTP method"),
            ("GET /items/{}", "segment \"{}\""),
            ("GET /items/{id}.json", "segment \"{id}.json\""),
            ("GET /items/{*rest}/x", "segment \"{*…}\""),
            ("GET /items?x=1", "segment \"items?x=1\""),
            (&long, "at most 64"),
        ];
        for (route, message) in cases {
            let error = routes.add(route, "new_tool").unwrap_err().to_string();
            assert!(error.contains(message), "{route}: {error}");
        }
    }
}
