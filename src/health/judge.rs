//! The evidence judge (DESIGN 7): what the outcomes of one tool add up to. Constant memory, exact counts, `now` given.
//!
//! Towards DOWN it counts distinct one-second slots with a failure since the last success, and the share of failures in
//! the last 20 outcomes: one blip with hundreds of calls in flight fills one slot. Towards DEGRADED it counts the share of
//! failed or slow calls in a minute. A slot is the second in which a call *failed*, not that in which it started: a blip
//! that breaks ten long calls is still one blip.

use std::collections::VecDeque;
use std::time::Duration;

use super::document::{Flap, Status};
use crate::clock::{Now, Tick};

/// Distinct failing seconds that DOWN takes.
const SLOTS: u32 = 5;
/// Outcomes that are looked at for DOWN, and the fewest that suffice.
const RING: usize = 20;
const RING_MIN: usize = 5;
/// Outcomes older than this say nothing.
const STALE: Duration = Duration::from_secs(300);
/// The minute for DEGRADED, in ten buckets.
const BUCKETS: usize = 10;
const BUCKET_MS: u64 = 6_000;
/// The fewest outcomes in that minute, and the least stay in DEGRADED.
const MINUTE_MIN: u32 = 20;
/// Before a DEGRADED of the judge may be left.
pub(super) const DWELL: Duration = Duration::from_secs(30);
/// Each DOWN of the judge adds this to the flap penalty, which halves in [`FLAP_HALF_LIFE`].
const FLAP_STEP: f64 = 1_000.0;
/// At this penalty a tool goes no further than DEGRADED.
const FLAP_SINK: f64 = 3_000.0;
const FLAP_HALF_LIFE: Duration = Duration::from_secs(300);

/// How one outcome counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Count {
    /// A success.
    Success,
    /// A failure that counts towards DOWN.
    Failure,
    /// Throttling: counts towards DEGRADED only.
    Throttled,
}

/// One outcome as evidence.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// How it counts.
    pub(super) count: Count,
    /// Whether it took longer than the tool's `slow_call`.
    pub(super) slow: bool,
    /// Whose call it was, hashed; 0 for nobody known.
    pub(super) user: u64,
    /// Which target the call went to, hashed; 0 for none.
    pub(super) target: u64,
}

/// What the evidence says the status should be made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Judgement {
    /// Nothing to change.
    Nothing,
    /// The thresholds of DEGRADED are met.
    Degraded,
    /// The thresholds of DOWN are met.
    Down,
    /// Those of DOWN or DEGRADED are met, but only one user fails, and others succeed meanwhile.
    OneUser(Status),
}

#[derive(Clone, Copy, Debug)]
struct Past {
    at: Tick,
    failed: bool,
    user: u64,
    target: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    number: u64,
    total: u32,
    failed: u32,
    slow: u32,
}

/// The evidence about one tool.
#[derive(Clone, Debug, Default)]
pub(super) struct Window {
    slots: u32,
    last_failure: Option<Tick>,
    /// When the last call failed or was throttled; a success does not take it back.
    failed_at: Option<Tick>,
    ring: VecDeque<Past>,
    buckets: [Bucket; BUCKETS],
}

impl Window {
    /// When the last call failed or was throttled, if one did.
    pub(super) fn failed_at(&self) -> Option<Tick> {
        self.failed_at
    }

    /// Takes in one outcome.
    pub(super) fn add(&mut self, sample: Sample, now: Tick) {
        if sample.count != Count::Success {
            self.failed_at = Some(now);
        }
        self.count_slot(sample.count, now);
        self.count_minute(sample, now);
        if sample.count != Count::Throttled {
            if self.ring.len() >= RING {
                self.ring.pop_front();
            }
            let Sample { user, target, .. } = sample;
            self.ring.push_back(Past { at: now, failed: sample.count == Count::Failure, user, target });
        }
    }

    fn count_slot(&mut self, count: Count, now: Tick) {
        match count {
            Count::Success => self.slots = 0,
            Count::Throttled => {}
            Count::Failure => {
                let last = self.last_failure.replace(now);
                if last.is_some_and(|last| now.since(last) > STALE) {
                    self.slots = 0;
                }
                if self.slots == 0 || last.is_none_or(|last| last.0 / 1_000 != now.0 / 1_000) {
                    self.slots = self.slots.saturating_add(1);
                }
            }
        }
    }

    fn count_minute(&mut self, sample: Sample, now: Tick) {
        let number = now.0 / BUCKET_MS;
        let index = usize::try_from(number % BUCKETS as u64).unwrap_or(0);
        let Some(bucket) = self.buckets.get_mut(index) else { return };
        if bucket.number != number {
            *bucket = Bucket { number, ..Bucket::default() };
        }
        bucket.total = bucket.total.saturating_add(1);
        bucket.failed = bucket.failed.saturating_add(u32::from(sample.count != Count::Success));
        bucket.slow = bucket.slow.saturating_add(u32::from(sample.slow));
    }

    /// What a failure by `user` that has just been added leads to.
    pub(super) fn judge(&self, user: u64, has_targets: bool, now: Tick) -> Judgement {
        if has_targets && self.failing_targets(now) < 2 {
            return Judgement::Nothing;
        }
        let one_user = user != 0 && self.only_fails_for(user, now);
        let slots = if one_user { self.slots_of(user, now) } else { self.slots };
        if slots >= SLOTS && self.mostly_fails(one_user.then_some(user), now) {
            return if one_user { Judgement::OneUser(Status::Down) } else { Judgement::Down };
        }
        if !self.is_degraded(now) && !self.is_slow(now) {
            return Judgement::Nothing;
        }
        if one_user { Judgement::OneUser(Status::Degraded) } else { Judgement::Degraded }
    }

    /// Whether enough calls of the minute failed for DEGRADED.
    fn is_degraded(&self, now: Tick) -> bool {
        let minute = self.minute(now);
        minute.total >= MINUTE_MIN && minute.failed * 10 >= minute.total * 3
    }

    /// Whether enough calls of the minute were slow for DEGRADED.
    pub(super) fn is_slow(&self, now: Tick) -> bool {
        let minute = self.minute(now);
        minute.total >= MINUTE_MIN && minute.slow * 10 >= minute.total * 8
    }

    /// Whether a DEGRADED that the judge derived may be left: at most one call in ten failed or was slow.
    pub(super) fn is_calm(&self, now: Tick) -> bool {
        let minute = self.minute(now);
        minute.total > 0 && minute.failed * 10 <= minute.total && minute.slow * 10 <= minute.total
    }

    fn minute(&self, now: Tick) -> Bucket {
        let number = now.0 / BUCKET_MS;
        let mut sum = Bucket::default();
        for bucket in self.buckets.iter().filter(|bucket| number.saturating_sub(bucket.number) < BUCKETS as u64) {
            sum.total = sum.total.saturating_add(bucket.total).min(u32::MAX / 10);
            sum.failed = sum.failed.saturating_add(bucket.failed).min(u32::MAX / 10);
            sum.slow = sum.slow.saturating_add(bucket.slow).min(u32::MAX / 10);
        }
        sum
    }

    fn recent(&self, now: Tick) -> impl Iterator<Item = &Past> {
        self.ring.iter().filter(move |past| now.since(past.at) <= STALE)
    }

    fn mostly_fails(&self, user: Option<u64>, now: Tick) -> bool {
        let mut outcomes = 0;
        let mut failures = 0;
        for past in self.recent(now).filter(|past| user.is_none_or(|user| past.user == user)) {
            outcomes += 1;
            failures += usize::from(past.failed);
        }
        outcomes >= RING_MIN && failures * 2 >= outcomes
    }

    /// Whether all failures are this user's, and somebody else succeeded since the first of them.
    fn only_fails_for(&self, user: u64, now: Tick) -> bool {
        let since_first = || self.recent(now).skip_while(|past| !past.failed);
        since_first().all(|past| !past.failed || past.user == user)
            && since_first().any(|past| !past.failed && past.user != user)
    }

    /// Distinct failing seconds of one user since his own last success.
    fn slots_of(&self, user: u64, now: Tick) -> u32 {
        let mut slots = 0;
        let mut last = None;
        for past in self.recent(now).filter(|past| past.user == user) {
            let second = past.at.0 / 1_000;
            if !past.failed {
                (slots, last) = (0, None);
            } else if last != Some(second) {
                (slots, last) = (slots + 1, Some(second));
            }
        }
        slots
    }

    fn failing_targets(&self, now: Tick) -> usize {
        let mut targets: Vec<u64> = self.recent(now).filter(|past| past.failed).map(|past| past.target).collect();
        targets.sort_unstable();
        targets.dedup();
        targets.len()
    }
}

/// The flap penalty as it has decayed by now. It is kept with ticks; `at` of the stored form is for display and restarts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Flapping {
    penalty: f64,
    at: Now,
    sunk: bool,
}

impl Flapping {
    fn now(self, now: Now) -> f64 {
        let half_lives = now.tick.since(self.at.tick).as_secs_f64() / FLAP_HALF_LIFE.as_secs_f64();
        self.penalty * 0.5_f64.powf(half_lives)
    }

    /// Whether this DOWN may be: not for a tool that goes down and up so often that DOWN would do more harm than its errors.
    /// Each DOWN adds to the penalty, but not one that was only put off in the same outage: that is no further flap.
    pub(super) fn allows_down(&mut self, now: Now) -> bool {
        let penalty = self.now(now);
        if penalty >= FLAP_SINK {
            self.sunk = true;
            return false;
        }
        let step = if self.sunk { 0.0 } else { FLAP_STEP };
        *self = Flapping { penalty: penalty + step, at: now, sunk: false };
        true
    }

    /// The outage is over.
    pub(super) fn recovered(&mut self) {
        self.sunk = false;
    }

    pub(super) fn stored(self) -> Flap {
        Flap { penalty: self.penalty, at: (self.penalty > 0.0).then_some(self.at.wall) }
    }

    pub(super) fn load(stored: Flap, now: Now) -> Flapping {
        let at = stored.at.unwrap_or(now.wall).min(now.wall);
        let penalty = if stored.penalty.is_finite() { stored.penalty.clamp(0.0, 100.0 * FLAP_STEP) } else { 0.0 };
        Flapping { penalty, at: Now { tick: now.tick_at(at), wall: at }, sunk: false }
    }
}
