//! What an outcome would do to a tool of which nothing is known yet, for explanations. The state machine itself is asked, in
//! a registry of its own, so that the answer cannot differ from what the proxy does.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use super::backing::MemoryOnly;
use super::caller::Caller;
use super::cascade::ToolRef;
use super::document::{Document, Status};
use super::effect::Effect;
use super::list::Filter;
use super::policy::{Policy, Tuning};
use super::record::Call;
use super::registry::Registry;
use crate::clock::{Now, Tick, Wall};
use crate::rules::{Basis, Exchange, Explanation, Scope, Table, Verdict};

/// So many outcomes in a row are looked at, one a second.
const REPEATS_MAX: u32 = 20;
/// When the imagined calls begin: late enough that "five minutes ago" exists.
const BEGIN: Now = Now { tick: Tick(3_600_000), wall: Wall(1_767_225_600_000) };

/// Why an outcome is judged as it is, and what follows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explained {
    /// What decided, and why no earlier rule did.
    pub explanation: Explanation,
    /// Where the rule that decided is written, as `file:line:column`.
    pub place: Option<String>,
    /// What that does to a tool that was OK.
    pub forecast: Forecast,
}

/// Explains an outcome by the table that judges this caller's calls, under the settings of the tool.
pub fn explain(exchange: &Exchange, table: &Table, caller: &Caller, policy: &Policy, tuning: &Tuning) -> Explained {
    let explanation = table.explain(exchange);
    let finding = explanation.verdict.finding.as_ref().filter(|_| explanation.basis != Basis::NoRule);
    let place = finding.and_then(|finding| table.rule(&finding.rule)).map(|rule| rule.origin.to_string());
    let forecast = forecast(exchange, &explanation.verdict, caller, policy, tuning);
    Explained { explanation, place, forecast }
}

/// What one outcome does, and what follows if it goes on like that.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Forecast {
    /// How the tool stands for the caller after one such outcome.
    pub status: Status,
    /// Where the cooldown, or the status, is written; `None` if nothing is.
    pub scope: Option<Scope>,
    /// How long no such failure starts a new diagnosis, in seconds.
    pub cooldown_seconds: Option<u64>,
    /// When the tool would be taken to be back, in seconds from then.
    pub expected_recovery_seconds: Option<u64>,
    /// The backend is asked by connects before anything is believed.
    pub confirms_backend: bool,
    /// A diagnosis would be asked for.
    pub diagnosis: bool,
    /// What the same outcome over and over, one a second, leads to next.
    pub then: Option<Repeated>,
}

/// A change of status after several outcomes of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Repeated {
    /// So many outcomes in all.
    pub outcomes: u32,
    /// How the tool then stands for the caller.
    pub status: Status,
}

/// What an exchange that was judged so does to a tool that is OK, for this caller, under these settings.
fn forecast(exchange: &Exchange, verdict: &Verdict, caller: &Caller, policy: &Policy, tuning: &Tuning) -> Forecast {
    let at = &ToolRef { backend: Arc::clone(&exchange.backend), tool: Arc::clone(&exchange.tool) };
    let registry = Registry::new(Tuning { documents_max: 64, ..tuning.clone() }, Arc::new(MemoryOnly));
    let (caller, policy) = (Arc::new(caller.clone()), Arc::new(policy.clone()));
    let mut effects = Vec::new();
    let mut after = |second: u32| {
        let now = BEGIN.after(Duration::from_secs(second.into()));
        let call = Call {
            caller: Arc::clone(&caller),
            at: at.clone(),
            policy: Arc::clone(&policy),
            started: now,
            permit: None,
            target: exchange.targets.first().map(|host| Arc::from(host.as_str())),
            duration: None,
        };
        effects.extend(registry.record(call, verdict, now, &mut || 0.0));
        (registry.lookup(&caller, at, now).status, now)
    };
    let (status, now) = after(0);
    let documents = registry.documents(&Filter::default(), now);
    let then = (1..REPEATS_MAX).map(|second| (second + 1, after(second).0)).find(|(_, then)| *then != status);
    Forecast {
        status,
        scope: documents.iter().find(|document| says_something(document)).map(|document| document.key.scope),
        cooldown_seconds: documents
            .iter()
            .flat_map(|document| &document.cooldowns)
            .map(|cooldown| seconds_until(cooldown.next_spawn_allowed_at, now))
            .max(),
        expected_recovery_seconds: documents
            .iter()
            .filter_map(|document| document.expected_recovery_at)
            .map(|at| seconds_until(at, now))
            .max(),
        confirms_backend: effects.iter().any(|effect| matches!(effect, Effect::ConfirmBackend { .. })),
        diagnosis: effects.iter().any(|effect| matches!(effect, Effect::Claimed(_))),
        then: then.map(|(outcomes, status)| Repeated { outcomes, status }),
    }
}

fn says_something(document: &Document) -> bool {
    document.status != Status::Ok || !document.cooldowns.is_empty()
}

fn seconds_until(at: Wall, now: Now) -> u64 {
    u64::try_from(at.0.saturating_sub(now.wall.0)).unwrap_or(0).div_ceil(1000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{BackendKind, Limits, load};

    fn of(status: u16, headers: &[(&'static str, &str)], caller: &Caller) -> Forecast {
        let table = load(&[], Limits::default()).unwrap();
        let mut exchange = Exchange { kind: BackendKind::Http, status: Some(status), ..Exchange::default() };
        for (name, value) in headers {
            exchange.headers.insert(*name, value.parse().unwrap());
        }
        forecast(&exchange, &table.judge(&exchange), caller, &Policy::default(), &Tuning::default())
    }

    #[test]
    fn each_kind_of_outcome_leads_where_the_state_machine_leads() {
        let somebody = Caller::somebody();
        let denied = of(403, &[], &somebody);
        assert_eq!((denied.status, denied.scope, denied.then), (Status::Ok, Some(Scope::User), None));
        assert_eq!(denied.cooldown_seconds, Some(24 * 3600));
        let broken = of(500, &[], &somebody);
        assert_eq!(broken.then, Some(Repeated { outcomes: 5, status: Status::Down }));
        let success = of(200, &[], &somebody);
        assert_eq!((success.status, success.scope, success.cooldown_seconds), (Status::Ok, None, None));
        let throttled = of(429, &[("retry-after", "120")], &somebody);
        assert_eq!((throttled.status, throttled.cooldown_seconds), (Status::Ok, Some(120)));
    }

    #[test]
    fn the_fault_of_a_caller_without_a_name_changes_no_status() {
        let nobody = Caller { user: None, ..Caller::somebody() };
        assert_eq!(of(403, &[], &nobody).scope, Some(Scope::Project));
    }
}
