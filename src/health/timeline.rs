//! What recorded outcomes would have made of the tools that they came from, under one set of verdicts.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use super::backing::MemoryOnly;
use super::caller::Caller;
use super::cascade::ToolRef;
use super::document::{Key, Status};
use super::effect::Effect;
use super::policy::{Policy, Tuning};
use super::record::Call;
use super::registry::Registry;
use crate::clock::{Now, Tick, Wall};
use crate::rules::{Exchange, Verdict};

/// At most so many changes are kept.
const STEPS_MAX: usize = 100_000;

/// The tools of a recording, as they stand after the outcomes so far. Connects that would have confirmed that a backend is dead
/// are not part of a recording, so that no backend as a whole is ever DOWN here.
#[derive(Debug)]
pub struct Timeline {
    registry: Registry,
    now: Now,
    steps: Vec<Step>,
}

/// A change of status.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// When.
    pub at: Wall,
    /// Of what, and for whom.
    #[serde(flatten)]
    pub key: Key,
    /// The status before.
    pub from: Status,
    /// The status then.
    pub to: Status,
    /// The kind of failure behind it.
    pub signature: Option<Arc<str>>,
}

impl Default for Timeline {
    fn default() -> Timeline {
        Timeline::new(Tuning::default())
    }
}

impl Timeline {
    /// All tools OK.
    pub fn new(tuning: Tuning) -> Timeline {
        Timeline { registry: Registry::new(tuning, Arc::new(MemoryOnly)), now: Now::default(), steps: Vec::new() }
    }

    /// Takes in one outcome that ended at `exchange.now` on the wall clock; time never runs back.
    pub fn add(&mut self, exchange: &Exchange, caller: &Arc<Caller>, took: Duration, verdict: &Verdict) {
        let wall = Wall(exchange.now.wall.0.max(self.now.wall.0));
        self.now = Now { wall, tick: Tick(u64::try_from(wall.0).unwrap_or(0)) };
        let started = Now {
            wall: wall.plus_millis(-i64::try_from(took.as_millis()).unwrap_or(0)),
            tick: self.now.tick.before(took),
        };
        let call = Call {
            caller: Arc::clone(caller),
            at: ToolRef { backend: Arc::clone(&exchange.backend), tool: Arc::clone(&exchange.tool) },
            policy: Arc::new(Policy { session_tool: exchange.session_tool, has_targets: true, ..Policy::default() }),
            started,
            permit: None,
            target: exchange.targets.first().map(|host| Arc::from(host.as_str())),
            duration: None,
        };
        for effect in self.registry.record(call, verdict, self.now, &mut || 0.0) {
            if let Effect::Transition(change) = effect
                && self.steps.len() < STEPS_MAX
            {
                let (at, signature) = (self.now.wall, change.signature);
                self.steps.push(Step { at, key: change.key, from: change.from, to: change.to, signature });
            }
        }
    }

    /// Every change of status so far, in its order.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }
}
