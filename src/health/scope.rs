//! Whose fault it is (DESIGN 5): at which scope a failure is written, and when faults of many users become one of the project.

use std::hash::{BuildHasher, Hash};
use std::sync::Arc;
use std::time::Duration;

use super::caller::{ANONYMOUS, Caller};
use super::policy::Policy;
use crate::clock::Tick;
use crate::rules::{Classification, Evidence, Finding, Scope};

/// Where one failure goes.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// Whose status it can change; `None` for a fault of a user whom nobody knows.
    pub status: Option<Scope>,
    /// On whose document the cooldown sits.
    pub cooldown: Scope,
    /// Whose cooldown it is; `None` is scope-wide.
    pub user: Option<Arc<str>>,
}

/// Where a failure is written. An explicit scope of the rule goes first; then session tools; then what is the user's own;
/// everything else is the project's, whoever called.
pub fn target(caller: &Caller, policy: &Policy, finding: &Finding) -> Target {
    let wanted = match finding.scope {
        Some(scope) => scope,
        None if policy.session_tool => Scope::Session,
        None if is_users_own(caller, finding) => Scope::User,
        None => Scope::Project,
    };
    let known = match wanted {
        Scope::Session if caller.session.is_none() => Scope::User,
        scope => scope,
    };
    match known {
        Scope::User if caller.user.is_none() => {
            Target { status: None, cooldown: Scope::Project, user: Some(Arc::from(ANONYMOUS)) }
        }
        Scope::User => Target { status: Some(Scope::User), cooldown: Scope::User, user: caller.user.clone() },
        scope => Target { status: Some(scope), cooldown: scope, user: None },
    }
}

/// USER_* classes, and 401, 402, 429 and other throttling of a call that carried a credential.
fn is_users_own(caller: &Caller, finding: &Finding) -> bool {
    let throttled = finding.classification == Classification::Intermittent && finding.evidence == Evidence::Degraded;
    match finding.classification {
        Classification::UserSpecificTechnical | Classification::UserPermission | Classification::UserInput => true,
        _ => caller.credential.is_some() && (finding.credential_fault || throttled),
    }
}

/// Whether the same fault of many users may become one of the project: never what they may not do or did wrong, nor what
/// nobody understands.
pub(super) fn may_widen(finding: &Finding) -> bool {
    matches!(
        finding.classification,
        Classification::UserSpecificTechnical | Classification::TechnicallyBroken | Classification::Intermittent
    )
}

/// How long the first fault of a widening counts.
const WIDEN_WITHIN: Duration = Duration::from_secs(600);
/// Kinds of failure that are watched at once per tool and project, and users per kind.
const SIGNATURES_MAX: usize = 8;
const USERS_MAX: usize = 64;

/// Users of a project who meet the same fault, with no success by anybody since the first.
#[derive(Clone, Debug, Default)]
pub(super) struct Widening(Vec<Watched>);

#[derive(Clone, Debug)]
struct Watched {
    signature: Arc<str>,
    since: Tick,
    users: Vec<u64>,
}

impl Widening {
    /// Counts a fault; returns the number of users once it has reached `enough`.
    pub(super) fn add(&mut self, signature: &Arc<str>, user: u64, enough: usize, now: Tick) -> Option<usize> {
        self.0.retain(|watched| now.since(watched.since) <= WIDEN_WITHIN);
        let index = self.0.iter().position(|watched| watched.signature == *signature).unwrap_or_else(|| {
            if self.0.len() >= SIGNATURES_MAX {
                self.0.remove(0);
            }
            self.0.push(Watched { signature: Arc::clone(signature), since: now, users: Vec::new() });
            self.0.len() - 1
        });
        let watched = self.0.get_mut(index)?;
        if !watched.users.contains(&user) && watched.users.len() < USERS_MAX {
            watched.users.push(user);
        }
        let users = watched.users.len();
        if users < enough.clamp(1, USERS_MAX) {
            return None;
        }
        self.0.remove(index);
        Some(users)
    }

    /// Somebody succeeded.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

/// A name as evidence counts it: hashed, never 0; 0 for nobody.
pub(super) fn hashed(name: Option<&(impl Hash + ?Sized)>) -> u64 {
    name.map_or(0, |name| foldhash::fast::FixedState::default().hash_one(name).max(1))
}
