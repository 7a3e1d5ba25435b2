//! The loop that hands jobs to the engine and applies what it finds.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::json;

use super::answer::Answer;
use super::apply;
use super::builtin;
use super::client::Client;
use super::job::Job;
use super::llm::Llm;
use super::queue::{JobError, OWN, Queue};
use super::webhook::Webhook;
use crate::clock::Now;
use crate::health::{Claim, Diagnoser, Effect, Key, Order, Prober, Registry, ToolRef};
use crate::rules::Scope;
use crate::telemetry::Telemetry;
use crate::telemetry::bus::Kind;

/// How long the engine may take before its job goes to the next.
const LEASE: Duration = Duration::from_secs(5 * 60);
/// How long an engine that answers later may take.
const LATER: Duration = Duration::from_secs(15 * 60);
/// Jobs that are worked on at the same time.
const WORKERS: usize = 4;
/// The wait after a first try that found nobody; doubled with each, up to five minutes.
const RETRY: (Duration, u32) = (Duration::from_secs(1), 8);

/// Who finds things out.
#[derive(Debug)]
pub enum Engine {
    /// Nobody here: jobs wait for somebody who leases them through the admin API.
    External,
    /// The tool itself is tried.
    Builtin,
    /// An engine over HTTP.
    Webhook(Box<Webhook>),
    /// A language model.
    Llm(Llm),
}

/// What an engine came to.
#[derive(Debug)]
pub(super) enum Found {
    /// An answer.
    Answer(Box<Answer>),
    /// Something that is none.
    Malformed(String),
    /// It answers later, through the admin API.
    Later,
    /// Nobody was there: to be tried again.
    NotYet(String),
    /// There is nothing to be found out this way.
    Nothing(String),
}

/// Hands effects to whoever acts on them.
pub type Act = Arc<dyn Fn(Vec<Effect>) + Send + Sync>;

/// What diagnosing needs.
pub struct Parts {
    /// Jobs.
    pub queue: Queue,
    /// Who finds out.
    pub engine: Engine,
    /// For engines over HTTP.
    pub client: Option<Client>,
    /// The widest scope that an engine may write.
    pub widest: Scope,
    /// What is believed.
    pub registry: Arc<Registry>,
    /// Who is told.
    pub telemetry: Arc<Telemetry>,
}

/// Diagnosing: takes claims, and works on them.
pub struct Diagnosis {
    parts: Parts,
    /// Set once the proxy exists, which itself needs to know whom to ask.
    hands: OnceLock<(Arc<dyn Prober>, Act)>,
}

impl fmt::Debug for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Diagnosis").field("engine", &self.parts.engine).finish_non_exhaustive()
    }
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts").field("engine", &self.engine).finish_non_exhaustive()
    }
}

impl Diagnosis {
    /// Ready to take claims; nothing is worked on yet.
    pub fn new(parts: Parts) -> Diagnosis {
        Diagnosis { parts, hands: OnceLock::new() }
    }

    /// Who can try tools, and who acts on what health does. The first call counts.
    pub fn connect(&self, prober: Arc<dyn Prober>, act: Act) {
        let _ = self.hands.set((prober, act));
    }

    /// The jobs.
    pub fn queue(&self) -> &Queue {
        &self.parts.queue
    }

    /// Works on jobs until the process ends. A worker that panics is replaced, and its job goes back.
    pub async fn work_forever(self: Arc<Diagnosis>) {
        if matches!(self.parts.engine, Engine::External) {
            return;
        }
        let mut workers = tokio::task::JoinSet::new();
        loop {
            while workers.len() < WORKERS {
                let own = Arc::clone(&self);
                workers.spawn(async move { own.work().await });
            }
            let _ = workers.join_next().await;
        }
    }

    /// One worker: job after job.
    async fn work(self: Arc<Diagnosis>) {
        loop {
            let Some(job) = self.parts.queue.lease(OWN, LEASE, self.parts.queue.now()) else {
                self.parts.queue.stirred().await;
                continue;
            };
            let mut guard = GiveBack { own: &self, id: &job.id, armed: true };
            let found = match tokio::time::timeout(LEASE, self.ask(&job)).await {
                Ok(found) => found,
                Err(_) => Found::NotYet("the engine took too long".to_owned()),
            };
            guard.armed = false;
            self.settle(&job, found);
        }
    }

    async fn ask(&self, job: &Job) -> Found {
        let now = self.parts.queue.now();
        let Some((prober, _)) = self.hands.get() else { return Found::NotYet("not started yet".to_owned()) };
        let bounds = (self.parts.widest, now);
        match (&self.parts.engine, &self.parts.client) {
            (Engine::Builtin, _) => builtin::diagnose(job, &**prober).await,
            (Engine::Webhook(webhook), Some(client)) => webhook.diagnose(job, client, bounds).await,
            (Engine::Llm(llm), Some(client)) => llm.diagnose(job, (client, &**prober), bounds).await,
            (Engine::External, _) | (_, None) => Found::Nothing("there is no engine".to_owned()),
        }
    }

    fn settle(&self, job: &Job, found: Found) {
        let now = self.parts.queue.now();
        let queue = &self.parts.queue;
        // What can go wrong here is only that somebody else has ended the job meanwhile, which is as well.
        let _ = match found {
            Found::Answer(answer) => {
                self.apply(apply::orders(job, &answer, self.hand(), now), now);
                self.told(job, &format!("{}", answer.classification), &answer.human_note, now);
                queue.done(&job.id, OWN, &answer.human_note, now)
            }
            Found::Malformed(why) => {
                self.apply(apply::malformed(job, &why, self.hand()), now);
                self.told(job, "malformed", &why, now);
                queue.done(&job.id, OWN, &format!("malformed: {why}"), now)
            }
            Found::Later => queue.lease_one(&job.id, OWN, LATER, now).map(drop),
            Found::NotYet(why) => {
                let doubled = RETRY.0.saturating_mul(1 << job.attempts.saturating_sub(1).min(RETRY.1));
                queue.retry(&job.id, OWN, (&why, doubled.min(Duration::from_secs(300))), now)
            }
            Found::Nothing(why) => queue.done(&job.id, OWN, &why, now),
        };
    }

    fn hand(&self) -> &'static str {
        match self.parts.engine {
            Engine::External => "engine",
            Engine::Builtin => "builtin",
            Engine::Webhook(_) => "webhook",
            Engine::Llm(_) => "llm",
        }
    }

    fn apply(&self, orders: Vec<(Key, Order)>, now: Now) {
        let mut effects = Vec::new();
        for (key, order) in orders {
            let draw = &mut || fastrand::f64();
            // While draining nothing is written; then nothing is.
            if let Ok(written) = self.parts.registry.order(&key, &order, None, (now, draw)) {
                effects.extend(written.effects);
            }
        }
        if let Some((_, act)) = self.hands.get() {
            act(effects);
        }
    }

    fn told(&self, job: &Job, found: &str, note: &str, now: Now) {
        let facts = json!({
            "change": "done", "job": job.id, "found": found, "note": note, "backend": job.key.backend,
            "toolName": job.key.tool_name, "signature": job.error_signature,
        });
        self.parts.telemetry.publish(Kind::Diagnosis, now.wall, facts);
    }

    /// Takes the answer of somebody outside to a job, well formed or not; what it came to, in words. It is on disk once
    /// [`Queue::settled`] says so.
    ///
    /// # Errors
    /// If the job is not his to end.
    pub fn complete(&self, id: &str, by: &str, answer: serde_json::Value) -> Result<String, JobError> {
        let now = self.parts.queue.now();
        let job = self.parts.queue.owned(id, by)?;
        let (outcome, orders) = match Answer::of_value(answer, self.parts.widest, now) {
            Ok(answer) => {
                self.told(&job, &format!("{}", answer.classification), &answer.human_note, now);
                (answer.human_note.clone(), apply::orders(&job, &answer, by, now))
            }
            Err(why) => {
                self.told(&job, "malformed", &why, now);
                (format!("malformed: {why}"), apply::malformed(&job, &why, by))
            }
        };
        // First the end, so that of two who tell it only one is heard.
        self.parts.queue.done(id, by, &outcome, now)?;
        self.apply(orders, now);
        Ok(outcome)
    }
}

impl Diagnoser for Diagnosis {
    fn claimed(&self, claim: &Claim, detail: &str, now: Now) {
        if !self.parts.queue.add(claim, detail, now) {
            let facts = json!({"change": "dropped", "toolName": claim.key.tool_name, "backend": claim.key.backend});
            self.parts.telemetry.publish(Kind::Diagnosis, now.wall, facts);
        }
    }

    fn again(&self, at: &ToolRef, signature: &str, detail: &str, _: Now) {
        self.parts.queue.add_detail(at, signature, detail);
    }
}

/// Gives a job back when its worker ends in the midst of it.
struct GiveBack<'a> {
    own: &'a Diagnosis,
    id: &'a str,
    armed: bool,
}

impl Drop for GiveBack<'_> {
    fn drop(&mut self) {
        if !self.armed {
            return;
        }
        let queue = &self.own.parts.queue;
        // Somebody else may have ended it meanwhile, which is as well.
        let _ = queue.retry(self.id, OWN, ("the worker ended", Duration::from_secs(1)), queue.now());
    }
}
