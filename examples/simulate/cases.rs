//! The backends that are simulated, the calls that they get, and what is counted.

use crate::rules::Rule;

/// How the backend does at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Backend {
    /// It answers, and this share of its answers are errors.
    Up(f64),
    /// Every call gets a 503.
    Failing,
    /// Nobody listens.
    Refusing,
}

/// One row of the table.
#[derive(Clone, Copy)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// Whether toolvane probes.
    pub(crate) probed: bool,
    /// Calls per second.
    rate: f64,
    hours: f64,
    /// The backend at a time, in milliseconds.
    backend: fn(u64) -> Backend,
    pub(crate) show: fn(&Tally) -> String,
    /// What ours must not be worse than.
    pub(crate) demand: fn(&Tally) -> Option<String>,
}

/// What one rule did in one case.
#[derive(Default)]
pub(crate) struct Tally {
    good: u64,
    good_refused: u64,
    bad: u64,
    bad_sent: u64,
    trips: u64,
    degraded: u64,
    /// When each outage began.
    began: Vec<u64>,
    outages: Vec<Outage>,
}

/// One outage, times in milliseconds since it began or ended.
#[derive(Clone, Copy, Default)]
struct Outage {
    first_call: Option<u64>,
    refused_from: Option<u64>,
    ended: Option<u64>,
    open_again: Option<u64>,
}

impl Tally {
    fn refused_well(&self) -> f64 {
        100.0 * ratio(self.good_refused, self.good)
    }

    fn sent_ill(&self) -> f64 {
        100.0 * ratio(self.bad_sent, self.bad)
    }

    /// Outages that had a call early enough to be noticed, and those of them that were.
    fn detected(&self) -> (usize, usize) {
        let noticeable = |outage: &&Outage| matches!((outage.first_call, outage.ended), (Some(first), Some(end)) if first + 2_500 < end);
        let all: Vec<&Outage> = self.outages.iter().filter(noticeable).collect();
        (all.iter().filter(|outage| outage.refused_from.is_some()).count(), all.len())
    }

    fn mean(&self, of: impl Fn(&Outage) -> Option<u64>) -> Option<f64> {
        let all: Vec<f64> =
            self.outages.iter().filter_map(of).map(|ms| u32::try_from(ms).map_or(f64::MAX, f64::from)).collect();
        (!all.is_empty())
            .then(|| all.iter().sum::<f64>() / f64::from(u32::try_from(all.len()).unwrap_or(u32::MAX)) / 1_000.0)
    }

    fn sent_per_outage(&self) -> f64 {
        ratio(self.bad_sent, self.outages.len() as u64)
    }

    fn slowest_notice(&self) -> u64 {
        let after_first = |outage: &Outage| Some(outage.refused_from?.saturating_sub(outage.first_call?));
        self.outages.iter().filter_map(after_first).max().unwrap_or(0)
    }
}

fn ratio(part: u64, whole: u64) -> f64 {
    let float = |count: u64| u32::try_from(count).map_or(f64::MAX, f64::from);
    if whole == 0 { 0.0 } else { float(part) / float(whole) }
}

impl Case {
    /// One run: Poisson calls, one at a time, and a look at the clock every 100 ms.
    pub(crate) fn run(&self, rule: &mut dyn Rule, seed: u64) -> Tally {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut tally = Tally::default();
        let end = self.hours * 3_600_000.0;
        let (mut at, mut ticked) = (0.0_f64, 0_u64);
        let mut was = Backend::Up(0.0);
        loop {
            at += -(1.0 - random.f64()).ln() / self.rate * 1_000.0;
            if at >= end {
                break;
            }
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a day of milliseconds fits")]
            let now = at as u64;
            while ticked + 100 <= now {
                ticked += 100;
                self.turn(&mut was, ticked, &mut tally);
                let refuses = rule.tick(ticked, (self.backend)(ticked));
                tally.notice(refuses, ticked, was);
            }
            self.turn(&mut was, now, &mut tally);
            self.call(rule, now, &mut random, &mut tally);
        }
        tally.trips = rule.trips();
        tally.degraded = rule.degraded();
        tally
    }

    /// Begins and ends outages.
    fn turn(&self, was: &mut Backend, now: u64, tally: &mut Tally) {
        let is = (self.backend)(now);
        let well = |backend: Backend| matches!(backend, Backend::Up(_));
        if well(*was) && !well(is) {
            tally.began.push(now);
            tally.outages.push(Outage::default());
        } else if !well(*was) && well(is) {
            let began = tally.began.last().copied().unwrap_or(now);
            if let Some(outage) = tally.outages.last_mut() {
                outage.ended = Some(now - began);
            }
        }
        *was = is;
    }

    fn call(&self, rule: &mut dyn Rule, now: u64, random: &mut fastrand::Rng, tally: &mut Tally) {
        let is = (self.backend)(now);
        let admitted = rule.admit(now);
        let failed = match is {
            Backend::Up(errors) => random.f64() < errors,
            Backend::Failing | Backend::Refusing => true,
        };
        if admitted {
            rule.done(now, if failed { Some(is) } else { None });
        }
        if let Backend::Up(_) = is {
            tally.good += 1;
            tally.good_refused += u64::from(!admitted);
        } else {
            tally.bad += 1;
            tally.bad_sent += u64::from(admitted);
            let began = tally.began.last().copied().unwrap_or(now);
            if let Some(outage) = tally.outages.last_mut() {
                outage.first_call.get_or_insert(now - began);
            }
        }
    }
}

impl Tally {
    /// Whether the rule refuses calls at this moment: during an outage that is its purpose, after it the price.
    fn notice(&mut self, refuses: bool, now: u64, is: Backend) {
        let (Some(began), Some(outage)) = (self.began.last(), self.outages.last_mut()) else { return };
        match (is, outage.ended) {
            (Backend::Failing | Backend::Refusing, _) if refuses => {
                outage.refused_from.get_or_insert(now - began);
            }
            (Backend::Up(_), Some(ended)) if !refuses => {
                outage.open_again.get_or_insert((now - began).saturating_sub(ended));
            }
            _ => {}
        }
    }
}

fn refusals(tally: &Tally) -> String {
    format!("{} trips, {:.1} %", tally.trips, tally.refused_well())
}

fn no_trips(tally: &Tally) -> Option<String> {
    (tally.trips > 0 || tally.good_refused > 0).then(|| refusals(tally))
}

fn seconds(value: Option<f64>) -> String {
    value.map_or("never".to_owned(), |seconds| format!("{seconds:.1} s"))
}

fn outage(tally: &Tally) -> String {
    let (noticed, healed) = (tally.mean(|outage| outage.refused_from), tally.mean(|outage| outage.open_again));
    format!("{} / {:.0} / {}", seconds(noticed), tally.sent_per_outage(), seconds(healed))
}

fn all_noticed(tally: &Tally) -> Option<String> {
    let (detected, all) = tally.detected();
    if detected < all {
        return Some(format!("noticed {detected} of {all} outages"));
    }
    // Two seconds of confirmation, seen by a clock that ticks every 100 ms.
    (tally.slowest_notice() > 2_100).then(|| format!("noticed {} ms after the first call", tally.slowest_notice()))
}

/// Calls sent into an outage, and seconds until a call is let through after it.
fn no_worse_than(sent: f64, healed: f64, tally: &Tally) -> Option<String> {
    let waited = tally.mean(|outage| outage.open_again).unwrap_or(f64::MAX);
    (waited > healed || tally.sent_per_outage() > sent).then(|| outage(tally))
}

/// An outage of five minutes at the start of each half hour, from the tenth minute on.
fn five_minutes_dead(now: u64) -> Backend {
    if (600_000..900_000).contains(&(now % 1_800_000)) { Backend::Refusing } else { Backend::Up(0.0) }
}

/// The table of STATE 6, row by row, with the figures that ours is known for.
pub(crate) fn cases() -> Vec<Case> {
    let base = Case {
        name: "10 % errors, 50/s, 24 h",
        probed: true,
        rate: 50.0,
        hours: 24.0,
        backend: |_| Backend::Up(0.1),
        show: refusals,
        demand: |tally| no_trips(tally).or_else(|| (tally.degraded > 0).then(|| "entered DEGRADED".to_owned())),
    };
    let one_hour = |name, backend| Case { name, hours: 1.0, backend, demand: no_trips, ..base };
    let outages = |name, rate, probed| Case { name, rate, probed, hours: 6.0, backend: five_minutes_dead, ..base };
    vec![
        Case { ..base },
        one_hour("300 ms blip each minute, 50/s, 1 h", |now| {
            if now % 60_000 < 300 { Backend::Failing } else { Backend::Up(0.0) }
        }),
        one_hour("2 s restart each 10 min, 50/s, 1 h", |now| {
            if (1..2_001).contains(&(now % 600_000)) { Backend::Refusing } else { Backend::Up(0.0) }
        }),
        one_hour("50 % errors, 50/s, 1 h", |_| Backend::Up(0.5)),
        Case {
            show: |tally| {
                format!(
                    "{}, {} of {}",
                    seconds(tally.mean(|outage| outage.refused_from)),
                    tally.detected().0,
                    tally.detected().1
                )
            },
            demand: all_noticed,
            ..outages("refused 5 min, 1/min: noticed after", 1.0 / 60.0, true)
        },
        Case {
            show: outage,
            demand: |tally| all_noticed(tally).or_else(|| no_worse_than(14.0, 2.0, tally)),
            ..outages("refused 5 min, 1/s: noticed / sent / refused on", 1.0, true)
        },
        Case {
            show: outage,
            demand: |tally| all_noticed(tally).or_else(|| no_worse_than(14.0, 61.0, tally)),
            ..outages("the same without a probe", 1.0, false)
        },
        Case {
            name: "60 s bad, 60 s good, 1/s, 2 h: refused / sent",
            rate: 1.0,
            hours: 2.0,
            backend: |now| if now % 120_000 >= 60_000 { Backend::Refusing } else { Backend::Up(0.0) },
            show: |tally| format!("{:.0} % / {:.0} %", tally.refused_well(), tally.sent_ill()),
            demand: |tally| {
                let worse = tally.refused_well() >= 1.5 || tally.sent_ill() >= 25.5;
                worse.then(|| format!("{:.1} % / {:.1} %", tally.refused_well(), tally.sent_ill()))
            },
            ..base
        },
    ]
}
