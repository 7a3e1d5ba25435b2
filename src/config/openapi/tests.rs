//! What documents come to, and what is said about those that name no tool.

use std::sync::Arc;

use super::*;
use http::Method;

const LIBRARY: &str = include_str!("library.yaml");

fn read_at(text: &str, home: &str) -> Result<Document, Report> {
    Document::read(&Arc::new(Source::new("openapi.yaml", text)), home)
}

fn read(text: &str) -> Document {
    read_at(text, "/").unwrap_or_else(|report| panic!("{report}"))
}

fn with_paths(rest: &str) -> String {
    format!("openapi: 3.1.0\ninfo: {{title: T, version: '1'}}\n{rest}")
}

fn tools(document: &Document) -> Vec<String> {
    document
        .operations
        .iter()
        .map(|operation| format!("{} {} {}", operation.route.tool, operation.route.method, operation.route.path))
        .collect()
}

fn notes(document: &Document) -> Vec<&str> {
    document.notes.problems().iter().map(|problem| problem.message()).collect()
}

#[test]
fn operations_become_tools_by_their_operation_id() {
    let document = read(LIBRARY);
    assert_eq!(
        tools(&document),
        [
            "listBooks GET /shelf/v2/books",
            "addBook POST /shelf/v2/books",
            "getBook GET /shelf/v2/books/{isbn}",
            "removeBook DELETE /shelf/v2/books/{isbn}",
            "hasBook HEAD /shelf/v2/books/{isbn}",
            "exportBook GET /shelf/v2/books/{isbn}.json",
            "renewLoan POST /shelf/v2/loans/{loan}:renew",
            "getMember GET /members/{id}",
            "ping GET /shelf/v2/ping",
        ]
    );
    let safe: Vec<&str> = document.operations.iter().filter(|it| it.safe).map(|it| &*it.route.tool).collect();
    assert_eq!(safe, ["listBooks", "getBook", "hasBook", "exportBook", "getMember", "ping"]);
    assert_eq!(notes(&document), ["`PATCH /books/{isbn}` has no operationId and is no tool"],);
    assert_eq!(document.notes.problems()[0].position(), "openapi.yaml:56:5");
}

#[test]
fn security_that_nobody_can_do_without_names_the_credentials() {
    let document = read(LIBRARY);
    let of = |tool: &str| {
        let operation = document.operations.iter().find(|operation| &*operation.route.tool == tool).unwrap();
        operation.credentials_required.iter().map(|name| name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(of("getBook"), ["staffKey"], "the document's own");
    assert_eq!(of("addBook"), ["desk", "staffKey"], "all of one alternative");
    assert_eq!(of("removeBook"), ["desk"], "what both alternatives demand");
    assert_eq!(of("listBooks"), Vec::<String>::new(), "an alternative that demands nothing");
    assert_eq!(of("ping"), Vec::<String>::new(), "an empty list");
}

#[test]
fn the_base_path_is_that_of_the_servers_wherever_they_stand() {
    for (servers, home, base) in [
        ("", "/", ""),
        ("servers: []", "/", ""),
        ("servers: [{url: 'https://api.example/v1/'}]", "/", "/v1"),
        ("servers: [{url: 'https://api.example'}]", "/", ""),
        ("servers: [{url: /v1}]", "/docs/openapi.json", "/v1"),
        ("servers: [{url: ./v1}]", "/docs/openapi.json", "/docs/v1"),
        ("servers: [{url: v1}]", "/", "/v1"),
        (
            "servers: [{url: 'https://{host}/{base}?x=1', variables: {host: {default: h}, base: {default: b}}}]",
            "/",
            "/b",
        ),
    ] {
        let text = with_paths(&format!("{servers}\npaths: {{/a: {{get: {{operationId: a}}}}}}\n"));
        assert_eq!(tools(&read_at(&text, home).unwrap()), [format!("a GET {base}/a")], "{servers}");
    }
    let two = with_paths("servers: [{url: /v1}, {url: /v2}, {url: '/v1/'}]\npaths: {/a: {get: {operationId: a}}}\n");
    assert_eq!(tools(&read(&two)), ["a GET /v1/a", "a GET /v2/a"]);
    let own = with_paths(
        "servers: [{url: /v1}]\npaths: {/a: {servers: [{url: /p}], get: {operationId: a}, put: {operationId: b, servers: [{url: /o}]}}}\n",
    );
    assert_eq!(tools(&read(&own)), ["a GET /p/a", "b PUT /o/a"]);
}

#[test]
fn what_is_no_tool_is_noted_with_its_place_and_hides_nothing_else() {
    for (paths, left, note) in [
        (
            "'/a/{x}': {get: {operationId: a, parameters: [{name: x, in: path}]}}, '/a/{y}': {get: {operationId: b, parameters: [{name: y, in: path}]}}",
            1,
            "fits the same requests as `a`",
        ),
        ("/a: {get: {operationId: a}}, /b: {get: {operationId: a}}", 1, "the operationId `a` is taken before it"),
        ("/a: {get: {operationId: ''}}", 0, "an operationId has 1 to 128 bytes"),
        ("/a: {get: {operationId: \"a\\nb\"}}", 0, "on one line"),
        (
            "'/a/{b}-{c}': {get: {operationId: a}}, /z: {get: {operationId: z}}",
            1,
            "cannot be a route: a segment has one parameter",
        ),
        ("'/a/{x}': {get: {operationId: a}}", 1, "no parameter with `in: path` declares `{x}`"),
        ("/a: {$ref: '#/components/pathItems/Gone'}", 0, "this `$ref` leads nowhere"),
        ("/a: {$ref: 'other.yaml#/a'}", 0, "this `$ref` leads nowhere"),
        ("/a: {get: {operationId: a, security: [{gone: []}]}}", 1, "the security scheme `gone` is not among"),
        ("/a: {get: {operationId: a, servers: [{url: '/{v}'}]}}", 0, "gives no path"),
    ] {
        let document = read(&with_paths(&format!("paths: {{{paths}}}\n")));
        assert_eq!(document.operations.len(), left, "{paths}");
        assert!(notes(&document).iter().any(|told| told.contains(note)), "{paths}: {:?}", notes(&document));
        assert!(document.notes.problems()[0].position().starts_with("openapi.yaml:3:"), "{paths}");
    }
}

#[test]
fn a_reference_that_leads_to_itself_ends() {
    let text = with_paths(
        "paths: {/a: {$ref: '#/paths/~1b'}, /b: {$ref: '#/paths/~1a'}, /c: {$ref: '#/components/pathItems/C'}}\ncomponents: {pathItems: {C: {get: {operationId: c}}}}\n",
    );
    assert_eq!(tools(&read(&text)), ["c GET /c"]);
}

#[test]
fn json_and_an_unquoted_version_are_read_too() {
    let json = "{\"openapi\": \"3.0.3\", \"paths\": {\"/a\": {\"get\": {\"operationId\": \"a\", \"summary\": \"\\ud83d\\ude00\"}}}}";
    assert_eq!(tools(&read(json)), ["a GET /a"]);
    assert_eq!(tools(&read("openapi: 3.1\npaths: {/a: {get: {operationId: a}}}")), ["a GET /a"]);
}

#[test]
fn what_is_no_openapi_document_is_refused_with_the_place() {
    for (text, place, says) in [
        ("swagger: '2.0'\npaths: {}\n", "1:1", "Swagger 2.0"),
        ("info: {}\n", "1:1", "the key `openapi` is missing"),
        ("openapi: 4.0.0\n", "1:10", "only OpenAPI 3.0 and 3.1"),
        ("openapi: 3.1.0\npaths: []\n", "1:1", "`paths` must be a map"),
        ("openapi: 3.1.0\npaths: {\n", "2:8", "not valid YAML"),
        ("<html>Not found</html>\n", "1:1", "the key `openapi` is missing"),
    ] {
        let report = read_at(text, "/").unwrap_err();
        assert_eq!(report.problems()[0].position(), format!("openapi.yaml:{place}"), "{text}");
        assert!(report.problems()[0].message().contains(says), "{report}");
    }
}

#[test]
fn a_document_without_end_is_cut_and_says_so() {
    let paths: Vec<String> =
        (0..MAX_OPERATIONS + 3).map(|n| format!("/a{n}: {{get: {{operationId: t{n}}}}}")).collect();
    let document = read(&with_paths(&format!("paths: {{{}}}\n", paths.join(", "))));
    assert_eq!(document.operations.len(), MAX_OPERATIONS);
    assert!(notes(&document)[0].contains("at most 5000 operations"));
}

#[test]
fn facts_of_a_document_hold_until_the_next_one_and_the_file_goes_before_them() {
    let text = "backends: [{name: api, kind: http, url: 'http://h', openapi: o.yaml}]\ntools: {addBook: {safety: SAFE_PROBE}}\n";
    let config = crate::config::Config::read(&Arc::new(Source::new("t.yaml", text)), std::path::Path::new("")).unwrap();
    assert!(!config.tools.settings("api", "getBook").safe_probe);
    config.tools.declare("api", &read(LIBRARY).operations);
    let settings = |tool| config.tools.settings("api", tool);
    assert!(settings("getBook").safe_probe && settings("addBook").safe_probe && !settings("renewLoan").safe_probe);
    config.tools.declare("api", &[]);
    assert!(!settings("getBook").safe_probe);
}

#[test]
fn documents_routes_are_matched_like_those_of_the_file() {
    let routes = crate::config::Routes::default().before(read(LIBRARY).routes());
    for (method, path, tool) in [
        (Method::GET, "/shelf/v2/books/978-3", Some("getBook")),
        (Method::GET, "/shelf/v2/books/978-3.json", Some("exportBook")),
        (Method::POST, "/shelf/v2/loans/7:renew", Some("renewLoan")),
        (Method::PATCH, "/shelf/v2/books/978-3", None),
        (Method::GET, "/books/978-3", None),
    ] {
        assert_eq!(routes.tool(&method, path).map(|tool| &**tool), tool, "{method} {path}");
    }
}
