//! What happens to the process.

use super::super::labels;
use super::super::logs::Shown;
use super::super::metrics::Metrics;
use super::Event;
use crate::clock::Wall;

/// The process serves.
#[derive(Clone, Copy, Debug)]
pub struct Started<'a> {
    /// Its version.
    pub version: &'a str,
    /// Where it listens for dispatchers.
    pub listen: &'a str,
    /// Where the admin surface listens.
    pub admin: &'a str,
    /// How many backends it stands in front of.
    pub backends: usize,
}

impl Event for Started<'_> {
    fn emit(self, metrics: &Metrics) {
        metrics.draining.set(0);
        let Started { version, listen, admin, backends } = self;
        tracing::info!(target: "toolvane", version, listen, admin, backends, "toolvane serves");
    }
}

/// Configuration and rules were loaded, at the start or again.
#[derive(Clone, Copy, Debug)]
pub struct Reloaded<'a> {
    /// The hash of what is in force now, or why the old one stays.
    pub result: Result<&'a str, &'a str>,
    /// Keys of the file that have changed and take effect at a restart.
    pub needs_restart: &'a [String],
    /// When.
    pub at: Wall,
}

impl Event for Reloaded<'_> {
    fn emit(self, metrics: &Metrics) {
        let word = if self.result.is_ok() { "success" } else { "failure" };
        metrics.config_reloads.get_or_create(&labels::OneResult { result: word }).inc();
        metrics.config_reload_successful.set(i64::from(self.result.is_ok()));
        match self.result {
            Ok(hash) => {
                #[expect(clippy::cast_precision_loss, reason = "milliseconds since 1970 stay far below 2^53")]
                metrics.config_reload_success_time.set(self.at.0 as f64 / 1000.0);
                metrics.config_info.clear();
                metrics.config_info.get_or_create(&labels::Config { hash: labels::harmless(hash) }).set(1);
                tracing::info!(target: "toolvane::config", hash, "configuration in force");
                if !self.needs_restart.is_empty() {
                    let keys = self.needs_restart.join(", ");
                    tracing::warn!(target: "toolvane::config", keys, "changed keys that take effect at a restart");
                }
            }
            Err(why) => {
                tracing::error!(target: "toolvane::config", why, "configuration refused, the old one stays in force")
            }
        }
    }
}

/// The process stops taking new work and finishes what it has.
#[derive(Clone, Copy, Debug)]
pub struct Draining {
    /// Calls that are still in flight.
    pub in_flight: u64,
}

impl Event for Draining {
    fn emit(self, metrics: &Metrics) {
        metrics.draining.set(1);
        tracing::info!(target: "toolvane", in_flight = self.in_flight, "draining, health writes are frozen");
    }
}

/// The process ends.
#[derive(Clone, Copy, Debug)]
pub struct Stopped {
    /// Calls that were cut off because the drain took too long.
    pub cut_off: u64,
}

impl Event for Stopped {
    fn emit(self, _: &Metrics) {
        tracing::info!(target: "toolvane", cut_off = self.cut_off, "toolvane stops");
    }
}

/// Somebody wrote through the admin surface, or was refused.
#[derive(Clone, Copy, Debug)]
pub struct Audited<'a> {
    /// The name of his token, `local`, or `nobody`.
    pub who: &'a str,
    /// What he asked for: method and path, or the tool of the admin MCP server.
    pub what: &'a str,
    /// Whether it was done.
    pub done: bool,
    /// What came of it.
    pub outcome: &'a str,
    /// Why, as he said.
    pub reason: Option<&'a str>,
    /// What was there before.
    pub before: Option<&'a str>,
    /// What is there now.
    pub after: Option<&'a str>,
}

impl Event for Audited<'_> {
    fn emit(self, _: &Metrics) {
        let result = if self.done { "done" } else { "refused" };
        tracing::info!(
            target: "toolvane::audit",
            who = %Shown(self.who),
            what = %Shown(self.what),
            result,
            outcome = self.outcome,
            reason = self.reason.map(|reason| tracing::field::display(Shown(reason))),
            before = self.before,
            after = self.after,
            "write through the admin surface"
        );
    }
}

/// A fault of our own. Traffic passes (DESIGN 8, fail open).
#[derive(Clone, Copy, Debug)]
pub struct InternalError<'a> {
    /// Where, as a word of a closed set.
    pub place: &'static str,
    /// What, without anything from a request.
    pub why: &'a str,
}

impl Event for InternalError<'_> {
    fn emit(self, metrics: &Metrics) {
        metrics.internal_errors.get_or_create(&labels::Place { place: self.place }).inc();
        tracing::error!(target: "toolvane", place = self.place, why = self.why, "fault of toolvane itself, traffic passes");
    }
}
