//! Time as a value: a monotonic [`Tick`] for decisions, a [`Wall`] time for what is stored and shown.
//!
//! Nothing outside this module reads a clock (`clippy.toml` bans it). Whatever decides takes a [`Now`]; whatever has to
//! know the time asks the injected [`Clock`]. Ticks count on while the machine is suspended (`CLOCK_BOOTTIME`), so a
//! laptop that slept for an hour does not wake to cooldowns of an hour ago, and a stepped wall clock moves no deadline.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A moment on the monotonic clock, in milliseconds since the machine started. Never stored: it means nothing elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tick(pub u64);

impl Tick {
    /// The time that has passed since `earlier`; zero if `earlier` lies ahead.
    pub fn since(self, earlier: Tick) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }

    /// This moment moved ahead by `by`, in whole milliseconds, saturating.
    #[must_use]
    pub fn after(self, by: Duration) -> Tick {
        Tick(self.0.saturating_add(millis(by)))
    }

    /// This moment moved back by `by`, in whole milliseconds, no further than zero.
    #[must_use]
    pub fn before(self, by: Duration) -> Tick {
        Tick(self.0.saturating_sub(millis(by)))
    }
}

/// A wall-clock time in milliseconds since the Unix epoch, written as RFC 3339 in UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Wall(pub i64);

impl Wall {
    /// This time moved by `by` milliseconds, saturating.
    #[must_use]
    pub fn plus_millis(self, by: i64) -> Wall {
        Wall(self.0.saturating_add(by))
    }

    /// Whether there is at least so much time between the two, in whichever order.
    pub fn is_apart(self, other: Wall, by: Duration) -> bool {
        self.0.abs_diff(other.0) >= millis(by)
    }

    /// Whole seconds since the Unix epoch, rounded down.
    pub fn unix_seconds(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// Hour and minute in UTC as `14:02`, for texts that must stay stable within a minute (DESIGN 10).
    pub fn hour_minute(self) -> String {
        let minutes = self.0.div_euclid(60_000).rem_euclid(24 * 60);
        format!("{:02}:{:02}", minutes / 60, minutes % 60)
    }

    /// The same time as the standard library says it; `None` outside its range.
    pub fn system_time(self) -> Option<SystemTime> {
        u64::try_from(self.0).ok().and_then(|ms| UNIX_EPOCH.checked_add(Duration::from_millis(ms)))
    }
}

impl fmt::Display for Wall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const YEAR_9999: i64 = 253_402_300_799_999;
        let shown = Wall(self.0.clamp(0, YEAR_9999)).system_time().unwrap_or(UNIX_EPOCH);
        write!(f, "{}", humantime::format_rfc3339_millis(shown))
    }
}

impl FromStr for Wall {
    type Err = humantime::TimestampError;

    fn from_str(text: &str) -> Result<Wall, Self::Err> {
        let time = humantime::parse_rfc3339(text)?;
        Ok(Wall::from(time))
    }
}

impl schemars::JsonSchema for Wall {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Time".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string", "format": "date-time"})
    }
}

impl From<SystemTime> for Wall {
    fn from(time: SystemTime) -> Wall {
        match time.duration_since(UNIX_EPOCH) {
            Ok(after) => Wall(i64::try_from(after.as_millis()).unwrap_or(i64::MAX)),
            Err(before) => Wall(i64::try_from(before.duration().as_millis()).map_or(i64::MIN, |ms| -ms)),
        }
    }
}

impl Serialize for Wall {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Wall {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Wall, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Both clocks, read together: the only form in which time enters a decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// For every decision.
    pub tick: Tick,
    /// For what is stored or shown.
    pub wall: Wall,
}

impl Now {
    /// How a monotonic moment reads on the wall clock as it stands now.
    pub fn wall_at(self, tick: Tick) -> Wall {
        let ahead = i128::from(tick.0) - i128::from(self.tick.0);
        self.wall.plus_millis(i64::try_from(ahead).unwrap_or(i64::MAX))
    }

    /// The monotonic moment of a wall time as the wall clock stands now; never before the machine started.
    pub fn tick_at(self, wall: Wall) -> Tick {
        let ahead = i128::from(wall.0) - i128::from(self.wall.0);
        let tick = (i128::from(self.tick.0) + ahead).max(0);
        Tick(u64::try_from(tick).unwrap_or(u64::MAX))
    }

    /// Both clocks moved ahead by `by`.
    #[must_use]
    pub fn after(self, by: Duration) -> Now {
        let ms = i64::try_from(millis(by)).unwrap_or(i64::MAX);
        Now { tick: self.tick.after(by), wall: self.wall.plus_millis(ms) }
    }
}

/// Where time comes from. One per process, passed to whatever has to ask.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// Both clocks at this moment.
    fn now(&self) -> Now;

    /// The monotonic clock at this moment.
    fn tick(&self) -> Tick {
        self.now().tick
    }
}

/// The machine's clocks.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn tick(&self) -> Tick {
        let boot = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let seconds = u64::try_from(boot.tv_sec).unwrap_or(0);
        let sub_millis = u64::try_from(boot.tv_nsec).unwrap_or(0) / 1_000_000;
        Tick(seconds * 1000 + sub_millis)
    }

    fn now(&self) -> Now {
        let tick = self.tick();
        #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the clock")]
        let wall = Wall::from(SystemTime::now());
        let before = APART.load(Ordering::Relaxed);
        let apart = steady(before, tick, wall);
        if apart != before {
            APART.store(apart, Ordering::Relaxed);
        }
        Now { tick, wall: Wall(apart.saturating_add_unsigned(tick.0)) }
    }
}

/// How far the wall clock is ahead of the monotonic one, in milliseconds, as it was found last.
static APART: AtomicI64 = AtomicI64::new(i64::MIN);
/// Less than this is the time between reading the two clocks, or what is cut off in reading them, and no step of either.
const APART_SLACK: u64 = 20;

/// How far the clocks are apart: as before, unless one was moved. Otherwise a moment would read a millisecond earlier or later
/// each time that it is shown.
fn steady(before: i64, tick: Tick, wall: Wall) -> i64 {
    let apart = wall.0.saturating_sub_unsigned(tick.0);
    if apart.abs_diff(before) < APART_SLACK { before } else { apart }
}

/// A clock that stands still until it is moved; clones share the same hands. For tests, simulations and replays.
#[derive(Clone, Debug)]
pub struct ManualClock {
    hands: Arc<(AtomicU64, AtomicI64)>,
}

impl ManualClock {
    /// A clock that shows `start`.
    pub fn new(start: Now) -> ManualClock {
        ManualClock { hands: Arc::new((AtomicU64::new(start.tick.0), AtomicI64::new(start.wall.0))) }
    }

    /// Moves both clocks ahead.
    pub fn advance(&self, by: Duration) {
        self.hands.0.fetch_add(millis(by), Ordering::SeqCst);
        self.hands.1.fetch_add(i64::try_from(millis(by)).unwrap_or(i64::MAX), Ordering::SeqCst);
    }

    /// Steps the wall clock alone, as NTP or an operator would.
    pub fn step_wall(&self, by_millis: i64) {
        self.hands.1.fetch_add(by_millis, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Now {
        Now { tick: Tick(self.hands.0.load(Ordering::SeqCst)), wall: Wall(self.hands.1.load(Ordering::SeqCst)) }
    }
}

/// A duration in whole milliseconds, saturating.
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Now = Now { tick: Tick(5_000), wall: Wall(1_772_445_600_000) };

    #[test]
    fn a_wall_time_survives_being_written_and_read() {
        let text = serde_json::to_string(&START.wall).unwrap();
        assert_eq!(text, "\"2026-03-02T10:00:00.000Z\"");
        assert_eq!(serde_json::from_str::<Wall>(&text).unwrap(), START.wall);
    }

    #[test]
    fn a_step_of_the_wall_clock_moves_no_tick() {
        let clock = ManualClock::new(START);
        clock.step_wall(10 * 365 * 86_400_000);
        assert_eq!(clock.now().tick, START.tick);
    }

    #[test]
    fn ticks_and_wall_times_convert_both_ways_and_never_wrap() {
        let later = START.after(Duration::from_secs(90));
        assert_eq!(START.wall_at(later.tick), later.wall);
        assert_eq!(START.tick_at(later.wall), later.tick);
        assert_eq!(START.tick_at(Wall(i64::MIN)), Tick(0));
        assert_eq!(START.wall_at(Tick(u64::MAX)).hour_minute().len(), 5);
    }

    #[test]
    fn a_moment_reads_the_same_each_time_until_a_clock_is_moved() {
        let found = steady(i64::MIN, START.tick, START.wall);
        for (ticks, walls) in [(0, 1), (1, 0), (7, 9), (1_000, 1_019)] {
            let later = (Tick(START.tick.0 + ticks), START.wall.plus_millis(walls));
            assert_eq!(steady(found, later.0, later.1), found);
        }
        assert_eq!(steady(found, START.tick, START.wall.plus_millis(20)), found + 20);
        assert_eq!(steady(found, START.tick, START.wall.plus_millis(-3_600_000)), found - 3_600_000);
    }

    #[test]
    fn the_machine_clock_goes_forward() {
        let first = SystemClock.now();
        assert!(SystemClock.now().tick >= first.tick);
        assert!(first.wall > Wall(1_700_000_000_000));
    }
}
