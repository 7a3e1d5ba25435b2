//! Credentials that are there or not: of integrations, of tools, and those that a backend declares (DESIGN 11).

use serde_json::json;

use super::support::{Backend, Front, Listening, Service};

fn file_tool(path: &std::path::Path) -> String {
    format!("tools: {{search: {{credentials_required: [{{file: {}}}], setup_hint: Save the key.}}}}\n", path.display())
}

#[tokio::test]
async fn a_missing_variable_hides_and_one_that_was_there_at_the_start_does_not() {
    let backend = Backend::with(&["search", "other"]).await;
    let settings = "tools: {search: {credentials_required: [{env: TAVILY_API_KEY}]}}\n";
    for (environment, names) in [
        (&[][..], &["other"][..]),
        (&[("TAVILY_API_KEY", "")], &["other"]),
        (&[("TAVILY_API_KEY", " \t\n")], &["other"]),
        (&[("TAVILY_API_KEY", "k")], &["search", "other"]),
    ] {
        let front = Front::with(&backend, "", settings, environment).await;
        assert_eq!(front.names(&[]).await, names, "{environment:?}");
        let answer = front.call("search", &[]).await;
        assert_eq!(answer.mark(), if names.len() == 2 { "" } else { "credentials_missing" });
    }
    assert_eq!(backend.calls().len(), 1);
}

#[tokio::test]
async fn a_file_that_appears_brings_the_tool_and_one_that_goes_takes_it() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key");
    let backend = Backend::with(&["search", "other"]).await;
    let front = Front::before(&backend, &file_tool(&key)).await;
    assert_eq!(front.names(&[]).await, ["other"]);
    let answer = front.call("search", &[]).await;
    assert_eq!(answer.facts()["statusReason"], "credentials_missing");
    assert_eq!(answer.facts()["retryAfterSeconds"], json!(null), "waiting alone does not help");
    assert!(answer.words().contains("Setup step: Save the key."), "{}", answer.words());
    let entry = front.entry("search", "").await;
    assert_eq!(entry["missing"], json!([format!("file:{}", key.display())]));

    let mut listening = Listening::to(&front).await;
    std::fs::write(&key, " \n\t\r\n").unwrap();
    assert_eq!(front.names(&[]).await, ["other"], "nothing but blanks is no key");
    std::fs::write(&key, "k").unwrap();
    listening.hears("tools/list_changed").await;
    assert_eq!(front.names(&[]).await, ["search", "other"]);
    assert_eq!(front.call("search", &[]).await.words(), "done");
    assert_eq!(listening.told(), 1);
    std::fs::remove_file(&key).unwrap();
    front.lists(&["other"]).await;
}

#[tokio::test]
async fn a_key_of_a_watched_env_file_counts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(".env");
    std::fs::write(&path, "OTHER=1\nKEY=\n").unwrap();
    let backend = Backend::with(&["search"]).await;
    let settings =
        format!("tools: {{search: {{credentials_required: [{{env_file: {}, key: KEY}}]}}}}\n", path.display());
    let front = Front::before(&backend, &settings).await;
    assert!(front.names(&[]).await.is_empty());
    std::fs::write(&path, "OTHER=1\nKEY=k\n").unwrap();
    front.lists(&["search"]).await;
}

#[tokio::test]
async fn a_changed_file_has_the_service_asked_anew_with_what_it_holds() {
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, "old\n").unwrap();
    let (service, backend) = (Service::start().await, Backend::with(&["search"]).await);
    service.answers(401, json!({}));
    let settings = format!(
        "integrations: {{it: {{probe: {{request: 'GET {}', headers: {{authorization: 'Bearer ${{file:{}}}'}}}}}}}}\n\
         tools: {{search: {{integration: it}}}}\n",
        service.url(),
        token.display()
    );
    let front = Front::before(&backend, &settings).await;
    front.names(&[]).await;
    front.lists(&[]).await;
    service.answers(200, json!({}));
    std::fs::write(&token, "new\n").unwrap();
    front.lists(&["search"]).await;
    let sent: Vec<_> = service.seen().iter().map(|seen| seen.headers["authorization"].clone()).collect();
    assert_eq!(sent, ["Bearer old", "Bearer new"]);
}

#[tokio::test]
async fn a_credential_that_is_no_text_is_named_by_its_place_and_never_shown() {
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, b"s3cret\xff\xfe").unwrap();
    let (service, backend) = (Service::start().await, Backend::with(&["search"]).await);
    let settings = format!(
        "integrations: {{gmail: {{probe: {{request: 'GET {}', headers: {{authorization: 'Bearer ${{file:{}}}'}}}}}}}}\n",
        service.url(),
        token.display()
    );
    let front = Front::before(&backend, &settings).await;
    front.admin("/v1/integrations").await;
    front.has_found("error", 1).await;
    let shown = front.admin("/v1/integrations/gmail").await;
    let detail = shown["detail"].as_str().unwrap_or_default();
    assert_eq!(detail, format!("file:{} is not UTF-8 text; write the credential as text", token.display()));
    assert!(!shown.to_string().contains("s3cret"), "{shown}");
    assert_eq!(service.asked(), 0);
}

#[tokio::test]
async fn an_integration_without_a_probe_is_gated_on_its_credentials_alone() {
    let backend = Backend::with(&["a", "b"]).await;
    let settings = "integrations: {it: {credentials_required: [{env: A}]}}\ntools: {a: {integration: it}}\n";
    let front = Front::with(&backend, "", settings, &[]).await;
    assert_eq!(front.names(&[]).await, ["b"]);
    assert_eq!(front.admin("/v1/integrations/it").await["state"], "credentials_missing");
    let front = Front::with(&backend, "", settings, &[("A", "x")]).await;
    assert_eq!(front.names(&[]).await, ["a", "b"]);
    assert_eq!(front.admin("/v1/integrations/it").await["state"], "ready");
}

#[tokio::test]
async fn while_a_credential_is_missing_the_service_is_not_asked() {
    let (service, backend) = (Service::start().await, Backend::with(&["a"]).await);
    let settings = format!(
        "integrations: {{it: {{credentials_required: [{{env: A}}], probe: {{request: 'GET {}'}}}}}}\n\
         tools: {{a: {{integration: it}}}}\n",
        service.url()
    );
    let front = Front::before(&backend, &settings).await;
    assert!(front.names(&[]).await.is_empty());
    assert_eq!(front.admin("/v1/integrations").await["integrations"][0]["state"], "credentials_missing");
    assert_eq!(service.asked(), 0);
}

#[tokio::test]
async fn nothing_is_guessed_from_names() {
    let (service, backend) = (Service::start().await, Backend::with(&["gmail_search"]).await);
    service.answers(401, json!({}));
    let settings = format!("integrations: {{gmail: {{probe: {{request: 'GET {}'}}}}}}\n", service.url());
    let front = Front::before(&backend, &settings).await;
    front.reaches("gmail", "auth_failed").await;
    assert_eq!(front.names(&[]).await, ["gmail_search"]);
}

fn declaring() -> Vec<serde_json::Value> {
    vec![
        json!({"name": "mapped", "annotations": {"credentials_required": ["MAPPED"]}}),
        json!({"name": "unmapped", "annotations": {"credentials_required": ["UNMAPPED"]}}),
        json!({"name": "own", "_meta": {"toolvane/integration": "absent"}}),
        json!({"name": "plain"}),
        json!({"name": "freed", "annotations": {"integration": "absent", "credentials_required": ["MAPPED"]}}),
    ]
}

const ABSENT: &str = "integrations: {absent: {credentials_required: [{env: NOT_THERE}]}, there: {}}\n";

#[tokio::test]
async fn what_a_backend_declares_gates_only_where_the_sidecar_can_tell_and_config_goes_first() {
    let backend = Backend::start(&declaring()).await;
    let settings = format!(
        "{ABSENT}readiness: {{credentials: {{MAPPED: {{env: NOT_THERE}}}}}}\n\
         tools: {{freed: {{integration: none, credentials_required: []}}}}\n"
    );
    let front = Front::before(&backend, &settings).await;
    assert_eq!(front.names(&[]).await, ["unmapped", "plain", "freed"]);
    assert_eq!(front.entry("mapped", "").await["statusReason"], "credentials_missing");
    assert_eq!(front.entry("own", "").await["integration"], "absent");
    assert_eq!(front.entry("unmapped", "").await["unchecked"], json!(["UNMAPPED"]));
    assert_eq!(front.entry("mapped", "").await["unchecked"], json!([]));
}

#[tokio::test]
async fn a_backend_may_name_the_integration_of_all_its_tools_and_a_tool_may_name_another() {
    let backend = Backend::start(&declaring()).await;
    let front = Front::with(
        &backend,
        ", integration: absent",
        &format!("{ABSENT}tools: {{plain: {{integration: there}}}}\n"),
        &[],
    )
    .await;
    assert_eq!(front.names(&[]).await, ["plain"]);
    let front = Front::with(&backend, ", integration: there", ABSENT, &[]).await;
    assert_eq!(front.names(&[]).await, ["mapped", "unmapped", "plain"], "what a tool declares is its own");
}
