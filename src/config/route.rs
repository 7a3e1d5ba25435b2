//! Routes of an HTTP backend: which request is a call of which tool (`GET /v1/items/{id}` → `get_item`).

use std::fmt;
use std::sync::Arc;

use http::Method;
use serde_json::{Map, Value};

use crate::yaml::{At, Place};

/// Longest path pattern, in bytes.
const PATTERN_MAX: usize = 1024;
/// Longest tool name, in bytes.
pub(super) const TOOL_NAME: usize = 128;

/// A request that is a tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The tool's name.
    pub tool: Arc<str>,
    /// The request's method.
    pub method: Method,
    /// The request's path.
    pub path: PathPattern,
}

/// A path in which `{name}` stands for one whole segment that is not empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathPattern {
    text: Arc<str>,
    segments: Vec<Segment>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Segment {
    Literal(Arc<str>),
    Parameter,
}

/// The routes of one backend, the more specific before the less.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Routes {
    sorted: Vec<Route>,
}

impl Routes {
    /// The tool that a request calls, if a route names it. `path` is without query; where several fit, a literal
    /// segment goes before a parameter, from the left.
    pub fn tool(&self, method: &Method, path: &str) -> Option<&Arc<str>> {
        self.sorted.iter().find(|route| route.method == method && route.path.matches(path)).map(|route| &route.tool)
    }

    /// All routes.
    pub fn iter(&self) -> impl Iterator<Item = &Route> {
        self.sorted.iter()
    }

    fn new(mut routes: Vec<Route>) -> Routes {
        routes.sort_by(|a, b| a.path.segments.cmp(&b.path.segments));
        Routes { sorted: routes }
    }
}

/// A text as one part of a path or a query.
pub fn percent_encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
    let encoded = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(encoded).collect()
}

impl PathPattern {
    /// Whether the whole path fits. Segments are compared as they were sent, percent signs included.
    pub fn matches(&self, path: &str) -> bool {
        let mut parts = path.strip_prefix('/').unwrap_or(path).split('/');
        let fit = self.segments.iter().all(|segment| match (segment, parts.next()) {
            (Segment::Literal(text), Some(part)) => &**text == part,
            (Segment::Parameter, Some(part)) => !part.is_empty(),
            (_, None) => false,
        });
        fit && parts.next().is_none()
    }

    /// The path with values for its parameters, and the values that none of them took.
    ///
    /// # Errors
    /// Which value is missing.
    pub fn filled(&self, values: &Map<String, Value>) -> Result<(String, Map<String, Value>), String> {
        let mut rest = values.clone();
        let mut path = String::new();
        for part in self.text.split('/').skip(1) {
            path.push('/');
            match part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) {
                None => path.push_str(part),
                Some(name) => {
                    let value = rest.remove(name).ok_or_else(|| format!("the sample has no value for {{{name}}}"))?;
                    path.push_str(&percent_encoded(value.as_str().unwrap_or(&value.to_string())));
                }
            }
        }
        Ok((path, rest))
    }

    fn parse(text: &str) -> Result<PathPattern, String> {
        let Some(rest) = text.strip_prefix('/').filter(|_| text.len() <= PATTERN_MAX) else {
            return Err(String::new());
        };
        if text.contains(['?', '#']) || text.contains(char::is_whitespace) {
            return Err("leave out the query; a path has no spaces".to_owned());
        }
        let mut names: Vec<&str> = Vec::new();
        let mut segments = Vec::new();
        for part in rest.split('/') {
            let Some(name) = part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) else {
                if part.contains(['{', '}', '*']) {
                    return Err("a parameter takes a whole segment".to_owned());
                }
                segments.push(Segment::Literal(Arc::from(part)));
                continue;
            };
            if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
            {
                return Err("a parameter's name has letters, digits, `_` and `-`".to_owned());
            }
            if names.contains(&name) {
                return Err(format!("`{{{name}}}` stands in it twice"));
            }
            names.push(name);
            segments.push(Segment::Parameter);
        }
        Ok(PathPattern { text: Arc::from(text), segments })
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

pub(super) fn routes(at: At<'_>) -> Option<Routes> {
    let read = at.list(|at| {
        let place = at.place();
        at.map(|f| {
            let tool = f.need("tool", "Name of the tool that such a request calls.", |at| at.line(TOOL_NAME));
            let method = f.need("method", "Method of the request.", |at| at.word(&METHODS));
            let path = f.need("path", "Path of the request, `{name}` for a segment that varies.", |at| {
                at.parse("a path such as `/v1/items/{id}`", "^/[^?#\\s]*$", PathPattern::parse)
            });
            Some((Route { tool: tool?, method: method?, path: path? }, place))
        })?
    })?;
    refuse_twins(at, &read)?;
    Some(Routes::new(read.into_iter().map(|(route, _)| route).collect()))
}

fn refuse_twins(at: At<'_>, routes: &[(Route, Place)]) -> Option<()> {
    let mut sound = Some(());
    for (index, (route, place)) in routes.iter().enumerate() {
        let twin = |earlier: &&(Route, Place)| {
            earlier.0.method == route.method && earlier.0.path.segments == route.path.segments
        };
        if let Some((first, _)) = routes.iter().take(index).find(twin) {
            let message = format!("`{} {}` is a route of `{}` already", route.method, first.path, first.tool);
            sound = at.fail_at(*place, message, |problem| problem.help("remove one of the two"));
        }
    }
    sound
}

const METHODS: [(&str, Method); 7] = [
    ("GET", Method::GET),
    ("POST", Method::POST),
    ("PUT", Method::PUT),
    ("PATCH", Method::PATCH),
    ("DELETE", Method::DELETE),
    ("HEAD", Method::HEAD),
    ("OPTIONS", Method::OPTIONS),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn routes(list: &[(&str, &str)]) -> Routes {
        Routes::new(
            list.iter()
                .map(|(tool, path)| Route {
                    tool: Arc::from(*tool),
                    method: Method::GET,
                    path: PathPattern::parse(path).unwrap(),
                })
                .collect(),
        )
    }

    #[test]
    fn the_most_specific_route_names_the_tool() {
        let routes = routes(&[
            ("item", "/v1/items/{id}"),
            ("newest", "/v1/items/newest"),
            ("any", "/{version}/items/{id}"),
            ("items", "/v1/items"),
            ("root", "/"),
        ]);
        for (path, tool) in [
            ("/v1/items/7", Some("item")),
            ("/v1/items/a%2Fb", Some("item")),
            ("/v1/items/newest", Some("newest")),
            ("/v2/items/newest", Some("any")),
            ("/v1/items", Some("items")),
            ("/v1/items/", None),
            ("/v1/items/7/parts", None),
            ("/", Some("root")),
            ("/v3", None),
        ] {
            assert_eq!(routes.tool(&Method::GET, path).map(|tool| &**tool), tool, "{path}");
        }
        assert_eq!(routes.tool(&Method::POST, "/v1/items"), None);
    }
}
