//! What a failure does (DESIGN 7): evidence, a status at once if a rule says so, a cooldown, perhaps a diagnosis to be made,
//! and the faults of many users or many tools becoming one of the project or of the backend.

use std::sync::Arc;

use super::cascade::KeyRef;
use super::confirm::{Suspicion, star};
use super::document::{Origin, Status};
use super::effect::Effect;
use super::entry::Change;
use super::judge::Judgement;
use super::record::Step;
use super::scene::JUDGE;
use super::scope::{self, Target, hashed};
use crate::rules::{Classification, Evidence, Finding, HealthAction, Scope};

impl Step<'_> {
    pub(super) fn failure(&mut self, finding: &Finding) {
        let counts = matches!(finding.evidence, Evidence::Down | Evidence::Transport);
        self.disprove(finding.disproves, !counts);
        let explained = finding.evidence == Evidence::Transport && self.unreachable(finding);
        let target = scope::target(&self.scene.call.caller, &self.scene.call.policy, finding);
        match target.status.and_then(|scope| self.scene.key(scope)) {
            // What the backend's own entry explains says nothing about the tool: one dead server is one DOWN, and one retest.
            _ if explained => {}
            None => self.cool_only(&target, finding),
            Some(key) => self.count_against(key, &target, finding),
        }
        if target.status == Some(Scope::User) && scope::may_widen(finding) {
            self.widen(finding);
        }
        self.fail_other_trial(finding);
        self.called_in_vain();
    }

    /// Counts a failure against the entry that it is written to (T1 to T3, T6, T10).
    fn count_against(&mut self, key: KeyRef<'_>, target: &Target, finding: &Finding) {
        let (scene, draw) = (self.scene, (self.draw)());
        let mut effects = Vec::new();
        let one_user = scene.registry.write(key, scene.now, |slot, inner| {
            if scene.is_late(slot, inner) {
                return None;
            }
            let entry = inner.entry_counted(&slot.key, &*scene.registry.backing, scene.now);
            let (was, repeated) = (entry.status, entry.cooldowns.holds(Classification::UserSpecificTechnical));
            let judged = scene.weigh(inner, finding);
            let mut one_user = None;
            if was == Status::Down {
                effects.extend(scene.retrip(slot, inner, finding, draw));
            } else if let Some(to) = at_once(finding, scene.call.policy.down_on_first_failure, repeated) {
                effects.extend(scene.worsen(slot, inner, scene.by_rule(to, finding), draw));
            } else {
                match judged {
                    Judgement::Nothing => {}
                    Judgement::Degraded => {
                        effects.extend(scene.worsen(slot, inner, scene.by_judge(Status::Degraded, finding), draw));
                    }
                    Judgement::Down => {
                        effects.extend(scene.worsen(slot, inner, scene.by_judge(Status::Down, finding), draw));
                    }
                    Judgement::OneUser(to) => one_user = Some(to),
                }
            }
            if finding.evidence != Evidence::Transport {
                effects.extend(scene.cool(slot, inner, target, finding));
            }
            one_user
        });
        self.effects.append(&mut effects);
        if let (Some(to), Some(key)) = (one_user, self.scene.key(Scope::User)) {
            self.write_worse(key, scene.by_judge(to, finding));
        }
    }

    /// Makes an entry worse, if this call began after its status was set.
    fn write_worse(&mut self, key: KeyRef<'_>, change: Change) -> bool {
        let (scene, draw) = (self.scene, (self.draw)());
        let effect = scene.registry.write(key, scene.now, |slot, inner| {
            if scene.is_late(slot, inner) { None } else { scene.worsen(slot, inner, change, draw) }
        });
        let changed = effect.is_some();
        self.effects.extend(effect);
        changed
    }

    /// A transport fault: a failed trial of the backend, or the reason to confirm that it is dead. Returns whether the backend
    /// is DOWN.
    fn unreachable(&mut self, finding: &Finding) -> bool {
        let (scene, draw) = (self.scene, (self.draw)());
        let (caller, backend) = (&scene.call.caller, &scene.call.at.backend);
        let key = star(&caller.tenant, &caller.project, backend);
        let target = Target { status: Some(Scope::Project), cooldown: Scope::Project, user: None };
        let mut effects = Vec::new();
        let (late, down) = scene.registry.write(key, scene.now, |slot, inner| {
            let late = scene.is_late(slot, inner);
            let down = inner.entry.as_ref().is_some_and(|entry| entry.status == Status::Down);
            if !late && down {
                effects.extend(scene.retrip(slot, inner, finding, draw));
            }
            if !late {
                effects.extend(scene.cool(slot, inner, &target, finding));
            }
            (late, down)
        });
        self.effects.append(&mut effects);
        if late || down {
            return down;
        }
        let project = (Arc::clone(&caller.tenant), Arc::clone(&caller.project));
        match scene.registry.backends.suspect(backend, project, finding, scene.now) {
            Suspicion::Confirm => self.effects.push(Effect::ConfirmBackend { backend: Arc::clone(backend) }),
            Suspicion::UnderWay => {}
            Suspicion::Confirmed => {
                let cause = (&finding.signature, finding.classification);
                self.effects.extend(scene.registry.confirmed_down(key, cause, scene.now, self.draw));
                return true;
            }
        }
        false
    }

    /// The same fault of enough users, and no success by anybody since the first, is one of the project (STATE 4.9, P1).
    fn widen(&mut self, finding: &Finding) {
        let scene = self.scene;
        let user = hashed(scene.call.caller.user.as_deref());
        let (Some(key), false) = (scene.key(Scope::Project), user == 0) else { return };
        let enough = scene.registry.tuning.widen_after_users;
        let users = scene.registry.write(key, scene.now, |slot, inner| {
            if scene.is_late(slot, inner) {
                None
            } else {
                inner.evidence.widening.add(&finding.signature, user, enough, scene.now.tick)
            }
        });
        let Some(users) = users else { return };
        let throttled = finding.classification == Classification::Intermittent;
        let to = if throttled { Status::Degraded } else { Status::Down };
        let change = Change { credential: None, ..scene.by_rule(to, finding) };
        if self.write_worse(key, change) {
            let signature = Arc::clone(&finding.signature);
            self.effects.push(Effect::Widened { key: key.to_key(), signature, users });
        }
    }

    /// A trial whose permit belongs to an entry that this failure is not written to has failed all the same.
    fn fail_other_trial(&mut self, finding: &Finding) {
        let (scene, draw) = (self.scene, (self.draw)());
        let Some(permit) = &scene.call.permit else { return };
        let slot = permit.slot();
        let counted = |effect: &Effect| matches!(effect, Effect::TrialFailed { key, .. } if *key == slot.key);
        if self.effects.iter().any(counted) {
            return;
        }
        let effect = scene.registry.write_slot(slot, scene.now, |inner| scene.retrip(slot, inner, finding, draw));
        self.effects.extend(effect.flatten());
    }

    /// Triggers a cooldown alone, for a fault that can change no status.
    pub(super) fn cool_only(&mut self, target: &Target, finding: &Finding) {
        let scene = self.scene;
        let Some(key) = scene.key(target.cooldown) else { return };
        let effects = scene.registry.write(key, scene.now, |slot, inner| {
            if scene.is_late(slot, inner) { Vec::new() } else { scene.cool(slot, inner, target, finding) }
        });
        self.effects.extend(effects);
    }

    /// Counts a call without success for the backend as a whole; enough tools that are DOWN make it DOWN (STATE 4.9, P2).
    pub(super) fn called_in_vain(&mut self) {
        let scene = self.scene;
        let call = scene.call;
        let tool = scene.key(Scope::Project).and_then(|key| scene.registry.slots.pin().get(&key).cloned());
        let down = tool.and_then(|slot| slot.shown()).filter(|shown| shown.status == Status::Down);
        let key = star(&call.caller.tenant, &call.caller.project, &call.at.backend);
        if down.is_none() && scene.registry.slots.pin().get(&key).is_none() {
            return;
        }
        let succeeded = scene.registry.backends.last_success(&call.at.backend);
        let draw = (self.draw)();
        let effect = scene.registry.write(key, scene.now, |slot, inner| {
            inner.evidence.tools.called(&call.at.tool, down.is_some(), scene.now.tick);
            let shown = down.filter(|_| inner.evidence.tools.look_dead(succeeded, scene.now.tick))?;
            let change = Change {
                to: Status::Down,
                classification: shown.classification.unwrap_or(Classification::TechnicallyBroken),
                signature: shown.signature.clone(),
                cause: shown.cause,
                origin: Origin::Evidence,
                judged: true,
                by: Arc::from(JUDGE),
                note: Arc::from("most tools of the backend are down and none has succeeded for a minute"),
                as_of: call.started,
                since: None,
                recovery: None,
                credential: None,
            };
            if scene.is_late(slot, inner) { None } else { scene.worsen(slot, inner, change, draw) }
        });
        self.effects.extend(effect);
    }
}

/// What a rule (or the operator's `down_on_first_failure`) makes of a failure without further evidence. What a caller may
/// not do or did wrong, and what is unclear, never; what passes by itself, DEGRADED at most.
fn at_once(finding: &Finding, down_on_first: bool, repeated: bool) -> Option<Status> {
    use Classification::{Intermittent, TechnicallyBroken, UserSpecificTechnical};
    if down_on_first && matches!(finding.evidence, Evidence::Down | Evidence::Transport) {
        return Some(Status::Down);
    }
    match (finding.classification, finding.health_action) {
        (TechnicallyBroken | UserSpecificTechnical, HealthAction::MarkUnavailable) => Some(Status::Down),
        (UserSpecificTechnical, HealthAction::None) if repeated => Some(Status::Down),
        (TechnicallyBroken | UserSpecificTechnical, HealthAction::MarkDegraded) => Some(Status::Degraded),
        (Intermittent, HealthAction::MarkUnavailable | HealthAction::MarkDegraded) => Some(Status::Degraded),
        _ => None,
    }
}
