//! What becomes of the list: bytes, words, lifetimes, modes (DESIGN 10).

use serde_json::json;

use super::support::{Backend, Front, Service, TTL, exchange};

const MISSING: &str = "tools: {search: {credentials_required: [{env: KEY}], setup_hint: Get a key.}}\n";

#[tokio::test]
async fn hidden_tools_are_cut_out_and_every_other_byte_stays() {
    let tools = [json!({"name": "search"}), json!({"name": "a", "description": "\u{e9}"}), json!({"name": "b"})];
    let backend = Backend::start(&tools).await;
    let plain = Front::before(&backend, "").await;
    let cut = Front::before(&backend, MISSING).await;
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let of = |front: &Front| front.running.listen[0];
    let (plain, cut) =
        (exchange(of(&plain), "POST", "/mcp", &[], body).await, exchange(of(&cut), "POST", "/mcp", &[], body).await);
    let expected = plain.body.replace(r#"{"name":"search"},"#, "").replace("600000", "5000");
    assert_eq!(cut.body, expected);
    assert_eq!(cut.headers["content-length"], expected.len().to_string());
}

#[tokio::test]
async fn what_is_annotated_stays_listed_with_the_reason_and_is_not_called() {
    let backend = Backend::with(&["search", "other"]).await;
    let front = Front::before(&backend, &format!("manifest: {{unready: annotate, annotate: both}}\n{MISSING}")).await;
    let list = front.list(&[]).await;
    assert_eq!(list["tools"][0]["description"], "A tool [not set up (credentials_missing): Get a key]");
    assert_eq!(list["tools"][0]["_meta"]["toolvane/health"]["statusReason"], "credentials_missing");
    assert_eq!(list["tools"][1], json!({"name": "other", "description": "A tool"}));
    assert_eq!(front.call("search", &[]).await.mark(), "credentials_missing");
    assert_eq!(front.entry("search", "").await["listed"], true);
}

#[tokio::test]
async fn what_is_only_observed_is_listed_as_it_is_and_passes() {
    let backend = Backend::with(&["search"]).await;
    let front = Front::before(&backend, &format!("mode: observe\n{MISSING}")).await;
    let plain = Front::before(&backend, "").await;
    assert_eq!(front.list(&[]).await, plain.list(&[]).await);
    assert_eq!(front.call("search", &[]).await.words(), "done");
    let entry = front.entry("search", "").await;
    assert_eq!((&entry["statusReason"], &entry["annotation"]), (&json!("credentials_missing"), &json!(null)));
}

#[tokio::test]
async fn a_list_lives_until_the_next_known_change_and_as_long_as_the_backend_says_where_there_is_none() {
    let (service, backend) = (Service::start().await, Backend::with(&["gmail_a", "other"]).await);
    let front = Front::before(&backend, &service.gmail("")).await;
    assert_eq!(front.list(&[]).await["ttlMs"], 600_000);
    front.reaches("gmail", "ready").await;
    assert_eq!(front.list(&[]).await["ttlMs"], 600_000, "all is well");
    service.answers(401, json!({}));
    front.admin_post("/v1/integrations/gmail/invalidate", &[]).await;
    front.lists(&["other"]).await;
    let lives = front.list(&[]).await["ttlMs"].as_u64().unwrap();
    let ttl = u64::try_from(TTL.as_millis()).unwrap();
    assert!((ttl..=ttl * 11 / 10).contains(&lives), "{lives}: until the service is asked again");
}

#[tokio::test]
async fn no_session_sees_another_list_than_the_next() {
    let backend = Backend::with(&["search", "other"]).await;
    let front = Front::before(&backend, MISSING).await;
    for session in ["s1", "s2"] {
        assert_eq!(front.names(&[("mcp-session-id", session)]).await, ["other"]);
    }
}
