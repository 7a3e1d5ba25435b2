//! From the tree of a document to its operations.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use http::Method;

use super::servers::bases;
use super::{Document, MAX_OPERATIONS, Operation};
use crate::config::route::{METHODS, PathPattern, Route, Segment, TOOL_NAME};
use crate::yaml::{Entry, Node, Place, Problem, Report, Source, Value, tree};

/// Most notes that are kept.
const NOTES_MAX: usize = 200;
/// Most `$ref`s that are followed one after the other.
const REFS_MAX: usize = 8;

pub(super) fn read(source: &Arc<Source>, home: &str) -> Result<Document, Report> {
    let root = tree(source)?;
    is_openapi(source, &root)?;
    let mut reader = Reader {
        source,
        root: &root,
        home,
        schemes: root.get("components").and_then(|it| it.get("securitySchemes")).map(names).unwrap_or_default(),
        tools: HashSet::new(),
        taken: HashMap::new(),
        read: Document::default(),
    };
    for path in root.get("paths").map(Node::entries).unwrap_or_default() {
        if path.key.starts_with('/') {
            reader.path(path);
        }
    }
    if reader.read.operations.is_empty() {
        reader.note(Place::START, "the document names no tool");
    }
    Ok(reader.read)
}

fn is_openapi(source: &Arc<Source>, root: &Node) -> Result<(), Report> {
    if let Some(swagger) = root.entry("swagger") {
        let problem = Problem::new(source, swagger.place, "Swagger 2.0 is not read, only OpenAPI 3.0 and 3.1");
        return Err(problem.help("converters for it are many; or name the tools in `routes`").into());
    }
    let Some(version) = root.entry("openapi") else {
        let problem = Problem::new(source, root.place, "this is no OpenAPI document: the key `openapi` is missing");
        return Err(problem.help("an OpenAPI document begins with `openapi: 3.1.0`").into());
    };
    let fits = match &version.value.value {
        Value::Text(text) => text.starts_with("3."),
        Value::Float(number) => (3.0..4.0).contains(number),
        _ => false,
    };
    if !fits {
        return Err(Problem::new(source, version.value.place, "only OpenAPI 3.0 and 3.1 are read").into());
    }
    match root.get("paths").map(|paths| &paths.value) {
        None | Some(Value::Map(_)) => Ok(()),
        Some(_) => Err(Problem::new(source, root.place, "`paths` must be a map").into()),
    }
}

struct Reader<'a> {
    source: &'a Arc<Source>,
    root: &'a Node,
    home: &'a str,
    schemes: BTreeSet<Arc<str>>,
    tools: HashSet<Arc<str>>,
    taken: HashMap<(Method, Vec<Segment>), Arc<str>>,
    read: Document,
}

/// One operation where it stands.
struct Found<'a> {
    method: &'a Method,
    path: &'a Entry,
    item: &'a Node,
    operation: &'a Node,
    place: Place,
}

impl<'a> Reader<'a> {
    fn path(&mut self, path: &'a Entry) {
        let Some(item) = self.resolve(&path.value) else {
            return self.note(path.place, format!("`{}`: this `$ref` leads nowhere in the document", shown(&path.key)));
        };
        for (word, method) in &METHODS {
            let Some(operation) = item.entry(&word.to_ascii_lowercase()) else { continue };
            let found = Found { method, path, item, operation: &operation.value, place: operation.place };
            self.operation(&found);
        }
    }

    fn operation(&mut self, found: &Found<'a>) {
        let title = format!("`{} {}`", found.method, shown(&found.path.key));
        let Some(tool) = found.operation.get("operationId").and_then(Node::text) else {
            return self.note(found.place, format!("{title} has no operationId and is no tool"));
        };
        if tool.is_empty() || tool.len() > TOOL_NAME || tool.chars().any(char::is_control) {
            return self.note(found.place, format!("{title}: an operationId has 1 to {TOOL_NAME} bytes on one line"));
        }
        if !self.tools.insert(Arc::clone(tool)) {
            return self.note(found.place, format!("{title}: the operationId `{}` is taken before it", shown(tool)));
        }
        self.undeclared_parameters(found, &title);
        let credentials_required = self.credentials(found);
        let safe = matches!(*found.method, Method::GET | Method::HEAD);
        let (bases, odd) = bases([found.operation, found.item, self.root], self.home);
        for server in odd {
            self.note(server.place, "this server address gives no path: a variable without default, or `..`");
        }
        for base in bases {
            let path = match PathPattern::parse(&format!("{base}{}", found.path.key)) {
                Ok(path) => path,
                Err(why) => return self.note(found.place, format!("{title} cannot be a route: {why}")),
            };
            let shape = (found.method.clone(), path.shape().to_vec());
            if let Some(twin) = self.taken.get(&shape) {
                let message = format!("{title} fits the same requests as `{}`, which stands before it", shown(twin));
                return self.note(found.place, message);
            }
            if self.read.operations.len() >= MAX_OPERATIONS {
                return self.note(found.place, format!("{title}: at most {MAX_OPERATIONS} operations are read"));
            }
            self.taken.insert(shape, Arc::clone(tool));
            let route = Route { tool: Arc::clone(tool), method: found.method.clone(), path };
            let credentials_required = Arc::clone(&credentials_required);
            self.read.operations.push(Operation { route, safe, credentials_required });
        }
    }

    /// Parameters may be declared for the path or for the operation.
    fn undeclared_parameters(&mut self, found: &Found<'a>, title: &str) {
        let declared: HashSet<&str> = [found.item, found.operation]
            .into_iter()
            .filter_map(|level| level.get("parameters"))
            .flat_map(Node::items)
            .filter_map(|parameter| self.resolve(parameter))
            .filter(|parameter| parameter.get("in").and_then(Node::text).is_some_and(|place| &**place == "path"))
            .filter_map(|parameter| parameter.get("name").and_then(Node::text).map(|name| &**name))
            .collect();
        let used = found.path.key.split('{').skip(1).filter_map(|rest| rest.split_once('}')).map(|(name, _)| name);
        let missing: Vec<String> = used.filter(|name| !declared.contains(name)).map(shown).collect();
        for name in missing {
            self.note(
                found.place,
                format!("{title}: no parameter with `in: path` declares `{{{name}}}`; it is routed all the same"),
            );
        }
    }

    /// What every alternative of the effective `security` demands.
    fn credentials(&mut self, found: &Found<'a>) -> Arc<[Arc<str>]> {
        let security = found.operation.get("security").or_else(|| self.root.get("security"));
        let alternatives = security.map(Node::items).unwrap_or_default();
        let demanded = alternatives.iter().map(|one| names(one)).reduce(|all, one| &all & &one).unwrap_or_default();
        for unknown in demanded.difference(&self.schemes.clone()) {
            let message = format!("the security scheme `{}` is not among `components.securitySchemes`", shown(unknown));
            self.note(found.place, message);
        }
        demanded.intersection(&self.schemes).cloned().collect()
    }

    /// The node itself, or the place in this document that its `$ref` names.
    fn resolve(&self, node: &'a Node) -> Option<&'a Node> {
        let mut node = node;
        for _ in 0..REFS_MAX {
            let Some(reference) = node.get("$ref") else { return Some(node) };
            let pointer = reference.text()?.strip_prefix("#/")?;
            node = pointer
                .split('/')
                .try_fold(self.root, |at, part| at.get(&part.replace("~1", "/").replace("~0", "~")))?;
        }
        None
    }

    fn note(&mut self, place: Place, message: impl Into<String>) {
        if self.read.notes.len() < NOTES_MAX {
            self.read.notes.push(Problem::new(self.source, place, message));
        }
    }
}

fn names(map: &Node) -> BTreeSet<Arc<str>> {
    map.entries().iter().map(|entry| Arc::clone(&entry.key)).collect()
}

/// A text of the document in a message: short and on one line.
fn shown(text: impl AsRef<str>) -> String {
    text.as_ref().chars().take(100).flat_map(char::escape_debug).collect()
}
