//! The base path of an operation: what comes before its template on this backend.

use crate::yaml::Node;

/// Most servers of one operation that are looked at.
const MOST: usize = 8;

/// The paths of the servers, without `/` at the end: of the operation, else of its path, else of the document, else `""`.
/// The second list holds addresses that give none.
pub(super) fn bases<'n>(levels: [&'n Node; 3], home: &str) -> (Vec<String>, Vec<&'n Node>) {
    let named = levels.into_iter().find_map(|level| level.get("servers").filter(|servers| !servers.items().is_empty()));
    let Some(servers) = named else { return (vec![String::new()], Vec::new()) };
    let (mut found, mut odd) = (Vec::new(), Vec::new());
    for server in servers.items().iter().take(MOST) {
        match base(server, home) {
            Some(path) if found.contains(&path) => {}
            Some(path) => found.push(path),
            None => odd.push(&**server),
        }
    }
    (found, odd)
}

fn base(server: &Node, home: &str) -> Option<String> {
    let mut url = server.get("url")?.text()?.to_string();
    for variable in server.get("variables").map(Node::entries).unwrap_or_default() {
        let default = variable.value.get("default").and_then(Node::text)?;
        url = url.replace(&format!("{{{}}}", variable.key), default);
    }
    let url = url.split(['?', '#']).next()?;
    let path = match url.split_once("://") {
        Some((_, rest)) => rest.find('/').and_then(|slash| rest.get(slash..)).unwrap_or_default().to_owned(),
        None if url.starts_with('/') => url.to_owned(),
        None => {
            let directory = home.rsplit_once('/').map_or("", |(directory, _)| directory);
            format!("{directory}/{}", url.trim_start_matches("./"))
        }
    };
    let path = path.trim_end_matches('/');
    (!path.contains(['{', '}']) && !path.split('/').any(|part| part == "..")).then(|| path.to_owned())
}
