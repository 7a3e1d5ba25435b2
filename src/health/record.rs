//! What one finished call does to what is believed (DESIGN 4, 8). This file: successes, and what any answer disproves; what
//! a failure does is in `failure`.
//!
//! A call that began before the present status was set changes no status (STATE 4.10, T16).

use std::sync::Arc;
use std::time::Duration;

use super::caller::{ANONYMOUS, Caller};
use super::cascade::{self, ToolRef};
use super::cause::Cause;
use super::document::{Status, WHOLE_BACKEND};
use super::effect::Effect;
use super::entry::{Change, Entry};
use super::judge::Count;
use super::lease::Permit;
use super::policy::Policy;
use super::registry::{Draw, Registry};
use super::scene::Scene;
use super::scope;
use super::slot::Slot;
use crate::clock::Now;
use crate::rules::{Classification, Disproves, Finding, Kind, Scope, Verdict};

/// One admitted call, to be recorded once. Dropping it instead abandons it: the permit goes back, nothing is learned.
#[derive(Debug)]
pub struct Call {
    /// Who called.
    pub caller: Arc<Caller>,
    /// What was called.
    pub at: ToolRef,
    /// The tool's settings when the call was admitted.
    pub policy: Arc<Policy>,
    /// When the request began.
    pub started: Now,
    /// The permit, if it was admitted as a trial.
    pub permit: Option<Permit>,
    /// The target that the arguments name (a host), for tools that have targets.
    pub target: Option<Arc<str>>,
    /// How long the answer took, where that is not the time until it is recorded (a stream); held against `slow_call`.
    pub duration: Option<Duration>,
}

impl Registry {
    /// Takes in the outcome of a call, exactly once. While frozen only the permit goes back.
    pub fn record(&self, call: Call, verdict: &Verdict, now: Now, draw: Draw<'_>) -> Vec<Effect> {
        if self.is_frozen() {
            return Vec::new();
        }
        let scene = Scene { registry: self, call: &call, now };
        let mut step = Step { scene, draw, effects: Vec::new() };
        match (verdict.kind, &verdict.finding) {
            (Kind::Success, _) => step.success(),
            (Kind::Neutral, finding) => {
                // A protocol answer without a finding is an answer all the same.
                step.disprove(finding.as_ref().map_or(Disproves::Transport, |finding| finding.disproves), true);
                if let Some(finding) = finding {
                    step.neutral(finding);
                }
            }
            (Kind::Failure, Some(finding)) => step.failure(finding),
            (Kind::Failure, None) => {}
        }
        let mut effects = step.effects;
        self.report_evictions(&mut effects);
        // Only now may the next trial begin: what this one showed has been written.
        drop(call);
        effects
    }
}

/// One call being recorded.
pub(super) struct Step<'a> {
    pub(super) scene: Scene<'a>,
    pub(super) draw: Draw<'a>,
    pub(super) effects: Vec<Effect>,
}

impl Step<'_> {
    fn success(&mut self) {
        let Scene { registry, call, .. } = self.scene;
        registry.backends.answered(&call.at.backend, call.started.tick);
        registry.backends.succeeded(&call.at.backend, self.scene.now.tick);
        self.add_success();
        let slots = cascade::all(&registry.slots, &call.caller, &call.at);
        let narrowest = slots.iter().find(|slot| slot.is_unwell()).map(|slot| slot.key.scope);
        for slot in &slots {
            let whole = slot.key.tool_name == WHOLE_BACKEND;
            if whole {
                slot.lock().evidence.tools.clear();
            }
            if slot.has_cooldowns() {
                self.clear_cooldowns(slot);
            }
            if slot.is_unwell() && Some(slot.key.scope) == narrowest {
                self.recover(slot, |entry| !entry.is_degraded_by_judge(), "a call succeeded");
            } else if slot.is_unwell() && whole {
                self.recover(slot, |entry| entry.cause == Cause::Transport, "the backend answered");
            }
        }
    }

    /// Adds a success to the tool's evidence, and to what is counted about it at other scopes.
    fn add_success(&mut self) {
        let Scene { registry, now, .. } = self.scene;
        let (scene, sample, home) = (self.scene, self.scene.sample(Count::Success), self.scene.home());
        for scope in Scope::ALL {
            let Some(key) = scene.key(scope) else { continue };
            if scope != home && !registry.slots.pin().contains_key(&key) {
                continue;
            }
            let effect = registry.write(key, now, |slot, inner| scene.take_success(slot, inner, sample));
            self.effects.extend(effect);
        }
    }

    fn clear_cooldowns(&mut self, slot: &Arc<Slot>) {
        let Scene { registry, call, now } = self.scene;
        let user = call.caller.user.as_deref().unwrap_or(ANONYMOUS);
        let cleared = registry.write_slot(slot, now, |inner| {
            let cleared = inner.entry.as_mut().map_or(0, |entry| entry.cooldowns.clear(user, now));
            inner.dirty |= cleared > 0;
            cleared
        });
        if let Some(cooldowns @ 1..) = cleared {
            self.effects.push(Effect::Cleared { key: slot.key.clone(), cooldowns });
        }
    }

    /// Turns an entry to OK if `ends` says so and this call began after its status was set.
    fn recover(&mut self, slot: &Arc<Slot>, ends: impl Fn(&Entry) -> bool, note: &str) {
        let (scene, started) = (self.scene, self.scene.call.started);
        let effect = scene.registry.write_slot(slot, scene.now, |inner| {
            let entry = inner.entry.as_ref()?;
            let is_trial = scene.call.permit.as_ref().is_some_and(|permit| Arc::ptr_eq(permit.slot(), slot));
            if entry.status == Status::Ok || entry.is_later_than(started) || !ends(entry) {
                return None;
            }
            if entry.is_set_down(scene.now) && !is_trial {
                return None;
            }
            inner.evidence.forget_failures();
            Some(scene.set(slot, inner, Change::recovery("success", Arc::from(note), started), 0.0))
        });
        self.effects.extend(effect.flatten());
    }

    /// Ends what this outcome disproves: the backend's `*` entries, and, unless the call itself counts against the tool, the
    /// tool's own narrowest entry.
    pub(super) fn disprove(&mut self, proof: Disproves, spares_tool: bool) {
        let Scene { registry, call, .. } = self.scene;
        if proof == Disproves::Nothing {
            return;
        }
        registry.backends.answered(&call.at.backend, call.started.tick);
        if registry.unwell() == 0 {
            return;
        }
        let mut slots = cascade::all(&registry.slots, &call.caller, &call.at);
        slots.retain(|slot| slot.is_unwell());
        let narrowest = slots.first().map(|slot| slot.key.scope);
        for slot in &slots {
            if slot.key.tool_name == WHOLE_BACKEND || (spares_tool && Some(slot.key.scope) == narrowest) {
                let ends = |entry: &Entry| entry.cause.is_disproved_by(proof) && !entry.is_degraded_by_judge();
                self.recover(slot, ends, "an answer disproved the cause");
            }
        }
    }

    /// What the caller may not do or did wrong: a cooldown at most (T17).
    fn neutral(&mut self, finding: &Finding) {
        if matches!(finding.classification, Classification::UserPermission | Classification::UserInput) {
            let target = scope::target(&self.scene.call.caller, &self.scene.call.policy, finding);
            self.cool_only(&target, finding);
        }
        self.called_in_vain();
    }
}
