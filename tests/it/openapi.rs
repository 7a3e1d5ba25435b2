//! Tools that an OpenAPI document names, through the whole process: a real API that publishes its own document.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use toolvane::app::{self, App, Running};
use toolvane::clock::{ManualClock, Now, Tick, Wall};
use toolvane::config::Config;
use toolvane::yaml::Source;

use crate::wire::exchange;

const START: Now = Now { tick: Tick(1_000_000), wall: Wall(1_772_460_120_000) };
const LIBRARY: &str = include_str!("../../src/config/openapi/library.yaml");

/// A library whose loans are broken. Its document may be away.
#[derive(Clone)]
struct Library {
    document: Arc<Mutex<Option<String>>>,
    calls: Arc<AtomicUsize>,
}

impl Library {
    async fn start(document: Option<&str>) -> (SocketAddr, Library) {
        let library = Library { document: Arc::new(Mutex::new(document.map(str::to_owned))), calls: Arc::default() };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().fallback(answer).with_state(library.clone());
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        (address, library)
    }

    fn publishes(&self, document: &str) {
        *self.document.lock().unwrap() = Some(document.to_owned());
    }
}

async fn answer(State(library): State<Library>, uri: Uri) -> Response {
    if uri.path() == "/openapi.yaml" {
        let document = library.document.lock().unwrap().clone();
        return document.map_or(StatusCode::SERVICE_UNAVAILABLE.into_response(), IntoResponse::into_response);
    }
    library.calls.fetch_add(1, Ordering::SeqCst);
    match uri.path() {
        path if path.starts_with("/shelf/v2/books/") => {
            (StatusCode::INTERNAL_SERVER_ERROR, "out of shelves").into_response()
        }
        _ => "fine".into_response(),
    }
}

struct Front {
    clock: ManualClock,
    running: Running,
}

impl Front {
    async fn start(library: SocketAddr, settings: &str) -> Front {
        Front::with(library, settings, "").await
    }

    async fn with(library: SocketAddr, settings: &str, more: &str) -> Front {
        let text = format!(
            "listen: 127.0.0.1:0\nadmin: {{listen: 127.0.0.1:0}}\nstore: {{engine: memory}}\n\
             backends: [{{name: library, kind: http, url: \"http://{library}\", {settings}}}]\n{more}"
        );
        let config = Config::read(&Arc::new(Source::new("test.yaml", text)), Path::new("")).unwrap();
        let clock = ManualClock::new(START);
        let app = App {
            rules: app::compile(&config).unwrap(),
            config: Arc::new(config),
            clock: Arc::new(clock.clone()),
            fresh_key: [1; 32],
            seed: 1,
            config_hash: "test".to_owned(),
            config_file: None,
        };
        Front { clock, running: app.start().await.unwrap() }
    }

    async fn get(&self, path: &str) -> String {
        get(self.running.listen[0], path).await
    }

    async fn fail_five_times(&self, path: &str) {
        for _ in 0..5 {
            assert!(self.get(path).await.starts_with("HTTP/1.1 500"));
            self.clock.advance(Duration::from_secs(1));
        }
    }

    async fn tools(&self) -> Vec<String> {
        let answer = get(self.running.admin, "/v1/tools").await;
        let body: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
        body["tools"].as_array().unwrap().iter().map(|tool| tool["tool"].as_str().unwrap().to_owned()).collect()
    }

    /// Waits, bounded, until documents have come to this so often.
    async fn until(&self, result: &str, times: usize) {
        let series = format!("toolvane_document_reads_total{{what=\"openapi\",result=\"{result}\"}} {times}\n");
        let counted = async { while !get(self.running.admin, "/metrics").await.contains(&series) {} };
        let waited = tokio::time::timeout(Duration::from_secs(30), counted).await;
        waited.unwrap_or_else(|_| panic!("{series} should have come"));
    }
}

async fn get(to: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(to).await.unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn calls_pass_unjudged_until_the_document_comes_and_are_judged_by_their_operation_from_then_on() {
    let (address, library) = Library::start(None).await;
    let front = Front::start(address, &format!("openapi: \"http://{address}/openapi.yaml\"")).await;
    front.until("failed", 1).await;
    for _ in 0..10 {
        assert!(front.get("/shelf/v2/books/978-3").await.starts_with("HTTP/1.1 500"));
    }
    assert_eq!(front.tools().await, Vec::<String>::new());

    library.publishes(LIBRARY);
    front.clock.advance(Duration::from_secs(2));
    front.until("changed", 1).await;
    assert_eq!(front.tools().await.len(), 9);
    front.fail_five_times("/shelf/v2/books/978-3").await;
    let before = library.calls.load(Ordering::SeqCst);
    let refused = front.get("/shelf/v2/books/978-4").await;
    assert!(refused.starts_with("HTTP/1.1 503") && refused.contains("getBook"), "{refused}");
    assert_eq!(library.calls.load(Ordering::SeqCst), before, "not called");
    assert!(front.get("/shelf/v2/books").await.ends_with("fine"), "another tool is well");
}

#[tokio::test]
async fn routes_of_the_configuration_go_before_those_of_the_document() {
    let (address, _) = Library::start(Some(LIBRARY)).await;
    let routes = "routes: [{tool: anything, method: GET, path: \"/shelf/v2/books/{any}\"}]";
    let front = Front::start(address, &format!("{routes}, openapi: \"http://{address}/openapi.yaml\"")).await;
    front.until("changed", 1).await;
    front.fail_five_times("/shelf/v2/books/978-3.json").await;
    assert!(front.get("/shelf/v2/books/978-3").await.contains("anything is temporarily unavailable"));
}

#[tokio::test]
async fn a_document_in_a_file_holds_from_the_first_call_and_a_reload_reads_it_again() {
    let (address, _) = Library::start(None).await;
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("library.yaml");
    std::fs::write(&file, LIBRARY).unwrap();
    let front = Front::start(address, &format!("openapi: \"{}\"", file.display())).await;
    front.fail_five_times("/shelf/v2/books/978-3").await;
    assert!(front.get("/shelf/v2/books/978-3").await.starts_with("HTTP/1.1 503"));

    std::fs::write(&file, LIBRARY.replace("operationId: getBook", "operationId: fetchBook")).unwrap();
    front.clock.advance(Duration::from_secs(10));
    front.running.reloader.reload().unwrap();
    front.until("changed", 2).await;
    assert!(front.tools().await.contains(&"fetchBook".to_owned()));
    assert!(
        front.get("/shelf/v2/books/978-3").await.starts_with("HTTP/1.1 500"),
        "another tool, and it is not known to be down"
    );

    std::fs::write(&file, "openapi: [").unwrap();
    let report = front.running.reloader.reload().unwrap_err();
    assert!(report.problems()[0].position().ends_with("library.yaml:1:10"), "{report}");
    assert!(front.tools().await.contains(&"fetchBook".to_owned()), "the last good one stays");
}

#[tokio::test]
async fn a_tool_that_is_excluded_for_others_or_not_set_up_is_answered_in_the_terms_of_http() {
    let (address, library) = Library::start(None).await;
    let route = |tool: &str| format!("{{tool: {tool}, method: GET, path: /{tool}}}");
    let routes = format!("deny: [shut], routes: [{}]", ["shut", "staff", "keyed"].map(route).join(", "));
    let more = "tools: {staff: {requiresEngineRoles: [clerk]}, \
                keyed: {credentials_required: [{env: KEY}], setup_hint: Ask the librarian.}}\n";
    let front = Front::with(address, &routes, more).await;
    let ask = async |path: &str, roles: &str| {
        exchange(front.running.listen[0], "GET", path, &[("x-engine-roles", roles)], "").await
    };
    let shut = ask("/shut", "clerk").await;
    assert_eq!((shut.status, shut.mark()), (StatusCode::FORBIDDEN, "disallowed"));
    assert_eq!((&shut.json()["code"], &shut.json()["status"]), (&Value::from("DISALLOWED"), &Value::from(403)));
    let keyed = ask("/keyed", "clerk").await;
    assert_eq!((keyed.status, keyed.mark()), (StatusCode::SERVICE_UNAVAILABLE, "credentials_missing"));
    assert!(keyed.json()["detail"].as_str().unwrap().contains("Ask the librarian."), "{}", keyed.body);
    for problem in [shut, keyed] {
        assert_eq!(problem.headers["content-type"], "application/problem+json");
    }
    let staff = ask("/staff", "reader").await;
    assert_eq!((staff.status, &*staff.body), (StatusCode::NOT_FOUND, ""));
    assert_eq!(staff.mark(), "", "it does not say that there is one");
    assert_eq!(library.calls.load(Ordering::SeqCst), 0, "the backend hears of none of them");
    assert_eq!(ask("/staff", "reader clerk").await.body, "fine");
}

#[tokio::test]
async fn a_credential_that_the_document_demands_and_that_is_known_to_be_missing_is_told_without_a_call() {
    let (address, library) = Library::start(Some(LIBRARY)).await;
    let openapi = format!("openapi: \"http://{address}/openapi.yaml\"");
    let front = Front::with(address, &openapi, "readiness: {credentials: {staffKey: {env: STAFF_KEY}}}\n").await;
    front.until("changed", 1).await;
    let refused = front.get("/shelf/v2/books/978-3").await;
    assert!(refused.starts_with("HTTP/1.1 503") && refused.contains("credentials_missing"), "{refused}");
    assert!(front.get("/shelf/v2/books").await.ends_with("fine"), "an alternative demands nothing");
    assert!(front.get("/shelf/v2/ping").await.ends_with("fine"));
    assert_eq!(library.calls.load(Ordering::SeqCst), 2);
}
