//! Integrations with a probe: what hides, what does not, and when the service is asked (DESIGN 11).

use std::time::Duration;

use serde_json::json;
use toolvane::readiness::Finding;
use toolvane::telemetry::ProbeResult;

use super::support::{Backend, Front, Listening, Service, TTL, TTL_SPREAD};

const BOTH: [&str; 2] = ["gmail_search", "other"];
const OTHER: [&str; 1] = ["other"];

async fn gmail(more: &str) -> (Service, Backend, Front) {
    let (service, backend) = (Service::start().await, Backend::with(&BOTH).await);
    let front = Front::before(&backend, &service.gmail(more)).await;
    (service, backend, front)
}

/// One that the service has refused already.
async fn refused() -> (Service, Backend, Front) {
    let (service, backend, front) = gmail("").await;
    service.answers(401, json!({}));
    assert_eq!(front.names(&[]).await, BOTH, "nobody knows yet");
    front.reaches("gmail", "auth_failed").await;
    assert_eq!(front.names(&[]).await, OTHER);
    (service, backend, front)
}

#[tokio::test]
async fn what_is_unknown_hides_nothing_and_is_asked_in_the_background() {
    let (service, _, front) = gmail("").await;
    assert_eq!(service.asked(), 0, "nobody wanted to know yet");
    service.hangs();
    assert_eq!(front.names(&[]).await, BOTH);
    service.is_asked(1).await;
    assert_eq!(front.call("gmail_search", &[]).await.words(), "done", "no call waits for a probe");
    assert_eq!(front.names(&[]).await, BOTH);
    assert_eq!(front.entry("gmail_search", "").await["statusReason"], json!(null));
    service.release(403);
    front.lists(&OTHER).await;
}

#[tokio::test]
async fn what_is_configured_is_asked_soon_after_the_start_before_anybody_wants_to_know() {
    let (service, _, front) = gmail("").await;
    service.answers(401, json!({}));
    front.clock.advance(Duration::from_secs(1));
    service.is_asked(1).await;
    front.lists(&OTHER).await;
    assert_eq!(service.asked(), 1);
}

#[tokio::test]
async fn a_thousand_lists_on_a_cold_cache_ask_once() {
    let (service, _, front) = gmail("").await;
    service.hangs();
    let lists = (0..1000).map(|_| front.names(&[]));
    for names in futures_join(lists).await {
        assert_eq!(names, BOTH);
    }
    service.is_asked(1).await;
    service.release(200);
    front.reaches("gmail", "ready").await;
    assert_eq!(service.asked(), 1);
}

async fn futures_join<T>(all: impl Iterator<Item = impl Future<Output = T>>) -> Vec<T> {
    let mut running: Vec<_> = all.map(|future| (Box::pin(future), None)).collect();
    std::future::poll_fn(|context| {
        for (future, done) in &mut running {
            if done.is_none()
                && let std::task::Poll::Ready(value) = future.as_mut().poll(context)
            {
                *done = Some(value);
            }
        }
        if running.iter().all(|(_, done)| done.is_some()) {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
    running.into_iter().filter_map(|(_, done)| done).collect()
}

#[tokio::test]
async fn a_call_of_what_is_not_set_up_is_answered_at_once_with_the_setup_step() {
    let (_service, backend, front) = refused().await;
    let answer = front.call("gmail_search", &[]).await;
    assert_eq!((answer.status.as_u16(), answer.mark()), (200, "integration_unconfigured"));
    assert_eq!(answer.json()["result"]["isError"], true);
    assert!(answer.words().contains("was not called") && answer.words().contains("Sign in."), "{}", answer.words());
    let facts = answer.facts();
    assert_eq!((&facts["statusReason"], &facts["integration"]), (&json!("integration_unconfigured"), &json!("gmail")));
    assert_eq!(facts["code"], "BACKEND_UNREACHABLE");
    assert!(backend.calls().is_empty());
    assert_eq!(front.call("other", &[]).await.words(), "done");
    let counted =
        "toolvane_short_circuits_total{backend=\"demo\",tool=\"gmail_search\",reason=\"integration_unconfigured\"} 1";
    assert!(front.metrics().await.contains(counted));
}

#[tokio::test]
async fn every_hidden_tool_has_a_visible_reason() {
    let (_service, _, front) = refused().await;
    let entry = front.entry("gmail_search", "user=alice").await;
    assert_eq!(entry["listed"], false);
    assert_eq!((&entry["status"], &entry["statusReason"]), (&json!("unavailable"), &json!("integration_unconfigured")));
    assert_eq!((&entry["integration"], &entry["setupStep"]), (&json!("gmail"), &json!("Sign in.")));
    let metrics = front.metrics().await;
    assert!(
        metrics.contains("toolvane_tools_hidden{backend=\"demo\",reason=\"integration_unconfigured\"} 1"),
        "{metrics}"
    );
    assert!(metrics.contains("toolvane_integration_state{integration=\"gmail\",state=\"auth_failed\"} 1"), "{metrics}");
}

#[tokio::test]
async fn an_answer_is_good_for_its_lifetime_and_served_while_it_is_asked_anew() {
    let (service, _, front) = gmail("").await;
    front.names(&[]).await;
    front.reaches("gmail", "ready").await;
    service.answers(401, json!({}));
    front.clock.advance(TTL - Duration::from_millis(1));
    assert_eq!(front.names(&[]).await, BOTH, "revoked, but believed for its lifetime");
    assert_eq!(service.asked(), 1, "not before its lifetime is over");
    service.hangs();
    front.clock.advance(TTL_SPREAD - TTL);
    assert_eq!(front.names(&[]).await, BOTH, "the old answer, while the service is asked");
    service.is_asked(2).await;
    assert_eq!(front.names(&[]).await, BOTH);
    service.release(401);
    front.lists(&OTHER).await;
    assert_eq!(service.asked(), 2);
}

#[tokio::test]
async fn a_blip_or_an_error_never_changes_the_list_and_starts_the_lifetime_anew() {
    let (service, _, front) = gmail("").await;
    front.names(&[]).await;
    front.reaches("gmail", "ready").await;
    let mut listening = Listening::to(&front).await;
    let (mut transient, mut error) = (0, 0);
    for status in [429, 500, 503, 404, 302].into_iter().cycle().take(50) {
        service.answers(status, json!({}));
        front.clock.advance(TTL_SPREAD);
        assert_eq!(front.names(&[]).await, BOTH, "{status}");
        let (found, times) = if status < 429 { ("error", &mut error) } else { ("transient", &mut transient) };
        *times += 1;
        front.has_found(found, *times).await;
        assert_eq!(front.names(&[]).await, BOTH, "{status}");
    }
    assert_eq!((service.asked(), transient, error), (51, 30, 20));
    assert_eq!(front.admin("/v1/integrations/gmail").await["state"], "ready");
    assert_eq!(listening.told(), 0);
}

#[tokio::test]
async fn a_hiding_verdict_that_nothing_confirms_for_two_lifetimes_is_forgotten() {
    let (service, _, front) = refused().await;
    service.answers(503, json!({}));
    front.clock.advance(TTL_SPREAD);
    assert_eq!(front.names(&[]).await, OTHER);
    front.has_found("transient", 1).await;
    assert_eq!(front.names(&[]).await, OTHER, "one blip confirms nothing and changes nothing");
    front.clock.advance(2 * TTL - TTL_SPREAD);
    assert_eq!(front.names(&[]).await, BOTH);
    assert_eq!(front.admin("/v1/integrations/gmail").await["state"], "unknown");
}

#[tokio::test]
async fn what_is_confirmed_stays_hidden_for_as_long_as_it_is() {
    let (service, _, front) = refused().await;
    for times in 2..6 {
        front.clock.advance(TTL_SPREAD);
        assert_eq!(front.names(&[]).await, OTHER);
        service.is_asked(times).await;
        front.has_found("auth_failed", times).await;
    }
    service.answers(200, json!({}));
    front.clock.advance(TTL_SPREAD);
    front.lists(&BOTH).await;
}

#[tokio::test]
async fn a_service_that_nobody_reaches_hides_nothing() {
    let backend = Backend::with(&BOTH).await;
    let nowhere = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let front = Front::before(
        &backend,
        &format!(
            "integrations: {{gmail: {{probe: {{request: 'GET http://{nowhere}/'}}}}}}\n\
             tools: {{'gmail_*': {{integration: gmail}}}}\n"
        ),
    )
    .await;
    front.names(&[]).await;
    front.has_found("transient", 1).await;
    assert_eq!(front.names(&[]).await, BOTH);
}

#[tokio::test]
async fn a_probe_that_takes_too_long_is_a_blip() {
    let (service, _, front) = gmail(", timeout: 50ms").await;
    service.hangs();
    front.names(&[]).await;
    front.has_found("transient", 1).await;
    assert_eq!(front.names(&[]).await, BOTH);
    assert_eq!(front.admin("/v1/integrations/gmail").await["detail"], "no answer in time");
}

#[tokio::test]
async fn an_answer_is_told_by_its_body_where_the_status_says_nothing() {
    let (service, _, front) =
        gmail(", unconfigured: [{status: 200, json: {/ok: false, /error: [not_installed]}}]").await;
    service.answers(200, json!({"ok": false, "error": "not_installed"}));
    front.names(&[]).await;
    front.lists(&OTHER).await;
    assert_eq!(front.admin("/v1/integrations/gmail").await["state"], "unconfigured");
}

#[tokio::test]
async fn invalidating_asks_anew_at_once() {
    let (service, _, front) = refused().await;
    service.answers(200, json!({}));
    let answer = front.admin_post("/v1/integrations/gmail/invalidate", &[]).await;
    assert_eq!(answer.status.as_u16(), 202);
    front.lists(&BOTH).await;
    assert_eq!(service.asked(), 2);
    service.answers(403, json!({}));
    assert_eq!(front.admin_post("/v1/integrations/invalidate", &[]).await.status.as_u16(), 202);
    front.lists(&OTHER).await;
    assert_eq!(service.asked(), 3);
}

#[tokio::test]
async fn what_was_invalidated_and_cannot_be_confirmed_is_forgotten() {
    let (service, _, front) = refused().await;
    service.answers(503, json!({}));
    front.admin_post("/v1/integrations/gmail/invalidate", &[]).await;
    front.lists(&BOTH).await;
    assert_eq!(front.admin("/v1/integrations/gmail").await["state"], "unknown");
}

#[tokio::test]
async fn without_a_background_nothing_is_asked_and_a_test_speaks_for_the_service() {
    let (service, backend) = (Service::start().await, Backend::with(&BOTH).await);
    let front = Front::before(&backend, &format!("readiness: {{background: false}}\n{}", service.gmail(""))).await;
    assert_eq!(front.names(&[]).await, BOTH);
    front.running.integrations().record("gmail", Finding::new(ProbeResult::Unconfigured, "as the test says"));
    assert_eq!(front.names(&[]).await, OTHER);
    assert_eq!(front.admin("/v1/integrations/gmail").await["detail"], "as the test says");
    front.clock.advance(TTL_SPREAD);
    assert_eq!(front.names(&[]).await, OTHER);
    front.admin_post("/v1/integrations/gmail/invalidate", &[]).await;
    assert_eq!(front.names(&[]).await, BOTH);
    assert_eq!(service.asked(), 0);
}

#[tokio::test]
async fn at_most_so_many_services_are_asked_at_once() {
    let (service, backend) = (Service::start().await, Backend::with(&["t0", "t1", "t2", "t3", "t4", "t5"]).await);
    service.hangs();
    let integration = |n: usize| format!("i{n}: {{probe: {{request: 'GET {}'}}}}", service.url());
    let tool = |n: usize| format!("t{n}: {{integration: i{n}}}");
    let joined = |of: &dyn Fn(usize) -> String| (0..6).map(of).collect::<Vec<_>>().join(", ");
    let front = Front::before(
        &backend,
        &format!(
            "readiness: {{probes_max: 2}}\nintegrations: {{{}}}\ntools: {{{}}}\n",
            joined(&integration),
            joined(&tool)
        ),
    )
    .await;
    assert_eq!(front.names(&[]).await.len(), 6);
    service.is_asked(2).await;
    front.names(&[]).await;
    service.is_asked(2).await;
    service.release(200);
    for n in 0..6 {
        front.reaches(&format!("i{n}"), "ready").await;
    }
    assert_eq!(service.asked(), 6);
}

#[tokio::test]
async fn a_new_process_hides_nothing_until_a_probe_said_so() {
    let (service, backend, front) = refused().await;
    drop(front);
    service.hangs();
    let again = Front::before(&backend, &service.gmail("")).await;
    assert_eq!(again.admin("/v1/integrations/gmail").await["state"], "unknown");
    assert_eq!(again.names(&[]).await, BOTH);
    service.release(401);
    again.lists(&OTHER).await;
}

#[tokio::test]
async fn clients_hear_of_a_change_once_and_only_of_a_real_one() {
    let (service, _, front) = gmail("").await;
    front.names(&[]).await;
    front.reaches("gmail", "ready").await;
    let mut listening = Listening::to(&front).await;
    assert_eq!(listening.told(), 0, "that it is known now changes nothing");
    service.answers(401, json!({}));
    front.clock.advance(TTL_SPREAD);
    listening.hears("tools/list_changed").await;
    assert_eq!(front.names(&[]).await, OTHER);
    front.clock.advance(TTL_SPREAD);
    service.is_asked(3).await;
    front.has_found("auth_failed", 2).await;
    assert_eq!(listening.told(), 1, "confirmed is not changed");
}
