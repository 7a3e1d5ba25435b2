//! Acting on what a step of the health machine did: count and log it, confirm a doubt, tell clients that the list changed.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::confirm;
use super::notify::Word;
use super::shared::{Backend, Shared};
use crate::health::document::{ANY_BACKEND, WHOLE_BACKEND};
use crate::health::{Effect, Key, Mode, Transition};
use crate::mcp::reply;
use crate::telemetry::events::{
    Cause, CooldownStarted, DiagnosisClaim, Evicted, ListNotified, StatusChanged, TrialChanged,
};
use crate::telemetry::{Telemetry, TrialResult};

/// Acts on everything that happened.
pub(super) fn act(shared: &Arc<Shared>, effects: Vec<Effect>) {
    if effects.is_empty() {
        return;
    }
    let at = shared.clock.now().wall;
    for effect in effects {
        tell_operator(&shared.telemetry, &effect);
        shared.telemetry.publish_effect(&effect, at);
        match effect {
            Effect::Overridden { key, .. } | Effect::OverrideEnded { key, .. } => reads_differently(shared, &key),
            Effect::Deleted { key, .. } => believed_differently(shared, &key),
            Effect::ConfirmBackend { backend } => confirm::start(shared, &backend),
            Effect::Transition(Transition { key, .. }) | Effect::TrialFailed { key, .. } => {
                believed_differently(shared, &key);
                shared.dues.expect(&shared.registry, key);
            }
            _ => {}
        }
    }
}

/// What is DOWN and has become due for a trial is listed as usable from now on.
pub(super) fn became_due(shared: &Arc<Shared>) {
    for key in shared.dues.take(&shared.registry, shared.clock.now().tick) {
        believed_differently(shared, &key);
    }
}

/// The lists that name what this entry is about, unless that is only observed: then they read as before.
fn believed_differently(shared: &Arc<Shared>, key: &Key) {
    let tools = &shared.config.tools;
    let acts = |backend: &Backend| match &*key.tool_name {
        WHOLE_BACKEND => tools.enforce_any(),
        tool => tools.policy(&backend.name, tool).mode == Mode::Enforce,
    };
    for backend in concerned(shared, key).filter(|backend| acts(backend)) {
        list_changed(shared, &backend.name);
    }
}

fn reads_differently(shared: &Arc<Shared>, key: &Key) {
    for backend in concerned(shared, key) {
        list_changed(shared, &backend.name);
    }
}

fn concerned<'a>(shared: &'a Shared, key: &Key) -> impl Iterator<Item = &'a Arc<Backend>> {
    shared.backends.iter().filter(|backend| key.backend == *backend.name || key.backend == ANY_BACKEND)
}

fn tell_operator(telemetry: &Telemetry, effect: &Effect) {
    match effect {
        Effect::Transition(transition) => telemetry.emit(status_changed(transition)),
        Effect::TrialFailed { key, .. } => {
            telemetry.emit(TrialChanged { backend: &key.backend, tool: &key.tool_name, result: TrialResult::Failed })
        }
        Effect::CooldownSet { key, signature, classification, until, level, .. } => telemetry.emit(CooldownStarted {
            backend: &key.backend,
            tool: &key.tool_name,
            scope: key.scope,
            signature,
            classification: *classification,
            level: *level,
            until: *until,
        }),
        Effect::Claimed(claim) => telemetry.emit(DiagnosisClaim {
            backend: &claim.key.backend,
            tool: &claim.key.tool_name,
            signature: &claim.signature,
            claimed: true,
        }),
        Effect::Evicted { idle, unwell } => {
            telemetry.emit(Evicted { what: "document", count: u64::try_from(idle + unwell).unwrap_or(u64::MAX) })
        }
        Effect::DiagnosisThrottled { .. }
        | Effect::Cleared { .. }
        | Effect::Overridden { .. }
        | Effect::OverrideEnded { .. }
        | Effect::Deleted { .. }
        | Effect::ConfirmBackend { .. }
        | Effect::Widened { .. } => {}
    }
}

fn status_changed(transition: &Transition) -> StatusChanged<'_> {
    StatusChanged {
        backend: &transition.key.backend,
        tool: &transition.key.tool_name,
        scope: transition.key.scope,
        scope_id: transition.key.scope_id.as_deref(),
        from: transition.from,
        to: transition.to,
        cause: Cause {
            signature: transition.signature.as_deref(),
            classification: Some(transition.classification),
            rule: transition.by.strip_prefix("rule:"),
            origin: transition.origin,
        },
        next_trial_at: None,
        expected_recovery_at: transition.expected_recovery_at,
    }
}

/// The list of a backend reads differently: its clients are told, now or at the end of the interval.
pub(super) fn list_changed(shared: &Arc<Shared>, backend: &Arc<str>) {
    match shared.notifier.changed(backend, shared.clock.now().tick) {
        Word::Now => tell(shared, backend),
        Word::Pending => {}
        Word::After(wait) => {
            let (shared, backend) = (Arc::clone(shared), Arc::clone(backend));
            tokio::spawn(async move {
                tokio::time::sleep(wait).await;
                shared.notifier.caught_up(&backend, shared.clock.now().tick);
                tell(&shared, &backend);
            });
        }
    }
}

fn tell(shared: &Shared, backend: &str) {
    let announces = shared.backends.iter().find(|known| &*known.name == backend);
    if announces.is_some_and(|known| known.announces_tools.load(Ordering::Relaxed)) {
        let told = shared.streams.tell(backend, |listener| reply::tools_changed(listener.subscription.as_deref()));
        shared.telemetry.emit(ListNotified { backend, clients: u64::try_from(told).unwrap_or(u64::MAX) });
    }
}
