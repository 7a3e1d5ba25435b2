//! Cooldowns (DESIGN 7, STATE 4.5): until when a failure of one kind starts no new diagnosis. They never block a call.
//!
//! A trigger of an active cooldown only counts; a trigger after it ran out raises the level. A clear leaves a tombstone,
//! so that a fault that returns soon starts at the level where it was.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::{Now, Tick};
use crate::rules::Classification;

/// Cooldowns per entry.
const COOLDOWNS_MAX: usize = 64;
/// Tombstones per entry.
const TOMBSTONES_MAX: usize = 256;
/// The least time for which a level outlives a clear.
const MEMORY_MIN: Duration = Duration::from_secs(600);
/// From here on levels say nothing more: every interval has reached its cap.
const LEVEL_MAX: u32 = 32;

const fn minutes(count: u64) -> Duration {
    Duration::from_secs(count * 60)
}

/// How long a cooldown of a class lasts at a level from 1 (DESIGN 7). `given` is what the rule or the answer states and
/// wins; `recovery` is how far ahead `expectedRecoveryAt` lies.
fn interval(
    class: Classification,
    level: u32,
    given: Option<Duration>,
    recovery: Option<Duration>,
) -> Option<Duration> {
    let grown = |first: Duration, factor: u32, cap: Duration| {
        first.saturating_mul(factor.saturating_pow(level.saturating_sub(1))).min(cap)
    };
    let usual = match class {
        Classification::Working => return None,
        Classification::UserPermission => minutes(24 * 60),
        Classification::UserInput => minutes(5),
        Classification::Unclear => Duration::from_secs(30),
        Classification::UserSpecificTechnical => grown(minutes(15), 2, minutes(24 * 60)),
        Classification::Intermittent => grown(Duration::from_secs(30), 4, minutes(120)),
        Classification::TechnicallyBroken => recovery.unwrap_or(minutes(15)),
    };
    Some(given.unwrap_or(usual))
}

/// One cooldown.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Armed {
    pub(super) signature: Arc<str>,
    pub(super) user: Option<Arc<str>>,
    pub(super) until: Now,
    pub(super) hits: u64,
    pub(super) class: Classification,
    pub(super) triggered: Now,
    pub(super) level: u32,
    pub(super) interval: Duration,
}

/// What is left of a cleared cooldown.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Grave {
    pub(super) signature: Arc<str>,
    pub(super) user: Option<Arc<str>>,
    pub(super) level: u32,
    pub(super) interval: Duration,
    pub(super) cleared: Now,
}

/// What a failing call triggers.
#[derive(Clone, Debug)]
pub(super) struct Trigger<'a> {
    pub(super) signature: &'a Arc<str>,
    pub(super) user: Option<&'a Arc<str>>,
    pub(super) class: Classification,
    pub(super) given: Option<Duration>,
    pub(super) recovery: Option<Duration>,
    pub(super) longest: Duration,
}

/// The cooldowns of one entry, bounded.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Cooldowns {
    pub(super) armed: Vec<Armed>,
    pub(super) graves: Vec<Grave>,
}

impl Cooldowns {
    /// Counts a trigger. Returns the cooldown if it was armed or re-armed, `None` if it was active already.
    pub(super) fn trigger(&mut self, trigger: &Trigger<'_>, now: Now) -> Option<&Armed> {
        let Some(index) = self.position(trigger.signature, trigger.user) else { return self.arm(trigger, now) };
        let armed = self.armed.get_mut(index)?;
        armed.hits = armed.hits.saturating_add(1);
        armed.class = trigger.class;
        armed.triggered = now;
        if armed.until.tick > now.tick {
            return None;
        }
        armed.level = armed.level.saturating_add(1).min(LEVEL_MAX);
        armed.interval = interval(trigger.class, armed.level, trigger.given, trigger.recovery)?.min(trigger.longest);
        armed.until = later(armed.until, now.after(armed.interval));
        Some(armed)
    }

    /// Sets a cooldown to `trigger.given` from now, whether or not one is active: somebody says so who may.
    pub(super) fn set(&mut self, trigger: &Trigger<'_>, now: Now) -> Option<&Armed> {
        let Some(index) = self.position(trigger.signature, trigger.user) else { return self.arm(trigger, now) };
        let armed = self.armed.get_mut(index)?;
        armed.class = trigger.class;
        armed.interval = interval(trigger.class, armed.level, trigger.given, trigger.recovery)?.min(trigger.longest);
        armed.until = now.after(armed.interval);
        Some(armed)
    }

    fn arm(&mut self, trigger: &Trigger<'_>, now: Now) -> Option<&Armed> {
        let level = self.exhume(trigger.signature, trigger.user, now.tick);
        let interval = interval(trigger.class, level, trigger.given, trigger.recovery)?.min(trigger.longest);
        self.make_room(now.tick);
        self.armed.push(Armed {
            signature: Arc::clone(trigger.signature),
            user: trigger.user.cloned(),
            until: now.after(interval),
            hits: 1,
            class: trigger.class,
            triggered: now,
            level,
            interval,
        });
        self.armed.last()
    }

    /// Whether a cooldown of this class was ever triggered here and not cleared since.
    pub(super) fn holds(&self, class: Classification) -> bool {
        self.armed.iter().any(|armed| armed.class == class)
    }

    /// Removes the scope-wide cooldowns and those of `user`; returns how many. Their levels stay behind.
    pub(super) fn clear(&mut self, user: &str, now: Now) -> usize {
        self.clear_if(|armed| armed.user.is_none() || armed.user.as_deref() == Some(user), now)
    }

    /// Removes the cooldowns that agree with what is given; returns how many.
    pub(super) fn clear_where(&mut self, signature: Option<&str>, user: Option<&str>, now: Now) -> usize {
        let agrees = |armed: &Armed| {
            signature.is_none_or(|wanted| *armed.signature == *wanted)
                && user.is_none_or(|wanted| armed.user.as_deref() == Some(wanted))
        };
        self.clear_if(agrees, now)
    }

    fn clear_if(&mut self, wanted: impl Fn(&Armed) -> bool, now: Now) -> usize {
        let (cleared, kept): (Vec<Armed>, Vec<Armed>) = std::mem::take(&mut self.armed).into_iter().partition(wanted);
        self.armed = kept;
        let count = cleared.len();
        for armed in cleared {
            self.bury(armed, now);
        }
        count
    }

    /// The latest deadline of all.
    pub(super) fn last_deadline(&self) -> Option<Tick> {
        self.armed.iter().map(|armed| armed.until.tick).max()
    }

    fn position(&self, signature: &str, user: Option<&Arc<str>>) -> Option<usize> {
        self.armed.iter().position(|armed| *armed.signature == *signature && armed.user.as_ref() == user)
    }

    fn bury(&mut self, armed: Armed, now: Now) {
        if self.graves.len() >= TOMBSTONES_MAX {
            self.graves.remove(0);
        }
        let Armed { signature, user, level, interval, .. } = armed;
        self.graves.push(Grave { signature, user, level, interval, cleared: now });
    }

    /// The level at which a returning fault starts. It is remembered for max(10 min, last interval) after the clear and
    /// then shrinks by one for each further such time. A fault that returns after its cleared interval would have run out
    /// is a re-arm like any other and starts one higher: otherwise a tool that fails every other call would never back off.
    fn exhume(&mut self, signature: &str, user: Option<&Arc<str>>, now: Tick) -> u32 {
        let found = self.graves.iter().position(|grave| *grave.signature == *signature && grave.user.as_ref() == user);
        let Some(grave) = found.map(|index| self.graves.remove(index)) else { return 1 };
        let passed = now.since(grave.cleared.tick);
        let quiet = passed.as_millis() / grave.interval.max(MEMORY_MIN).as_millis();
        match u32::try_from(quiet).unwrap_or(u32::MAX) {
            0 => grave.level.saturating_add(u32::from(passed >= grave.interval)).min(LEVEL_MAX),
            quiet => grave.level.saturating_sub(quiet).max(1),
        }
    }

    /// Expired cooldowns go first, then the one that would run out first.
    fn make_room(&mut self, now: Tick) {
        if self.armed.len() < COOLDOWNS_MAX {
            return;
        }
        self.armed.retain(|armed| armed.until.tick > now);
        while self.armed.len() >= COOLDOWNS_MAX {
            let first = self.armed.iter().enumerate().min_by_key(|(_, armed)| armed.until.tick);
            let Some((index, _)) = first else { return };
            self.armed.remove(index);
        }
    }
}

fn later(one: Now, other: Now) -> Now {
    if one.tick > other.tick { one } else { other }
}
