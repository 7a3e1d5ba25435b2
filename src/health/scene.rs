//! One call being recorded, and what it may do to one entry whose lock is held: become worse, fail its trial, leave DEGRADED,
//! arm a cooldown. Each is one transition of STATE 4.10.

use std::sync::Arc;

use super::cascade::{self, KeyRef};
use super::cause::Cause;
use super::cooldown::Trigger;
use super::document::{Origin, Status};
use super::effect::{Claim, Effect};
use super::entry::Change;
use super::judge::{Count, DWELL, Judgement, Sample};
use super::record::Call;
use super::registry::Registry;
use super::retest::Probing;
use super::scope::{Target, hashed};
use super::slot::{Inner, Slot};
use crate::clock::Now;
use crate::rules::{Classification, Evidence, Finding, Scope};

/// The hand that the judge's transitions are signed with.
pub(super) const JUDGE: &str = "judge";

/// What every step of recording looks at.
#[derive(Clone, Copy)]
pub(super) struct Scene<'a> {
    pub(super) registry: &'a Registry,
    pub(super) call: &'a Call,
    pub(super) now: Now,
}

impl<'a> Scene<'a> {
    /// The key at a scope, for this call; `None` if the caller has nothing there.
    pub(super) fn key(self, scope: Scope) -> Option<KeyRef<'a>> {
        cascade::key(&self.call.caller, scope, &self.call.at.backend, &self.call.at.tool)
    }

    /// This call's outcome as evidence.
    pub(super) fn sample(self, count: Count) -> Sample {
        let took = self.call.duration.unwrap_or_else(|| self.now.tick.since(self.call.started.tick));
        Sample {
            count,
            slow: self.call.policy.slow_call.is_some_and(|limit| took > limit),
            user: hashed(self.call.caller.user.as_deref()),
            target: hashed(self.call.target.as_deref()),
        }
    }

    /// Whether this call began before the entry's status was set, so that it changes nothing (T16).
    pub(super) fn is_late(self, slot: &Slot, inner: &mut Inner) -> bool {
        inner.fetch(&slot.key, &*self.registry.backing, self.now);
        inner.entry.as_ref().is_some_and(|entry| entry.is_later_than(self.call.started))
    }

    /// Sets the status of the entry in a slot whose lock is held.
    pub(super) fn set(self, slot: &Slot, inner: &mut Inner, change: Change, draw: f64) -> Effect {
        if change.to == Status::Down {
            inner.evidence.probing = Probing::default();
        }
        let entry = inner.entry_mut(&slot.key, &*self.registry.backing, self.now);
        entry.set(&slot.key, change, self.now, (self.registry.tuning.history_size, draw))
    }

    /// Where the evidence of a success is kept: per tool, whoever calls; that of a session tool with its session.
    pub(super) fn home(self) -> Scope {
        let Call { caller, policy, .. } = self.call;
        match (policy.session_tool, &caller.session, &caller.user) {
            (true, Some(_), _) => Scope::Session,
            (true, None, Some(_)) => Scope::User,
            _ => Scope::Project,
        }
    }

    /// Adds a success to the evidence in a slot whose lock is held.
    pub(super) fn take_success(self, slot: &Slot, inner: &mut Inner, sample: Sample) -> Option<Effect> {
        if let Some(entry) = inner.entry.as_mut() {
            entry.last_checked = Some(self.now.wall);
            if entry.is_later_than(self.call.started) {
                return None;
            }
        }
        inner.evidence.window.add(sample, self.now.tick);
        inner.evidence.widening.clear();
        self.calm(slot, inner).or_else(|| self.slow(slot, inner))
    }

    /// A DEGRADED that the judge derived is left by its own threshold (T15).
    pub(super) fn calm(self, slot: &Slot, inner: &mut Inner) -> Option<Effect> {
        let entry = inner.entry.as_ref()?;
        let derived = entry.is_degraded_by_judge();
        let dwelt = self.now.tick.since(entry.since.tick) >= DWELL;
        if !(derived && dwelt && inner.evidence.window.is_calm(self.now.tick)) {
            return None;
        }
        let change = Change::recovery(JUDGE, Arc::from("at most one call in ten failed lately"), self.call.started);
        Some(self.set(slot, inner, change, 0.0))
    }

    /// Enough slow calls make DEGRADED, even if all succeed (T2).
    pub(super) fn slow(self, slot: &Slot, inner: &mut Inner) -> Option<Effect> {
        let well = inner
            .entry
            .as_ref()
            .is_none_or(|entry| entry.status == Status::Ok && !entry.is_later_than(self.call.started));
        if self.call.policy.slow_call.is_none() || !well || !inner.evidence.window.is_slow(self.now.tick) {
            return None;
        }
        let change = Change {
            to: Status::Degraded,
            classification: Classification::Intermittent,
            signature: Some(Arc::from("slow-call")),
            cause: Cause::Other,
            origin: Origin::Evidence,
            judged: true,
            by: Arc::from(JUDGE),
            note: Arc::from("most calls of the last minute were slow"),
            as_of: self.call.started,
            since: None,
            recovery: None,
            credential: None,
        };
        Some(self.set(slot, inner, change, 0.0))
    }

    /// Adds a failure to the window, if it counts towards anything, and says what the window adds up to.
    pub(super) fn weigh(self, inner: &mut Inner, finding: &Finding) -> Judgement {
        let count = match finding.evidence {
            Evidence::Nothing => return Judgement::Nothing,
            Evidence::Degraded => Count::Throttled,
            Evidence::Down | Evidence::Transport => Count::Failure,
        };
        let sample = self.sample(count);
        inner.evidence.window.add(sample, self.now.tick);
        inner.evidence.window.judge(
            sample.user,
            self.call.policy.has_targets && self.call.target.is_some(),
            self.now.tick,
        )
    }

    /// Sets a status that is worse than the present one. The judge's DOWN of a tool that flaps goes no further than DEGRADED.
    pub(super) fn worsen(self, slot: &Slot, inner: &mut Inner, mut change: Change, draw: f64) -> Option<Effect> {
        let judged_down = change.judged && change.to == Status::Down;
        let entry = inner.entry_counted(&slot.key, &*self.registry.backing, self.now);
        if entry.status == Status::Down {
            return None;
        }
        if judged_down && !entry.flap.allows_down(self.now) {
            change.to = Status::Degraded;
            change.note = Arc::from("goes down and up too often to be held down");
        }
        let is_worse = change.to > entry.status;
        inner.dirty |= judged_down;
        if !is_worse {
            return None;
        }
        Some(self.set(slot, inner, change, draw))
    }

    /// A failure of a DOWN entry by a call that holds its permit, or that began when its trial was due (a tool that is only
    /// observed admits more than the trial), is a failed trial (T10).
    pub(super) fn retrip(self, slot: &Slot, inner: &mut Inner, finding: &Finding, draw: f64) -> Option<Effect> {
        let entry = inner.entry.as_mut()?;
        let mine = self.call.permit.as_ref().is_some_and(|permit| std::ptr::eq(&**permit.slot(), slot));
        let is_trial = entry.status == Status::Down && (mine || self.call.started.tick >= entry.next_trial.tick);
        if !is_trial || entry.is_later_than(self.call.started) || !fails_trial(finding) {
            return None;
        }
        if entry.credential.is_some() {
            entry.credential = self.call.caller.credential.or(entry.credential);
        }
        inner.dirty = true;
        Some(entry.retrip(&slot.key, self.now, draw, finding.hint))
    }

    pub(super) fn by_judge(self, to: Status, finding: &Finding) -> Change {
        let note = match to {
            Status::Down => "failed in five different seconds without a success, and most lately",
            _ => "fails now and then",
        };
        let classification = match (to, finding.classification) {
            (Status::Degraded, _) => Classification::Intermittent,
            (_, Classification::Unclear) => Classification::TechnicallyBroken,
            (_, class) => class,
        };
        Change {
            judged: true,
            classification,
            by: Arc::from(JUDGE),
            note: Arc::from(note),
            credential: None,
            ..self.by_rule(to, finding)
        }
    }

    pub(super) fn by_rule(self, to: Status, finding: &Finding) -> Change {
        let users = finding.credential_fault || finding.classification == Classification::UserSpecificTechnical;
        let note = finding.note.clone().unwrap_or_else(|| Arc::clone(&finding.signature));
        Change {
            to,
            classification: finding.classification,
            signature: Some(Arc::clone(&finding.signature)),
            cause: Cause::of(finding),
            origin: Origin::Evidence,
            judged: false,
            by: Arc::from(format!("rule:{}", finding.rule)),
            note,
            as_of: self.call.started,
            since: None,
            recovery: finding.hint,
            credential: self.call.caller.credential.filter(|_| users),
        }
    }

    /// Triggers the cooldown of a failure and, if it is unclear, claims its diagnosis.
    pub(super) fn cool(self, slot: &Slot, inner: &mut Inner, target: &Target, finding: &Finding) -> Vec<Effect> {
        let (now, user, signature) = (self.now, target.user.as_ref(), &finding.signature);
        let longest = self.registry.tuning.cooldown_max;
        let entry = inner.entry_counted(&slot.key, &*self.registry.backing, now);
        let recovery = entry.recovery_ahead(now);
        let given = finding.hint.or(finding.cooldown);
        let trigger = Trigger { signature, user, class: finding.classification, given, recovery, longest };
        let Some(armed) = entry.cooldowns.trigger(&trigger, now) else { return Vec::new() };
        let (until, level) = (armed.until, armed.level);
        inner.dirty = true;
        let mut effects = vec![Effect::CooldownSet {
            key: slot.key.clone(),
            signature: Arc::clone(signature),
            user: user.cloned(),
            classification: finding.classification,
            until: now.wall_at(until.tick),
            level,
        }];
        if finding.classification != Classification::Unclear || !inner.evidence.claims.is_free(signature, user, now) {
            return effects;
        }
        if !self.registry.take_token(now) {
            effects.push(Effect::DiagnosisThrottled { key: slot.key.clone() });
            return effects;
        }
        inner.evidence.claims.take(signature, user, until, now);
        effects.push(Effect::Claimed(Claim {
            key: slot.key.clone(),
            signature: Arc::clone(signature),
            user: user.cloned(),
            originating_user: self.call.caller.user.clone(),
            originating_session: self.call.caller.session.clone(),
        }));
        effects
    }
}

/// Whether a failure fails a trial: anything that says that the tool still does not work, throttling included. A text that
/// no rule knows says nothing.
fn fails_trial(finding: &Finding) -> bool {
    finding.evidence != Evidence::Nothing
        || matches!(
            finding.classification,
            Classification::TechnicallyBroken | Classification::UserSpecificTechnical | Classification::Intermittent
        )
}
