//! Routes of an HTTP backend: which request is a call of which tool (`GET /v1/items/{id}` → `get_item`).

use std::cmp::Reverse;
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

/// A path in which `{name}` stands for one segment, or for the part of it between a fixed beginning and a fixed end
/// (`{id}.json`), that is not empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathPattern {
    text: Arc<str>,
    segments: Vec<Segment>,
}

/// One part of a path between two slashes, in the order in which they are tried.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Segment {
    Literal(Arc<str>),
    /// A parameter between a beginning and an end; the longer they are the earlier.
    Affixed(Reverse<usize>, Arc<str>, Arc<str>),
    Parameter,
}

/// The routes of one backend: those of the file before those of its OpenAPI document, then the more specific before the
/// less.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Routes {
    sorted: Vec<Route>,
}

impl Routes {
    /// The tool that a request calls, if a route names it. `path` is without query; where several fit, a literal
    /// segment goes before a parameter, from the left.
    pub fn tool(&self, method: &Method, path: &str) -> Option<&Arc<str>> {
        let length = segments(path).count();
        let fits =
            |route: &&Route| route.method == method && route.path.segments.len() == length && route.path.matches(path);
        self.sorted.iter().find(fits).map(|route| &route.tool)
    }

    /// These routes, and after them `others`: a request that both name is a call of these.
    #[must_use]
    pub fn before(&self, others: Vec<Route>) -> Routes {
        Routes { sorted: self.iter().cloned().chain(Routes::new(others).sorted).collect() }
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
        let mut parts = segments(path);
        let fit = self.segments.iter().all(|segment| match (segment, parts.next()) {
            (Segment::Literal(text), Some(part)) => &**text == part,
            (Segment::Affixed(_, start, end), Some(part)) => part
                .strip_prefix(&**start)
                .and_then(|rest| rest.strip_suffix(&**end))
                .is_some_and(|rest| !rest.is_empty()),
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

    /// What two patterns have in common that fit the same paths.
    pub(super) fn shape(&self) -> &[Segment] {
        &self.segments
    }

    /// Reads a pattern. The error says what is wrong, or is empty where that is plain to see.
    pub(super) fn parse(text: &str) -> Result<PathPattern, String> {
        let Some(rest) = text.strip_prefix('/').filter(|_| text.len() <= PATTERN_MAX) else {
            return Err(String::new());
        };
        if text.contains(['?', '#']) || text.contains(char::is_whitespace) {
            return Err("leave out the query; a path has no spaces".to_owned());
        }
        let mut names: Vec<&str> = Vec::new();
        let segments = rest.split('/').map(|part| Segment::parse(part, &mut names)).collect::<Result<_, _>>()?;
        Ok(PathPattern { text: Arc::from(text), segments })
    }
}

impl Segment {
    fn parse<'t>(part: &'t str, names: &mut Vec<&'t str>) -> Result<Segment, String> {
        let inner = part.split_once('{').and_then(|(start, rest)| {
            let (name, end) = rest.split_once('}')?;
            Some((start, name, end))
        });
        let stray = |text: &str| text.contains(['{', '}', '*']);
        let Some((start, name, end)) = inner else {
            return match stray(part) {
                true => Err("a parameter is written `{name}`, and `*` is not known".to_owned()),
                false => Ok(Segment::Literal(Arc::from(part))),
            };
        };
        if stray(start) || stray(end) {
            return Err("a segment has one parameter".to_owned());
        }
        if name.is_empty()
            || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
        {
            return Err("a parameter's name has letters, digits, `_`, `-` and `.`".to_owned());
        }
        if names.contains(&name) {
            return Err(format!("`{{{name}}}` stands in it twice"));
        }
        names.push(name);
        Ok(match start.len() + end.len() {
            0 => Segment::Parameter,
            length => Segment::Affixed(Reverse(length), Arc::from(start), Arc::from(end)),
        })
    }
}

fn segments(path: &str) -> std::str::Split<'_, char> {
    path.strip_prefix('/').unwrap_or(path).split('/')
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
            earlier.0.method == route.method && earlier.0.path.shape() == route.path.shape()
        };
        if let Some((first, _)) = routes.iter().take(index).find(twin) {
            let message = format!("`{} {}` is a route of `{}` already", route.method, first.path, first.tool);
            sound = at.fail_at(*place, message, |problem| problem.help("remove one of the two"));
        }
    }
    sound
}

pub(super) const METHODS: [(&str, Method); 7] = [
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
            ("start", "/v1/items/{id}:start"),
            ("sheet", "/v1/items/{id}.json"),
        ]);
        for (path, tool) in [
            ("/v1/items/7", Some("item")),
            ("/v1/items/a%2Fb", Some("item")),
            ("/v1/items/newest", Some("newest")),
            ("/v2/items/newest", Some("any")),
            ("/v1/items/7:start", Some("start")),
            ("/v1/items/7.json", Some("sheet")),
            ("/v1/items/.json", Some("item")),
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

    #[test]
    fn routes_of_the_file_go_before_more_specific_ones_of_a_document() {
        let route = |tool: &str, path: &str| Route {
            tool: Arc::from(tool),
            method: Method::GET,
            path: PathPattern::parse(path).unwrap(),
        };
        let both =
            routes(&[("mine", "/v1/{any}")]).before(vec![route("theirs", "/v1/items"), route("more", "/v2/items")]);
        let tool = |path| both.tool(&Method::GET, path).map(|tool| &**tool);
        assert_eq!((tool("/v1/items"), tool("/v2/items")), (Some("mine"), Some("more")));
    }
}
