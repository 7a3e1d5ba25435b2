//! One of everything that can happen, told to a telemetry.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use toolvane::clock::Wall;
use toolvane::health::{Origin, Status};
use toolvane::rules::verdict::{Disproves, Evidence};
use toolvane::rules::{Classification, DispatchCode, Finding, HealthAction, Scope, TransportFault};
use toolvane::store::{Opened, Report, Stats};
use toolvane::telemetry::events::{
    CallEnded, Cause, ConnectFailed, CooldownStarted, DiagnosisClaim, DocumentNote, DocumentRead, Draining, Evicted,
    IdentityHeaderDropped, IntegrationChanged, IntegrationProbed, InternalError, LimitRejected, ListHandled,
    ListNotified, Probed, Reloaded, ShortCircuited, Started, StatusChanged, Stopped, StoreOpened, StoreReported,
    TokenRefused, ToolHidden, TrialChanged, WouldShortCircuit,
};
use toolvane::telemetry::trace::TraceContext;
use toolvane::telemetry::{
    HiddenTools, IntegrationState, ListResult, Outcome, ProbeResult, Reason, RequestKind, Sample, Settings, Telemetry,
    ToolState, TrialResult, Unjudged,
};

pub(crate) const NOON: Wall = Wall(1_772_452_800_500);

pub(crate) fn telemetry(tools_max: usize) -> Telemetry {
    Telemetry::new(&Settings { version: "1.2.3".into(), revision: "abc".into(), tools_max })
}

pub(crate) fn finding(rule: &str, signature: &str) -> Finding {
    Finding {
        rule: Arc::from(rule),
        signature: Arc::from(signature),
        classification: Classification::TechnicallyBroken,
        dispatch_code: DispatchCode::BackendFailed,
        health_action: HealthAction::None,
        scope: None,
        cooldown: None,
        hint: None,
        evidence: Evidence::Down,
        disproves: Disproves::Transport,
        credential_fault: false,
        answer_as_result: false,
        note: None,
    }
}

pub(crate) fn call(telemetry: &Telemetry, tool: &str, outcome: Outcome, finding: Option<&Finding>) {
    traced_call(telemetry, tool, outcome, finding, None);
}

pub(crate) fn traced_call(
    telemetry: &Telemetry,
    tool: &str,
    outcome: Outcome,
    finding: Option<&Finding>,
    trace: Option<&TraceContext>,
) {
    telemetry.emit(CallEnded {
        tool: &telemetry.tool("jira", tool),
        name: tool,
        outcome,
        finding,
        duration: Duration::from_millis(300),
        upstream: Some(Duration::from_millis(250)),
        trace: trace.map(|trace| (trace, NOON)),
    });
}

/// Everything once, with a tool whose name needs escaping.
pub(crate) fn everything(telemetry: &Telemetry) {
    let backend = telemetry.backend("jira");
    RequestKind::ALL.iter().for_each(|kind| backend.request(*kind));
    Unjudged::ALL.iter().for_each(|reason| backend.unjudged(*reason));
    backend.connections().opened.inc();
    backend.connections().open.inc();
    telemetry.listener("proxy").opened.inc();
    let failed = finding("http-5xx", "http-503");
    call(telemetry, "search", Outcome::Success, None);
    call(telemetry, "search", Outcome::Failure, Some(&failed));
    call(telemetry, "odd \"name\\ \n", Outcome::Neutral, None);
    let search = telemetry.tool("jira", "search");
    for reason in Reason::ALL {
        telemetry.emit(ShortCircuited { tool: &search, name: "search", reason: *reason, signature: Some("http-503") });
        telemetry.emit(WouldShortCircuit { tool: &search, name: "search", reason: *reason, signature: None });
    }
    telemetry.emit(LimitRejected { limit: "limits.body_peek", value: 1024 });
    telemetry.emit(ConnectFailed { backend: "jira", fault: TransportFault::ConnectRefused });
    telemetry.emit(IdentityHeaderDropped { header: "x-user-id" });
    telemetry.emit(TokenRefused { reason: "signature" });
    documents(telemetry);
    health(telemetry);
    TrialResult::ALL
        .iter()
        .for_each(|result| telemetry.emit(TrialChanged { backend: "jira", tool: "search", result: *result }));
    ListResult::ALL.iter().for_each(|result| telemetry.emit(ListHandled { backend: "jira", result: *result }));
    telemetry.emit(ListNotified { backend: "jira", clients: 3 });
    integrations(telemetry);
    process(telemetry);
}

fn documents(telemetry: &Telemetry) {
    for result in [Ok(Some(2)), Ok(None), Err("answered with status 500")] {
        let place = "https://issuer.example/keys";
        telemetry.emit(DocumentRead { what: "jwks", place, result, news: true });
    }
    telemetry.emit(DocumentNote { position: "api.yaml:3:5", note: "`GET /a` has no operationId and is no tool" });
}

fn health(telemetry: &Telemetry) {
    telemetry.emit(StatusChanged {
        backend: "jira",
        tool: "search",
        scope: Scope::Project,
        scope_id: Some("default"),
        from: Status::Ok,
        to: Status::Down,
        cause: Cause {
            signature: Some("http-503"),
            classification: Some(Classification::TechnicallyBroken),
            rule: Some("http-5xx"),
            origin: Origin::Evidence,
        },
        next_trial_at: Some(NOON),
        expected_recovery_at: None,
    });
    telemetry.emit(CooldownStarted {
        backend: "jira",
        tool: "search",
        scope: Scope::User,
        signature: "http-403",
        classification: Classification::UserPermission,
        level: 1,
        until: NOON,
    });
    telemetry.emit(DiagnosisClaim { backend: "jira", tool: "search", signature: "fallback", claimed: true });
    telemetry.emit(Probed { backend: "jira", fault: None });
    telemetry.emit(Evicted { what: "document", count: 2 });
}

fn integrations(telemetry: &Telemetry) {
    for result in ProbeResult::ALL.iter().copied() {
        let took = Duration::from_millis(20);
        telemetry.emit(IntegrationProbed { integration: "gmail", result, detail: "HTTP 401", took });
    }
    telemetry.emit(IntegrationChanged { integration: "gmail", from: "ready", to: "auth_failed", detail: "HTTP 401" });
    for reason in [Some("integration_unconfigured"), None] {
        telemetry.emit(ToolHidden { backend: "jira", tool: "search", reason, integration: Some("gmail") });
    }
}

fn process(telemetry: &Telemetry) {
    telemetry.emit(Started { version: "1.2.3", listen: "127.0.0.1:8080", admin: "127.0.0.1:9090", backends: 1 });
    telemetry.emit(Reloaded { result: Ok("0123abcd"), needs_restart: &[], at: NOON });
    telemetry.emit(Reloaded { result: Err("line 3"), needs_restart: &[], at: NOON });
    telemetry.emit(InternalError { place: "store", why: "no reason" });
    let opened = Opened::Unwritable { why: "full".into() };
    telemetry.emit(StoreOpened { path: Path::new("/state"), opened: &opened, documents: 0 });
    telemetry.emit(StoreReported(&Report::CommitFailed { why: "full".into(), attempt: 1, queued: 1 }));
    telemetry.emit(Draining { in_flight: 1 });
    telemetry.emit(Stopped { cut_off: 0 });
}

/// A sample with all that a sample may hold.
pub(crate) fn sample() -> Sample {
    let state =
        |tool: &str, status| ToolState { backend: Arc::from("jira"), tool: Arc::from(tool), status, since: NOON };
    Sample {
        tools: vec![state("search", Status::Down), state("*", Status::Ok)],
        cooldowns: vec![
            (Arc::from("jira"), Classification::UserPermission, 2),
            (Arc::from("jira"), Classification::UserPermission, 1),
        ],
        documents: 7,
        hidden: vec![HiddenTools { backend: Arc::from("jira"), reason: "credentials_missing", count: 2 }],
        integrations: vec![IntegrationState { integration: Arc::from("gmail"), state: "auth_failed" }],
        store: Some(Stats { commits: 4, documents: 9, last_commit: Some(NOON), file_bytes: 4096, ..Stats::default() }),
        outcomes_left_out: 3,
    }
}
