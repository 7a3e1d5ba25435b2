//! What we believe about an integration. A verdict that hides tools must be confirmed: left alone for two lifetimes it is
//! forgotten. Blips and errors of a probe say nothing, so they change nothing but the time of the next one.

use std::borrow::Cow;
use std::time::Duration;

use serde::Serialize;

use crate::clock::{Now, Tick, millis};
use crate::telemetry::ProbeResult;

/// How soon after the start everything has been asked, at most.
const FIRST_WITHIN: Duration = Duration::from_secs(1);
/// How much longer than its lifetime an answer may be kept at most, so that many sidecars do not ask in step.
const JITTER: f64 = 0.1;

/// What one probe found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What it came to.
    pub result: ProbeResult,
    /// In our own words, such as `HTTP 401`; never anything that the service or a credential said.
    pub detail: Cow<'static, str>,
}

impl Finding {
    /// A finding with its words.
    pub fn new(result: ProbeResult, detail: impl Into<Cow<'static, str>>) -> Finding {
        Finding { result, detail: detail.into() }
    }
}

/// What is believed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Nobody has said yet; hides nothing.
    #[default]
    Unknown,
    /// Set up.
    Ready,
    /// Not set up.
    Unconfigured,
    /// Its credentials are refused.
    AuthFailed,
}

impl Verdict {
    /// Whether tools are hidden for it.
    pub fn hides(self) -> bool {
        matches!(self, Verdict::Unconfigured | Verdict::AuthFailed)
    }

    /// The name in answers, labels and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Verdict::Unknown => "unknown",
            Verdict::Ready => "ready",
            Verdict::Unconfigured => "unconfigured",
            Verdict::AuthFailed => "auth_failed",
        }
    }
}

/// What is held about one integration. Immutable: a probe makes a new one.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    verdict: Verdict,
    /// When the verdict became what it is.
    pub(super) since: Now,
    /// When a probe said so last.
    confirmed: Tick,
    /// When it must be asked again.
    pub(super) deadline: Tick,
    /// What was found last, and when; `None` until the first probe.
    pub(super) last: Option<(Finding, Now)>,
    /// Whether something changed under it: what it says is believed until the next probe and not a moment longer.
    doubted: bool,
}

impl Entry {
    /// What is believed after a probe. `random` in [0, 1) spreads the next one.
    pub(super) fn after(before: Option<&Entry>, finding: Finding, ttl: Duration, now: Now, random: f64) -> Entry {
        let said = match finding.result {
            ProbeResult::Ok => Some(Verdict::Ready),
            ProbeResult::Unconfigured => Some(Verdict::Unconfigured),
            ProbeResult::AuthFailed => Some(Verdict::AuthFailed),
            ProbeResult::Transient | ProbeResult::Error => None,
        };
        let known = before.filter(|before| !before.doubted);
        let verdict = said.or(known.map(|known| known.verdict(ttl, now.tick))).unwrap_or_default();
        let same = before.filter(|before| before.verdict == verdict);
        Entry {
            verdict,
            since: same.map_or(now, |same| same.since),
            confirmed: if said.is_some() { now.tick } else { known.map_or(now.tick, |known| known.confirmed) },
            deadline: now.tick.after(spread(ttl, random)),
            last: Some((finding, now)),
            doubted: false,
        }
    }

    /// The same belief, to be asked about at once; unless the next probe confirms it, it is forgotten.
    pub(super) fn doubted(&self, now: Now) -> Entry {
        Entry { deadline: now.tick, doubted: true, ..self.clone() }
    }

    /// What holds now.
    pub(super) fn verdict(&self, ttl: Duration, now: Tick) -> Verdict {
        if self.verdict.hides() && now.since(self.confirmed) >= ttl.saturating_mul(2) {
            return Verdict::Unknown;
        }
        self.verdict
    }

    /// Whether it must be asked again.
    pub(super) fn is_due(&self, now: Tick) -> bool {
        self.deadline <= now
    }
}

/// When an integration is asked first: soon after the start, because until then nobody knows, and spread, because many
/// sidecars may start together.
pub(super) fn first(start: Tick, random: f64) -> Tick {
    start.after(FIRST_WITHIN.mul_f64(random.clamp(0.0, 1.0)))
}

/// The lifetime, and up to a tenth of it more. Never less: what is believed is believed for its whole lifetime.
fn spread(ttl: Duration, random: f64) -> Duration {
    let share = ttl.mul_f64(JITTER * random.clamp(0.0, 1.0));
    Duration::from_millis(millis(ttl).saturating_add(millis(share)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::clock::Wall;

    const TTL: Duration = Duration::from_secs(300);
    const START: Now = Now { tick: Tick(1_000_000), wall: Wall(1_772_460_120_000) };

    fn at(seconds: u64) -> Now {
        START.after(Duration::from_secs(seconds))
    }

    fn found(before: Option<&Entry>, result: ProbeResult, now: Now) -> Entry {
        Entry::after(before, Finding::new(result, ""), TTL, now, 0.0)
    }

    #[test]
    fn a_blip_or_an_error_keeps_the_verdict_and_starts_its_time_anew() {
        for said in [ProbeResult::Ok, ProbeResult::Unconfigured, ProbeResult::AuthFailed] {
            let first = found(None, said, START);
            for blip in [ProbeResult::Transient, ProbeResult::Error] {
                let second = found(Some(&first), blip, at(300));
                assert_eq!(second.verdict(TTL, at(301).tick), first.verdict(TTL, START.tick));
                assert_eq!((second.since, second.deadline), (first.since, at(600).tick));
            }
        }
    }

    #[test]
    fn a_blip_on_a_cold_start_stays_unknown() {
        for blip in [ProbeResult::Transient, ProbeResult::Error] {
            assert_eq!(found(None, blip, START).verdict(TTL, START.tick), Verdict::Unknown);
        }
    }

    #[test]
    fn a_hiding_verdict_that_nothing_confirmed_for_two_lifetimes_is_forgotten_and_a_ready_one_stays() {
        let hidden = found(None, ProbeResult::AuthFailed, START);
        let blip = found(Some(&hidden), ProbeResult::Transient, at(300));
        assert_eq!(blip.verdict(TTL, at(599).tick), Verdict::AuthFailed);
        assert_eq!(blip.verdict(TTL, at(600).tick), Verdict::Unknown);
        let later = found(Some(&blip), ProbeResult::Error, at(600));
        assert_eq!(later.verdict(TTL, at(600).tick), Verdict::Unknown);
        let confirmed = found(Some(&blip), ProbeResult::AuthFailed, at(590));
        assert_eq!(confirmed.verdict(TTL, at(1_189).tick), Verdict::AuthFailed);
        let ready = found(None, ProbeResult::Ok, START);
        assert_eq!(ready.verdict(TTL, at(100_000).tick), Verdict::Ready);
    }

    #[test]
    fn what_is_doubted_is_believed_until_the_next_probe_and_no_longer() {
        let hidden = found(None, ProbeResult::Unconfigured, START).doubted(at(10));
        assert!(hidden.is_due(at(10).tick));
        assert_eq!(hidden.verdict(TTL, at(10).tick), Verdict::Unconfigured);
        assert_eq!(found(Some(&hidden), ProbeResult::Transient, at(11)).verdict(TTL, at(11).tick), Verdict::Unknown);
        assert_eq!(found(Some(&hidden), ProbeResult::Ok, at(11)).verdict(TTL, at(11).tick), Verdict::Ready);
    }

    proptest! {
        #[test]
        fn the_next_probe_is_never_due_before_the_lifetime_is_over_and_soon_after(
            ttl in 1_000_u64..3_600_000,
            random in 0.0..1.0_f64,
        ) {
            let ttl = Duration::from_millis(ttl);
            let entry = Entry::after(None, Finding::new(ProbeResult::Ok, ""), ttl, START, random);
            prop_assert!(!entry.is_due(START.tick.after(ttl).before(Duration::from_millis(1))));
            prop_assert!(entry.is_due(START.tick.after(ttl.mul_f64(1.1) + Duration::from_millis(1))));
        }

        #[test]
        fn only_a_probe_that_said_so_ever_hides(results in prop::collection::vec(0..5_usize, 0..60), gaps in 0..900_u64) {
            let mut entry: Option<Entry> = None;
            let mut now = START;
            let mut last_said: Option<(ProbeResult, Now)> = None;
            for index in results {
                now = now.after(Duration::from_secs(gaps));
                let result = ProbeResult::ALL[index];
                if matches!(result, ProbeResult::Ok | ProbeResult::Unconfigured | ProbeResult::AuthFailed) {
                    last_said = Some((result, now));
                }
                entry = Some(found(entry.as_ref(), result, now));
                let hides = entry.as_ref().is_some_and(|entry| entry.verdict(TTL, now.tick).hides());
                let may = last_said.is_some_and(|(said, when)| {
                    said != ProbeResult::Ok && now.tick.since(when.tick) < TTL * 2
                });
                prop_assert_eq!(hides, may);
            }
        }
    }
}
