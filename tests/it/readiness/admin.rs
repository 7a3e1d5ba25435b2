//! The admin surface: integrations both ways, and who may have them asked anew.

use serde_json::json;

use super::support::{Backend, Front, Listening, Service};

#[tokio::test]
async fn the_edge_between_tools_and_integrations_is_shown_both_ways() {
    let (service, backend) = (Service::start().await, Backend::with(&["gmail_a", "gmail_b", "other"]).await);
    let front = Front::before(&backend, &service.gmail("")).await;
    front.names(&[]).await;
    front.reaches("gmail", "ready").await;
    let shown = front.admin("/v1/integrations").await["integrations"][0].clone();
    assert_eq!(shown["tools"], json!([{"backend": "demo", "tool": "gmail_a"}, {"backend": "demo", "tool": "gmail_b"}]));
    assert_eq!((&shown["patterns"], &shown["ttlSeconds"]), (&json!(["gmail_*"]), &json!(300)));
    assert_eq!((&shown["lastResult"], &shown["detail"]), (&json!("ok"), &json!("HTTP 200")));
    assert!(shown["nextProbeAt"].as_str().unwrap() > shown["lastProbeAt"].as_str().unwrap());
    let tools = front.admin("/v1/tools").await["tools"].clone();
    assert_eq!((&tools[0]["integration"], &tools[0]["status_reason"]), (&json!("gmail"), &json!(null)));
    assert_eq!((&tools[2]["tool"], &tools[2]["integration"]), (&json!("other"), &json!(null)));
    service.answers(401, json!({}));
    front.admin_post("/v1/integrations/gmail/invalidate", &[]).await;
    front.reaches("gmail", "auth_failed").await;
    let tools = front.admin("/v1/tools").await["tools"].clone();
    assert_eq!(tools[0]["status_reason"], "integration_unconfigured");
}

#[tokio::test]
async fn what_is_not_there_is_told_with_what_is() {
    let (service, backend) = (Service::start().await, Backend::with(&["a"]).await);
    let front = Front::before(&backend, &service.gmail("")).await;
    let absent = front.admin_post("/v1/integrations/gmial/invalidate", &[]).await;
    assert_eq!(absent.status.as_u16(), 404);
    assert!(absent.json()["detail"].as_str().unwrap().contains("there are gmail"), "{}", absent.body);
    assert_eq!(front.admin("/v1/integrations/gmial").await["status"], 404);
    assert!(front.admin("/v1/manifest?usr=alice").await["detail"].as_str().unwrap().contains("profile"));
}

#[tokio::test]
async fn a_web_page_changes_nothing() {
    let (service, backend) = (Service::start().await, Backend::with(&["a"]).await);
    let front = Front::before(&backend, &service.gmail("")).await;
    let answer = front.admin_post("/v1/integrations/gmail/invalidate", &[("origin", "https://evil.example")]).await;
    assert_eq!(answer.status.as_u16(), 403);
    assert_eq!(service.asked(), 0);
}

#[tokio::test]
async fn followers_of_events_hear_of_integrations_and_of_the_tools_that_they_hide_and_show() {
    let (service, backend) = (Service::start().await, Backend::with(&["gmail_a", "other"]).await);
    let front = Front::before(&backend, &service.gmail("")).await;
    let mut events = Listening::events(&front, "readiness").await;
    front.names(&[]).await;
    events.hears(r#""from":"unknown","integration":"gmail","kind":"readiness","to":"ready"}"#).await;
    service.answers(401, json!({}));
    front.admin_post("/v1/integrations/gmail/invalidate", &[]).await;
    events.hears(r#""from":"ready","integration":"gmail","kind":"readiness","to":"auth_failed"}"#).await;
    let hidden = r#""kind":"readiness","statusReason":"integration_unconfigured","toolName":"gmail_a"}"#;
    events.hears(hidden).await;
    service.answers(200, json!({}));
    front.admin_post("/v1/integrations/gmail/invalidate", &[]).await;
    events.hears(r#""from":"auth_failed","integration":"gmail","kind":"readiness","to":"ready"}"#).await;
    events.hears(r#""kind":"readiness","statusReason":null,"toolName":"gmail_a"}"#).await;
}
