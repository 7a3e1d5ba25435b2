//! A registry with a clock that tests move, callers with names, and outcomes as the rule table would judge them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use toolvane::clock::{Now, Tick, Wall};
use toolvane::health::{
    Admission, Backing, Call, Caller, CredentialHash, Document, Effect, Filter, Key, Permit, Policy, Registry, Status,
    ToolRef, Transition, Tuning, View,
};
use toolvane::rules::{Classification, DispatchCode, Disproves, Evidence, Finding, HealthAction, Kind, Scope, Verdict};

/// Keeps what the registry writes, newest per key, as a store would.
#[derive(Debug, Default)]
pub(crate) struct Kept(pub(crate) Mutex<BTreeMap<Key, Document>>);

impl Backing for Kept {
    fn write(&self, document: Document) -> bool {
        self.0.lock().unwrap().insert(document.key.clone(), document);
        true
    }

    fn delete(&self, key: &Key) -> bool {
        self.0.lock().unwrap().remove(key);
        true
    }

    fn read(&self, key: &Key) -> Option<Document> {
        self.0.lock().unwrap().get(key).cloned()
    }
}

/// What a call came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Outcome {
    Success,
    /// A protocol answer without a finding.
    Protocol,
    /// 403.
    Forbidden,
    /// -32602 or 400.
    BadArguments,
    /// 401 of an expired token.
    TokenExpired,
    /// 429.
    Throttled,
    /// 429 with Retry-After: 40.
    ThrottledFor40,
    /// 500.
    ServerError,
    /// 503 of an edge in front of the backend.
    Edge503,
    Timeout,
    Refused,
    /// An `isError` text that no rule knows.
    UnknownText,
    /// A rule says: broken, DOWN at once.
    Broken,
}

pub(crate) const OUTCOMES: [Outcome; 13] = [
    Outcome::Success,
    Outcome::Protocol,
    Outcome::Forbidden,
    Outcome::BadArguments,
    Outcome::TokenExpired,
    Outcome::Throttled,
    Outcome::ThrottledFor40,
    Outcome::ServerError,
    Outcome::Edge503,
    Outcome::Timeout,
    Outcome::Refused,
    Outcome::UnknownText,
    Outcome::Broken,
];

impl Outcome {
    pub(crate) fn verdict(self) -> Verdict {
        use Classification as C;
        let (signature, classification, evidence, disproves) = match self {
            Outcome::Success => return Verdict::SUCCESS,
            Outcome::Protocol => return Verdict::NEUTRAL,
            Outcome::Forbidden => {
                ("http-403", C::UserPermission, Evidence::Nothing, Disproves::TransportAndServerError)
            }
            Outcome::BadArguments => ("rpc-32602", C::UserInput, Evidence::Nothing, Disproves::TransportAndServerError),
            Outcome::TokenExpired => {
                ("token-expired", C::UserSpecificTechnical, Evidence::Nothing, Disproves::TransportAndServerError)
            }
            Outcome::Throttled | Outcome::ThrottledFor40 => {
                ("rate-limited", C::Intermittent, Evidence::Degraded, Disproves::Transport)
            }
            Outcome::ServerError => ("http-500", C::Unclear, Evidence::Down, Disproves::Transport),
            Outcome::Edge503 => ("http-503", C::Intermittent, Evidence::Down, Disproves::Nothing),
            Outcome::Timeout => ("timeout", C::Intermittent, Evidence::Down, Disproves::Nothing),
            Outcome::Refused => ("connect-refused", C::TechnicallyBroken, Evidence::Transport, Disproves::Nothing),
            Outcome::UnknownText => ("tool-error", C::Unclear, Evidence::Nothing, Disproves::Transport),
            Outcome::Broken => ("license-expired", C::TechnicallyBroken, Evidence::Down, Disproves::Transport),
        };
        let neutral = matches!(classification, C::UserPermission | C::UserInput);
        let (action, hint) = match self {
            Outcome::Broken => (HealthAction::MarkUnavailable, None),
            Outcome::ThrottledFor40 => (HealthAction::MarkDegraded, Some(Duration::from_secs(40))),
            _ => (HealthAction::None, None),
        };
        let finding = Finding {
            rule: Arc::from(signature),
            signature: Arc::from(signature),
            classification,
            dispatch_code: DispatchCode::BackendFailed,
            health_action: action,
            scope: None,
            cooldown: None,
            hint,
            evidence,
            disproves,
            credential_fault: matches!(self, Outcome::TokenExpired | Outcome::Throttled | Outcome::ThrottledFor40),
            answer_as_result: false,
            note: None,
        };
        Verdict { kind: if neutral { Kind::Neutral } else { Kind::Failure }, finding: Some(finding) }
    }
}

pub(crate) fn caller(user: &str) -> Caller {
    Caller {
        session: Some(Arc::from(format!("session-of-{user}"))),
        user: (user != "nobody").then(|| Arc::from(user)),
        project: Arc::from("default"),
        tenant: Arc::from("default"),
        roles: Vec::new(),
        credential: (user != "nobody").then(|| CredentialHash(user.bytes().map(u64::from).sum())),
    }
}

pub(crate) fn tool(name: &str) -> ToolRef {
    ToolRef { backend: Arc::from("jira"), tool: Arc::from(name) }
}

pub(crate) fn key(scope: Scope, id: &str, tool: &str) -> Key {
    Key {
        tenant_id: (scope != Scope::Global).then(|| "default".to_owned()),
        scope,
        scope_id: (scope != Scope::Global).then(|| id.to_owned()),
        backend: "jira".to_owned(),
        tool_name: tool.to_owned(),
    }
}

pub(crate) fn project(tool: &str) -> Key {
    key(Scope::Project, "default", tool)
}

pub(crate) const START: Now = Now { tick: Tick(1_000_000), wall: Wall(1_790_000_000_000) };

pub(crate) struct World {
    pub(crate) registry: Registry,
    pub(crate) now: Now,
    pub(crate) policy: Arc<Policy>,
    pub(crate) kept: Arc<Kept>,
    pub(crate) draws: fastrand::Rng,
}

impl World {
    pub(crate) fn new() -> World {
        World::with(Tuning { documents_max: 500, ..Tuning::default() })
    }

    pub(crate) fn with(tuning: Tuning) -> World {
        let kept = Arc::new(Kept::default());
        let registry = Registry::new(tuning, Arc::clone(&kept) as Arc<dyn Backing>);
        World { registry, now: START, policy: Arc::default(), kept, draws: fastrand::Rng::with_seed(7) }
    }

    pub(crate) fn pass(&mut self, seconds: f64) {
        self.now = self.now.after(Duration::from_secs_f64(seconds));
    }

    pub(crate) fn admit(&self, caller: &Caller, at: &ToolRef) -> Admission {
        self.registry.admit(caller, at, &self.policy, self.now)
    }

    pub(crate) fn call(&self, caller: &Caller, at: &ToolRef, permit: Option<Permit>) -> Call {
        Call {
            caller: Arc::new(caller.clone()),
            at: at.clone(),
            policy: Arc::clone(&self.policy),
            started: self.now,
            permit,
            target: None,
            duration: None,
        }
    }

    pub(crate) fn record(&mut self, call: Call, verdict: &Verdict) -> Vec<Effect> {
        let draws = &mut self.draws;
        self.registry.record(call, verdict, self.now, &mut || draws.f64())
    }

    /// One whole call of 2 ms: admitted, answered, recorded. `None` if it was refused.
    pub(crate) fn goes(&mut self, user: &str, name: &str, outcome: Outcome) -> Option<Vec<Effect>> {
        self.goes_as(&caller(user), name, &outcome.verdict())
    }

    pub(crate) fn goes_as(&mut self, caller: &Caller, name: &str, verdict: &Verdict) -> Option<Vec<Effect>> {
        let at = tool(name);
        self.pass(0.001);
        let permit = match self.admit(caller, &at) {
            Admission::Pass | Admission::Observed(_) => None,
            Admission::Trial(permit) => Some(permit),
            Admission::Reject(_) => return None,
        };
        let call = self.call(caller, &at, permit);
        self.pass(0.001);
        Some(self.record(call, verdict))
    }

    /// The same outcome once a second, `times` over.
    pub(crate) fn goes_each_second(&mut self, user: &str, name: &str, outcome: Outcome, times: usize) {
        for _ in 0..times {
            self.goes(user, name, outcome);
            self.pass(1.0);
        }
    }

    pub(crate) fn seen_by(&self, user: &str, name: &str) -> View {
        self.registry.lookup(&caller(user), &tool(name), self.now)
    }

    pub(crate) fn status(&self, user: &str, name: &str) -> Status {
        self.seen_by(user, name).status
    }

    pub(crate) fn document(&self, key: &Key) -> Option<Document> {
        self.registry.document(key, self.now)
    }

    pub(crate) fn documents(&self) -> Vec<Document> {
        self.registry.documents(&Filter::default(), self.now)
    }

    pub(crate) fn confirm(&mut self, failed: [bool; 3]) -> Vec<Effect> {
        let mut effects = Vec::new();
        for (number, failed) in failed.into_iter().enumerate() {
            self.pass(0.7);
            let draws = &mut self.draws;
            let attempt = toolvane::health::Attempt { backend: "jira", number, failed };
            effects.extend(self.registry.confirm(&attempt, self.now, &mut || draws.f64()));
        }
        effects
    }

    pub(crate) fn go_down(&mut self, name: &str) {
        self.goes_each_second("alice", name, Outcome::ServerError, 5);
        assert_eq!(self.status("bob", name), Status::Down);
    }

    /// Waits until the trial of a tool that is DOWN for everybody is due.
    pub(crate) fn wait_for_retest(&mut self, name: &str) {
        self.wait_for(&caller("bob"), name);
    }

    /// Waits until the trial of a tool that is DOWN for this caller is due.
    pub(crate) fn wait_for(&mut self, caller: &Caller, name: &str) {
        let due = self.registry.lookup(caller, &tool(name), self.now).next_trial_at.unwrap();
        let ahead = u64::try_from(due.0 - self.now.wall.0).unwrap_or(0);
        self.now = self.now.after(Duration::from_millis(ahead));
        assert!(self.registry.lookup(caller, &tool(name), self.now).retesting);
    }
}

pub(crate) fn transitions(effects: &[Effect]) -> Vec<&Transition> {
    effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Transition(transition) => Some(transition),
            _ => None,
        })
        .collect()
}

pub(crate) fn claims(effects: &[Effect]) -> usize {
    effects.iter().filter(|effect| matches!(effect, Effect::Claimed(_))).count()
}
