//! Refresh tokens that are exchanged by a probe.

use serde_json::json;

use super::support::{Backend, Front, Service};

const SECRETS: [(&str, &str); 2] = [("REFRESH", "r-token"), ("SECRET", "c-secret")];

async fn front(token: &Service, api: Option<&Service>, backend: &Backend) -> Front {
    let request = api.map(|api| format!(", request: 'GET {}'", api.url())).unwrap_or_default();
    let settings = format!(
        "integrations: {{gmail: {{probe: {{oauth: {{token_url: '{}', client_id: me, client_secret: '${{env:SECRET}}', \
         refresh_token: '${{env:REFRESH}}', scope: mail}}{request}}}}}}}\ntools: {{'*': {{integration: gmail}}}}\n",
        token.url()
    );
    Front::with(backend, "", &settings, &SECRETS).await
}

#[tokio::test]
async fn a_refresh_token_is_exchanged_and_the_access_token_asks_the_service() {
    let (token, api, backend) = (Service::start().await, Service::start().await, Backend::with(&["a"]).await);
    token.answers(200, json!({"access_token": "fresh", "token_type": "Bearer"}));
    let front = front(&token, Some(&api), &backend).await;
    front.names(&[]).await;
    front.reaches("gmail", "ready").await;
    assert_eq!(
        token.seen()[0].body,
        "grant_type=refresh_token&refresh_token=r-token&client_id=me&client_secret=c-secret&scope=mail"
    );
    assert_eq!(api.seen()[0].headers["authorization"], "Bearer fresh");
    assert_eq!(api.seen()[0].line, "GET /me");
}

#[tokio::test]
async fn what_the_token_endpoint_says_decides_where_it_says_something() {
    for (status, body, state, found) in [
        (400, json!({"error": "invalid_grant"}), "auth_failed", "auth_failed"),
        (401, json!({"error": "invalid_client"}), "auth_failed", "auth_failed"),
        (200, json!({"access_token": "fresh"}), "ready", "ok"),
        (200, json!({}), "unknown", "error"),
        (400, json!({"error": "invalid_request"}), "unknown", "error"),
        (503, json!({}), "unknown", "transient"),
    ] {
        let (token, backend) = (Service::start().await, Backend::with(&["a"]).await);
        token.answers(status, body.clone());
        let front = front(&token, None, &backend).await;
        front.names(&[]).await;
        front.has_found(found, 1).await;
        front.reaches("gmail", state).await;
        assert_eq!(front.names(&[]).await.is_empty(), state == "auth_failed", "{status} {body}");
    }
}
