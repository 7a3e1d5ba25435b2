//! State that is read when somebody scrapes. Whoever answers the scrape takes a [`Sample`] of what the health core and the
//! store hold at that moment; nothing is kept twice, so nothing can disagree.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prometheus::collector::Collector;
use prometheus::encoding::{DescriptorEncoder, EncodeGaugeValue, EncodeLabelSet, EncodeMetric};
use prometheus::metrics::MetricType;
use prometheus::metrics::counter::ConstCounter;
use prometheus::metrics::gauge::ConstGauge;
use prometheus::registry::Unit;

use super::labels::{self, Name, OTHER, harmless};
use crate::clock::Wall;
use crate::health::Status;
use crate::rules::Classification;
use crate::store::Stats;

/// What holds at the moment of a scrape.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    /// The state of tools for everybody: of each tool the worst entry at PROJECT or wider. The tool `*` is the whole backend.
    pub tools: Vec<ToolState>,
    /// Active cooldowns by backend and last classification.
    pub cooldowns: Vec<(Arc<str>, Classification, u64)>,
    /// Health documents in memory.
    pub documents: u64,
    /// Tools that are hidden from everybody, by backend and reason.
    pub hidden: Vec<HiddenTools>,
    /// What is believed about integrations.
    pub integrations: Vec<IntegrationState>,
    /// The store's counters; `None` without a store.
    pub store: Option<Stats>,
    /// Outcomes that were to be recorded and could not be.
    pub outcomes_left_out: u64,
}

/// How many tools of a backend are hidden for one reason.
#[derive(Clone, Debug)]
pub struct HiddenTools {
    /// The backend.
    pub backend: Arc<str>,
    /// Why, as a word of a closed set.
    pub reason: &'static str,
    /// How many.
    pub count: u64,
}

/// What is believed about one integration.
#[derive(Clone, Debug)]
pub struct IntegrationState {
    /// Its name, from the configuration.
    pub integration: Arc<str>,
    /// The state, as a word of a closed set.
    pub state: &'static str,
}

/// The state of one tool.
#[derive(Clone, Debug)]
pub struct ToolState {
    /// Its backend.
    pub backend: Arc<str>,
    /// The tool.
    pub tool: Arc<str>,
    /// Its status.
    pub status: Status,
    /// Since when.
    pub since: Wall,
}

#[derive(Debug, Default)]
pub(super) struct SampleCollector {
    sample: Mutex<Sample>,
    turn: Mutex<()>,
}

impl SampleCollector {
    /// Puts a sample in place for as long as the value that it returns lives. Tools beyond the bound are left out, those
    /// that are not OK last.
    pub(super) fn set(&self, mut sample: Sample, tools_max: usize) -> MutexGuard<'_, ()> {
        let turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        sample
            .tools
            .sort_by(|a, b| b.status.cmp(&a.status).then_with(|| (&a.backend, &a.tool).cmp(&(&b.backend, &b.tool))));
        let mut seen = HashSet::new();
        sample.tools.retain_mut(|state| {
            state.tool = Arc::from(harmless(&state.tool));
            state.tool.as_ref() != OTHER
                && seen.len() < tools_max
                && seen.insert((state.backend.clone(), state.tool.clone()))
        });
        *self.sample.lock().unwrap_or_else(PoisonError::into_inner) = sample;
        turn
    }
}

impl Collector for SampleCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let sample = self.sample.lock().unwrap_or_else(PoisonError::into_inner);
        let encoder = &mut encoder;
        tools(encoder, &sample.tools)?;
        cooldowns(encoder, &sample.cooldowns)?;
        hidden(encoder, &sample.hidden)?;
        integrations(encoder, &sample.integrations)?;
        let documents = i64::try_from(sample.documents).unwrap_or(i64::MAX);
        gauges(encoder, ("health_documents", "Health documents in memory", None), [(NONE, documents)])?;
        let recording =
            ("outcomes_left_out", "Outcomes not recorded, since the writer fell behind or the disk refused");
        counter(encoder, recording.0, recording.1, sample.outcomes_left_out)?;
        sample.store.as_ref().map_or(Ok(()), |stats| store(encoder, stats))
    }
}

/// Name without prefix and unit, help, unit.
type Described<'a> = (&'a str, &'a str, Option<Unit>);

/// The label set of a metric without labels.
const NONE: [(&str, &str); 0] = [];

fn tools(encoder: &mut DescriptorEncoder<'_>, tools: &[ToolState]) -> fmt::Result {
    let states = [(Status::Ok, "ok"), (Status::Degraded, "degraded"), (Status::Down, "down")];
    let state = tools.iter().flat_map(|tool| {
        states.map(|(status, state)| {
            let labels = labels::ToolStateLabels { backend: tool.backend.clone(), tool: tool.tool.clone(), state };
            (labels, i64::from(tool.status == status))
        })
    });
    gauges(encoder, ("tool_state", "Whether a tool is in a state, for everybody", None), state)?;
    let since = tools.iter().map(|tool| {
        let labels = labels::Tool { backend: tool.backend.clone(), tool: tool.tool.clone() };
        (labels, seconds(tool.since))
    });
    gauges(encoder, ("tool_state_since_timestamp", "When the tool got into its state", Some(Unit::Seconds)), since)
}

fn cooldowns(encoder: &mut DescriptorEncoder<'_>, cooldowns: &[(Name, Classification, u64)]) -> fmt::Result {
    let mut sums: BTreeMap<(&Name, Classification), u64> = BTreeMap::new();
    for (backend, classification, count) in cooldowns {
        *sums.entry((backend, *classification)).or_default() += count;
    }
    let active = sums.into_iter().map(|((backend, classification), count)| {
        let labels =
            labels::BackendClassification { backend: Arc::clone(backend), classification: classification.as_str() };
        (labels, i64::try_from(count).unwrap_or(i64::MAX))
    });
    gauges(encoder, ("cooldowns_active", "Cooldowns whose deadline lies ahead", None), active)
}

fn hidden(encoder: &mut DescriptorEncoder<'_>, hidden: &[HiddenTools]) -> fmt::Result {
    let series = hidden.iter().map(|tools| {
        let labels = labels::BackendReason { backend: Arc::clone(&tools.backend), reason: tools.reason };
        (labels, i64::try_from(tools.count).unwrap_or(i64::MAX))
    });
    gauges(encoder, ("tools_hidden", "Known tools that nobody is shown, by reason", None), series)
}

fn integrations(encoder: &mut DescriptorEncoder<'_>, integrations: &[IntegrationState]) -> fmt::Result {
    let states = ["unknown", "ready", "unconfigured", "auth_failed", "credentials_missing"];
    let series = integrations.iter().flat_map(|one| {
        states.map(|state| {
            let labels = labels::IntegrationStateLabels { integration: harmless(&one.integration).into(), state };
            (labels, i64::from(one.state == state))
        })
    });
    gauges(encoder, ("integration_state", "Whether an integration is in a state", None), series)
}

fn store(encoder: &mut DescriptorEncoder<'_>, stats: &Stats) -> fmt::Result {
    let counters = [
        ("store_commits", "Transactions committed to the state file", stats.commits),
        ("store_documents_written", "Documents written to or deleted from the state file", stats.documents),
        ("store_commit_failures", "Attempts to write the state file that failed; memory went on", stats.failures),
        ("store_documents_dropped", "Documents not written because too many waited", stats.dropped),
        ("store_documents_unreadable", "Documents that could not be read or written", stats.unreadable),
    ];
    for (name, help, value) in counters {
        counter(encoder, name, help, value)?;
    }
    let size = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
    let file_bytes = i64::try_from(stats.file_bytes).unwrap_or(i64::MAX);
    let healthy = i64::from(stats.failing_since.is_none());
    gauges(
        encoder,
        ("store_healthy", "Whether the last attempt to write the state file succeeded", None),
        [(NONE, healthy)],
    )?;
    gauges(
        encoder,
        ("store_queued_documents", "Documents that wait to be written", None),
        [(NONE, size(stats.queued))],
    )?;
    gauges(encoder, ("store_file_size", "Size of the state file", Some(Unit::Bytes)), [(NONE, file_bytes)])?;
    let last = stats.last_commit.map(|at| (NONE, seconds(at)));
    gauges(encoder, ("store_last_commit_timestamp", "When the state file was written last", Some(Unit::Seconds)), last)
}

fn counter(encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: u64) -> fmt::Result {
    let family = encoder.encode_descriptor(name, &format!("{help}."), None, MetricType::Counter)?;
    ConstCounter::new(value).encode(family)
}

/// Writes one family of gauges; a family without a series is left out.
fn gauges<L: EncodeLabelSet, V: EncodeGaugeValue>(
    encoder: &mut DescriptorEncoder<'_>,
    (name, help, unit): Described<'_>,
    series: impl IntoIterator<Item = (L, V)>,
) -> fmt::Result {
    let mut series = series.into_iter().peekable();
    if series.peek().is_none() {
        return Ok(());
    }
    let mut family = encoder.encode_descriptor(name, &format!("{help}."), unit.as_ref(), MetricType::Gauge)?;
    for (labels, value) in series {
        ConstGauge::new(value).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "milliseconds since 1970 stay far below 2^53")]
fn seconds(wall: Wall) -> f64 {
    wall.0 as f64 / 1000.0
}
