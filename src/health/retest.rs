//! When a DOWN is tried again: the schedule of trials, the estimate from past outages, and the schedule of probes (DESIGN 7, 8).

use std::time::Duration;

use super::document::{HistoryEntry, Status};
use crate::clock::{Now, Tick, Wall};

/// The first wait for a trial.
const FIRST: Duration = Duration::from_secs(5);
/// No DOWN without an estimate waits longer than this for its next trial.
pub(super) const WAIT_MAX: Duration = Duration::from_secs(60);
/// Tripped again within this time of a clear, a DOWN starts at the next level.
pub(super) const RELAPSE: Duration = Duration::from_secs(600);
/// The bounds of every estimate, whoever makes it.
const ESTIMATE_MIN: Duration = Duration::from_secs(1);
const ESTIMATE_MAX: Duration = Duration::from_secs(24 * 3600);
/// Past outages that an estimate needs.
const OUTAGES: usize = 3;
/// From here on levels say nothing more: the wait has long reached its bound.
const LEVEL_MAX: u32 = 32;

/// The wait for the next trial at a level from 1: 5 s doubled per level, times U(1, 1.2), at most 60 s. `draw` is in [0, 1).
///
/// The spread goes upward only; at the bound there is none left, but by then machines that tripped together have drifted
/// apart over the earlier levels.
pub(super) fn wait(level: u32, draw: f64) -> Duration {
    let doubled = FIRST.saturating_mul(1 << level.saturating_sub(1).min(8));
    doubled.min(WAIT_MAX).mul_f64(1.0 + 0.2 * draw.clamp(0.0, 1.0)).min(WAIT_MAX)
}

/// An estimate within its bounds of 1 s and 24 h.
pub(super) fn bounded(estimate: Duration) -> Duration {
    estimate.clamp(ESTIMATE_MIN, ESTIMATE_MAX)
}

/// The next level.
pub(super) fn next_level(level: u32) -> u32 {
    level.saturating_add(1).min(LEVEL_MAX)
}

/// How long the outages were that a stored history tells of, oldest first.
///
/// An outage that had an estimate of its own does not count: its end was waited for, so its length says more about the
/// estimate than about the backend, and estimates would never shrink.
pub(super) fn outages(history: &[HistoryEntry]) -> Vec<Duration> {
    let mut lengths = Vec::new();
    let mut began: Option<&HistoryEntry> = None;
    for entry in history {
        match entry.status {
            Status::Down => {
                began.get_or_insert(entry);
            }
            Status::Ok => {
                let outage = began.take().filter(|down| down.recovery_at.is_none());
                let length = outage.and_then(|down| u64::try_from(entry.at.0.saturating_sub(down.at.0)).ok());
                lengths.extend(length.map(Duration::from_millis));
            }
            Status::Degraded => {}
        }
    }
    lengths
}

/// When a stored history saw a DOWN cleared last.
pub(super) fn last_clear(history: &[HistoryEntry]) -> Option<Wall> {
    let pairs = history.iter().zip(history.iter().skip(1));
    let mut clears = pairs.filter(|(one, next)| one.status == Status::Down && next.status == Status::Ok);
    clears.next_back().map(|(_, cleared)| cleared.at)
}

/// The median length of past outages, if there are three or more.
pub(super) fn estimate(outages: &[Duration]) -> Option<Duration> {
    let mut lengths = outages.to_vec();
    lengths.sort_unstable();
    let median = lengths.get(lengths.len() / 2).filter(|_| lengths.len() >= OUTAGES)?;
    Some(bounded(*median))
}

/// When a DOWN is probed next.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Probing {
    next: Option<Tick>,
    interval: Duration,
}

impl Probing {
    /// Whether a probe is due for a DOWN that stands `since`; if so the next one is put on the schedule: every `pace` for
    /// 5 min, then each wait 1.5 times the last, up to 60 s.
    pub(super) fn is_due(&mut self, since: Now, now: Tick, pace: Duration) -> bool {
        const STEADY: Duration = Duration::from_secs(300);
        let next = *self.next.get_or_insert_with(|| since.tick.after(pace));
        if next > now {
            return false;
        }
        self.interval =
            if now.since(since.tick) < STEADY { pace } else { self.interval.max(pace).mul_f64(1.5).min(WAIT_MAX) };
        self.next = Some(now.after(self.interval));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Classification;

    fn past(outages: &[(i64, i64, bool)]) -> Vec<HistoryEntry> {
        let entry = |at, status, estimated: bool| HistoryEntry {
            classification: Classification::TechnicallyBroken,
            status,
            note: String::new(),
            by: "judge".into(),
            at: Wall(at),
            recovery_at: estimated.then_some(Wall(at)),
        };
        outages
            .iter()
            .flat_map(|&(at, length, estimated)| {
                [entry(at, Status::Down, estimated), entry(at + length, Status::Ok, false)]
            })
            .collect()
    }

    #[test]
    fn waits_double_from_five_seconds_up_to_a_minute() {
        let table =
            [(0, 5.0, 6.0), (1, 5.0, 6.0), (2, 10.0, 12.0), (4, 40.0, 48.0), (5, 60.0, 60.0), (u32::MAX, 60.0, 60.0)];
        for (level, least, most) in table {
            assert_eq!(wait(level, 0.0).as_secs_f64(), least, "level {level}");
            assert_eq!(wait(level, 1.0).as_secs_f64(), most, "level {level}");
        }
    }

    #[test]
    fn an_estimate_is_the_median_of_three_or_more_past_outages() {
        let table = [
            (vec![], None),
            (vec![(0, 1_000, false), (9_000, 2_000, false)], None),
            (vec![(0, 90_000, false), (1_000_000, 30_000, false), (2_000_000, 60_000, false)], Some(60_000)),
            (vec![(0, 100, false), (1_000, 100, false), (2_000, 100, false)], Some(1_000)),
            (vec![(0, 9_000, false), (10_000, 9_000, true), (20_000, 9_000, true)], None),
        ];
        for (outages, expected) in table {
            assert_eq!(estimate(&super::outages(&past(&outages))), expected.map(Duration::from_millis), "{outages:?}");
        }
    }

    #[test]
    fn probes_come_every_second_for_five_minutes_and_then_slow_down_to_one_a_minute() {
        let since = Now::default();
        let mut probing = Probing::default();
        let due: Vec<u64> = (0..1_200u64)
            .filter(|second| probing.is_due(since, Tick(second * 1_000), Duration::from_secs(1)))
            .collect();
        assert_eq!(due.iter().filter(|second| **second < 300).count(), 299);
        let waits: Vec<u64> = due.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(waits.iter().all(|wait| *wait <= 60));
        assert_eq!(waits.last(), Some(&60));
    }
}
