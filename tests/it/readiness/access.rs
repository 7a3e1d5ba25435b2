//! Tools that are not for everybody: roles, profiles, allow and deny lists (DESIGN 9, 10 and 12).

use serde_json::{Value, json};

use super::support::{Backend, Front, call, exchange};

const ADMIN: (&str, &str) = ("x-engine-roles", "viewer, tool-admin");
const ROLES: &str = "tools: {wipe: {requiresEngineRoles: [tool-admin]}}\n";

#[tokio::test]
async fn without_the_role_a_tool_is_neither_listed_nor_called_nor_told_from_one_that_does_not_exist() {
    let backend = Backend::with(&["wipe", "look"]).await;
    let front = Front::before(&backend, ROLES).await;
    assert_eq!(front.names(&[]).await, ["look"]);
    assert_eq!(front.names(&[ADMIN]).await, ["wipe", "look"]);
    let (hidden, unknown) = (front.call("wipe", &[]).await, front.call("nope", &[]).await);
    assert_eq!(hidden.status, unknown.status);
    assert_eq!(hidden.body, unknown.body.replace("nope", "wipe"), "the words of the backend itself");
    assert_eq!(hidden.mark(), "");
    let names =
        |answer: &super::support::Answer| -> Vec<String> { answer.headers.keys().map(ToString::to_string).collect() };
    assert_eq!(names(&hidden), names(&unknown));
    assert!(backend.calls().iter().all(|call| call["params"]["name"] != "wipe"), "{:?}", backend.calls());
    assert_eq!(front.call("wipe", &[ADMIN]).await.words(), "done");
    assert_eq!(front.entry("wipe", "").await["statusReason"], "role_missing");
    assert_eq!(front.entry("wipe", "roles=tool-admin").await["listed"], true);
}

#[tokio::test]
async fn the_arguments_of_a_call_without_the_role_go_nowhere() {
    let backend = Backend::with(&["wipe"]).await;
    let front = Front::before(&backend, ROLES).await;
    let mut call = call(9, "wipe");
    call["params"]["arguments"] = json!({"disk": "sda"});
    front.post(&call, &[("mcp-param-disk", "sda")]).await;
    assert!(!format!("{:?}", backend.calls()).contains("sda"));
    assert_eq!(backend.calls()[0]["id"], 9);
}

#[tokio::test]
async fn a_backend_may_say_itself_which_role_a_tool_is_for_and_config_goes_first() {
    let tools = [
        json!({"name": "wipe", "annotations": {"requiresEngineRoles": ["tool-admin"]}}),
        json!({"name": "freed", "annotations": {"requiresEngineRoles": ["tool-admin"]}}),
    ];
    let backend = Backend::start(&tools).await;
    let front = Front::before(&backend, "tools: {freed: {requiresEngineRoles: []}}\n").await;
    assert_eq!(front.names(&[]).await, ["freed"]);
    assert!(front.call("wipe", &[]).await.words().contains("isn't here"));
    assert_eq!(front.names(&[ADMIN]).await, ["wipe", "freed"]);
}

#[tokio::test]
async fn a_tool_that_anybody_could_call_is_closed_once_a_list_says_which_role_it_is_for() {
    let tools = [json!({"name": "wipe", "annotations": {"requiresEngineRoles": ["tool-admin"]}})];
    let backend = Backend::start(&tools).await;
    let front = Front::before(&backend, "").await;
    for _ in 0..3 {
        assert_eq!(front.call("wipe", &[]).await.words(), "done", "nobody has said so yet");
    }
    assert!(front.names(&[]).await.is_empty());
    assert!(front.call("wipe", &[]).await.words().contains("isn't here"));
    assert_eq!(front.call("wipe", &[ADMIN]).await.words(), "done");
}

#[tokio::test]
async fn a_list_that_depends_on_the_caller_is_private() {
    let backend = Backend::with(&["wipe", "look"]).await;
    let list = Front::before(&backend, ROLES).await.list(&[ADMIN]).await;
    assert_eq!((&list["cacheScope"], &list["ttlMs"]), (&json!("private"), &json!(600_000)));
    assert_eq!(Front::before(&backend, "").await.list(&[ADMIN]).await["cacheScope"], "public");
}

#[tokio::test]
async fn what_a_backends_lists_exclude_is_neither_listed_nor_called_and_says_so() {
    let backend = Backend::with(&["jira_read", "jira_write", "wiki_read"]).await;
    let front = Front::with(&backend, ", allow: ['jira_*'], deny: ['*_write']", "", &[]).await;
    assert_eq!(front.names(&[]).await, ["jira_read"]);
    for tool in ["jira_write", "wiki_read", "unheard_of"] {
        let answer = front.call(tool, &[]).await;
        assert_eq!((answer.status.as_u16(), answer.mark()), (200, "disallowed"));
        assert_eq!(
            (answer.facts()["code"].clone(), answer.json()["result"]["isError"].clone()),
            (json!("DISALLOWED"), json!(true))
        );
    }
    assert!(backend.calls().is_empty());
    assert_eq!(front.entry("wiki_read", "").await["statusReason"], "disallowed");
    assert!(front.metrics().await.contains("toolvane_tools_hidden{backend=\"demo\",reason=\"disallowed\"} 2"));
}

#[tokio::test]
async fn profiles_and_roles_have_lists_of_their_own() {
    let backend = Backend::with(&["jira_read", "jira_write"]).await;
    let settings = "access: {profile_header: x-profile, profiles: {planner: {deny: ['*_write']}, default: {allow: []}},
        roles: {guest: {allow: ['nothing']}}}\n";
    let front = Front::before(&backend, settings).await;
    assert!(front.names(&[]).await.is_empty(), "who names no profile has the default's");
    assert_eq!(front.names(&[("x-profile", "planner")]).await, ["jira_read"]);
    assert!(front.names(&[("x-profile", "planner"), ("x-engine-roles", "guest")]).await.is_empty());
    assert_eq!(front.call("jira_write", &[("x-profile", "planner")]).await.mark(), "disallowed");
    assert_eq!(front.entry("jira_write", "profile=planner").await["statusReason"], "disallowed");
}

#[tokio::test]
async fn a_profile_from_a_source_that_is_not_trusted_is_not_believed() {
    let backend = Backend::with(&["look"]).await;
    let settings = "identity: {trusted_sources: [10.0.0.0/8]}\n\
        access: {profile_header: x-profile, profiles: {planner: {}, default: {allow: []}}}\n";
    let front = Front::before(&backend, settings).await;
    assert!(front.names(&[("x-profile", "planner")]).await.is_empty());
}

#[tokio::test]
async fn what_the_operator_excludes_cannot_be_reached_around_the_gate() {
    let backend = Backend::with(&["wipe", "look"]).await;
    let settings = format!("limits: {{body_peek: 4KiB}}\n{ROLES}");
    let front = Front::with(&backend, ", deny: [shut]", &settings, &[]).await;
    let calls = || backend.calls().len();
    // In a batch, as a continuation, under another name in the header.
    let batch = front.post(&json!([call(1, "look"), call(2, "wipe")]), &[]).await.json();
    assert_eq!((batch[0]["id"].clone(), batch[1]["error"]["code"].clone()), (json!(1), json!(-32602)));
    assert_eq!(calls(), 0);
    let continued = json!({"name": "shut", "inputResponses": {}});
    let continued = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": continued});
    assert_eq!(front.post(&continued, &[]).await.mark(), "disallowed");
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28"});
    let modern = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "shut", "_meta": meta}});
    assert_eq!(front.post(&modern, &[("mcp-name", "look")]).await.mark(), "disallowed");
    assert_eq!(calls(), 0);
    // Read in two ways, compressed, too long to be read, without an id.
    let raw = |body: String, headers: &'static [(&'static str, &'static str)]| {
        let to = front.running.listen[0];
        async move { exchange(to, "POST", "/mcp", headers, &body).await }
    };
    let twice = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"look","name":"wipe"}}"#;
    assert_eq!(raw(twice.to_owned(), &[]).await.status.as_u16(), 400);
    assert_eq!(raw(twice.to_owned(), &[("content-encoding", "gzip")]).await.status.as_u16(), 415);
    let mut long = call(1, "wipe");
    long["params"]["arguments"] = Value::from("x".repeat(8192));
    assert_eq!(raw(long.to_string(), &[]).await.status.as_u16(), 413);
    let silent = r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"wipe"}}"#;
    assert_eq!(raw(silent.to_owned(), &[]).await.status.as_u16(), 400);
    assert_eq!(calls(), 0);
    assert_eq!(front.call("look", &[]).await.words(), "done");
}

#[tokio::test]
async fn where_nothing_is_excluded_what_cannot_be_read_passes_as_ever() {
    let backend = Backend::with(&["look"]).await;
    let front = Front::before(&backend, "").await;
    let twice = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wipe","name":"look"}}"#;
    let answer = exchange(front.running.listen[0], "POST", "/mcp", &[], twice).await;
    assert_eq!((answer.status.as_u16(), answer.words()), (200, "done".to_owned()));
}
