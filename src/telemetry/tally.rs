//! Metrics that every call touches. Each thread counts in a cell of its own, so that no core waits for another's; whoever
//! scrapes adds the cells up.

use std::cell::Cell as Local;
use std::fmt;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use prometheus::encoding::{EncodeMetric, MetricEncoder, NativeHistogram, NativeHistogramBuckets, NoLabelSet};
use prometheus::metrics::counter::ConstCounter;
use prometheus::metrics::gauge::ConstGauge;
use prometheus::metrics::{MetricType, TypedMetric};

use crate::clock::millis;

/// More threads than this share cells, which is slower but as right.
const CELLS: usize = 8;

thread_local! {
    static HERE: Local<Option<usize>> = const { Local::new(None) };
}

/// Which cell the calling thread counts in.
fn here() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    HERE.get().unwrap_or_else(|| {
        let cell = NEXT.fetch_add(1, Ordering::Relaxed) % CELLS;
        HERE.set(Some(cell));
        cell
    })
}

/// A cell that shares its cache line with no other.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Cell<T>(T);

fn mine<T>(cells: &[Cell<T>; CELLS]) -> &T {
    let [first, ..] = cells;
    &cells.get(here()).unwrap_or(first).0
}

/// A counter.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally(Arc<[Cell<AtomicU64>; CELLS]>);

impl Tally {
    /// Counts one more.
    pub(super) fn inc(&self) {
        mine(&self.0).fetch_add(1, Ordering::Relaxed);
    }

    /// What was counted so far.
    pub(super) fn get(&self) -> u64 {
        self.0.iter().map(|cell| cell.0.load(Ordering::Relaxed)).fold(0, u64::wrapping_add)
    }
}

impl TypedMetric for Tally {
    const TYPE: MetricType = MetricType::Counter;
}

impl EncodeMetric for Tally {
    fn encode(&self, encoder: MetricEncoder<'_>) -> fmt::Result {
        ConstCounter::new(self.get()).encode(encoder)
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

/// A gauge of things that come and go. What comes on one thread may go on another.
#[derive(Clone, Debug, Default)]
pub(super) struct Level(Arc<[Cell<AtomicI64>; CELLS]>);

impl Level {
    /// One more.
    pub(super) fn inc(&self) {
        mine(&self.0).fetch_add(1, Ordering::Relaxed);
    }

    /// One less.
    pub(super) fn dec(&self) {
        mine(&self.0).fetch_sub(1, Ordering::Relaxed);
    }
}

impl TypedMetric for Level {
    const TYPE: MetricType = MetricType::Gauge;
}

impl EncodeMetric for Level {
    fn encode(&self, encoder: MetricEncoder<'_>) -> fmt::Result {
        let sum = self.0.iter().map(|cell| cell.0.load(Ordering::Relaxed)).fold(0, i64::wrapping_add);
        ConstGauge::new(sum).encode(encoder)
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

/// Milliseconds: the bounds of OpenTelemetry's convention for MCP durations.
const BOUNDS: [u64; 14] = [10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000, 120_000, 300_000];
/// Buckets of the classic form; the last one takes what is beyond all bounds.
const CLASSIC: usize = BOUNDS.len() + 1;

/// Native buckets grow by 2^(1/8), about 9 %.
const SCHEMA: i32 = 3;
/// What is no longer than this, in seconds, counts as nothing: 2^-128, as everywhere.
const ZERO: f64 = 2.938_735_877_055_719e-39;
/// The bounds between two powers of two, as fractions of the upper one.
const FRACTIONS: [f64; 8] = [
    0.5,
    0.545_253_866_332_628_8,
    0.594_603_557_501_360_5,
    0.648_419_777_325_504_8,
    0.707_106_781_186_547_5,
    0.771_105_412_703_970_4,
    0.840_896_415_253_714_4,
    0.917_004_043_204_671_1,
];
/// The native bucket of one millisecond, and that of 1,024 seconds, which takes all that is longer.
const SHORTEST: i32 = -79;
const LONGEST: i32 = 80;
const NATIVE: usize = (LONGEST - SHORTEST + 1) as usize;

/// A histogram of durations in whole milliseconds, classic and native.
#[derive(Clone, Debug, Default)]
pub(super) struct Durations(Arc<[Cell<OnceLock<Box<Counts>>>; CELLS]>);

#[derive(Debug)]
struct Counts {
    millis: AtomicU64,
    zero: AtomicU64,
    classic: [AtomicU64; CLASSIC],
    native: [AtomicU64; NATIVE],
}

impl Counts {
    fn new() -> Box<Counts> {
        Box::new(Counts {
            millis: AtomicU64::new(0),
            zero: AtomicU64::new(0),
            classic: [const { AtomicU64::new(0) }; CLASSIC],
            native: [const { AtomicU64::new(0) }; NATIVE],
        })
    }
}

impl Durations {
    /// Takes up one duration.
    pub(super) fn observe(&self, duration: Duration) {
        let counts = mine(&self.0).get_or_init(Counts::new);
        let millis = millis(duration);
        counts.millis.fetch_add(millis, Ordering::Relaxed);
        let classic = BOUNDS.iter().take_while(|bound| **bound < millis).count();
        let native = native_bucket(millis).map_or(Some(&counts.zero), |bucket| counts.native.get(bucket));
        for count in counts.classic.get(classic).into_iter().chain(native) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn sum(&self, count: impl Fn(&Counts) -> &AtomicU64) -> u64 {
        let counts = self.0.iter().filter_map(|cell| cell.0.get());
        counts.map(|counts| count(counts).load(Ordering::Relaxed)).fold(0, u64::wrapping_add)
    }

    fn sums<const N: usize>(&self, counts: impl Fn(&Counts) -> &[AtomicU64; N]) -> [u64; N] {
        let mut sums = [0_u64; N];
        for cell in self.0.iter().filter_map(|cell| cell.0.get()) {
            for (sum, count) in sums.iter_mut().zip(counts(cell)) {
                *sum = sum.wrapping_add(count.load(Ordering::Relaxed));
            }
        }
        sums
    }
}

/// The place of a duration among the native buckets; `None` for none at all.
fn native_bucket(millis: u64) -> Option<usize> {
    if millis == 0 {
        return None;
    }
    let bits = (Duration::from_millis(millis).as_secs_f64()).to_bits();
    // A positive number is a fraction from 0.5 on times a power of two.
    let power = i32::try_from(bits >> 52).unwrap_or_default() - 1022;
    let fraction = f64::from_bits((bits & ((1 << 52) - 1)) | 1022 << 52);
    let within = FRACTIONS.iter().take_while(|bound| **bound < fraction).count();
    let index = (power - 1) * 8 + i32::try_from(within).unwrap_or_default();
    usize::try_from(index.clamp(SHORTEST, LONGEST) - SHORTEST).ok()
}

/// Buckets as the format wants them: runs of neighbours, and the counts as differences. A gap of two or less is filled.
fn sparse(counts: &[u64; NATIVE]) -> (Vec<(i32, u32)>, Vec<i64>) {
    let (mut spans, mut deltas): (Vec<(i32, u32)>, Vec<i64>) = (Vec::new(), Vec::new());
    let (mut next, mut before) = (0, 0);
    for (index, count) in (SHORTEST..).zip(counts).filter(|(_, count)| **count > 0) {
        let gap = index - next;
        match spans.last_mut() {
            Some((_, length)) if gap <= 2 => {
                for _ in 0..gap {
                    deltas.push(-before);
                    before = 0;
                }
                *length += u32::try_from(gap).unwrap_or_default() + 1;
            }
            _ => spans.push((gap, 1)),
        }
        let count = i64::try_from(*count).unwrap_or(i64::MAX);
        deltas.push(count - before);
        (next, before) = (index + 1, count);
    }
    (spans, deltas)
}

impl TypedMetric for Durations {
    const TYPE: MetricType = MetricType::Histogram;
}

impl EncodeMetric for Durations {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        let classic = self.sums(|counts| &counts.classic);
        let bounds = BOUNDS.iter().map(|bound| Duration::from_millis(*bound).as_secs_f64()).chain([f64::INFINITY]);
        let buckets: Vec<(f64, u64)> = bounds.zip(classic).collect();
        let (spans, deltas) = sparse(&self.sums(|counts| &counts.native));
        let native = NativeHistogram {
            schema: SCHEMA,
            zero_threshold: ZERO,
            zero_count: self.sum(|counts| &counts.zero),
            negative: NativeHistogramBuckets { spans: &[], deltas: &[] },
            positive: NativeHistogramBuckets { spans: &spans, deltas: &deltas },
            created: None,
        };
        let seconds = Duration::from_millis(self.sum(|counts| &counts.millis)).as_secs_f64();
        encoder.encode_histogram_with_native::<NoLabelSet>(seconds, classic.iter().sum(), &buckets, None, native)
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

#[cfg(test)]
mod tests {
    use prometheus::encoding::prometheus_protobuf;
    use prometheus::metrics::histogram::{Histogram, NativeHistogramConfig};
    use prometheus::registry::Registry;

    use super::*;

    fn encoded<M: EncodeMetric + fmt::Debug + Send + Sync + 'static>(
        metric: M,
    ) -> prometheus_protobuf::prometheus_data_model::Histogram {
        let mut registry = Registry::default();
        registry.register("name", "help", metric);
        let bytes = prometheus_protobuf::encode_to_vec(&registry).unwrap();
        let family: prometheus_protobuf::prometheus_data_model::MetricFamily =
            prost::Message::decode_length_delimited(bytes.as_slice()).unwrap();
        family.metric[0].histogram.clone().unwrap()
    }

    #[test]
    fn durations_are_those_of_the_library_whoever_counts_them() {
        let bounds = BOUNDS.map(|bound| Duration::from_millis(bound).as_secs_f64());
        let library = Histogram::new_classic_and_native(bounds, NativeHistogramConfig::new(1.1));
        let own = Durations::default();
        let millis: Vec<u64> = (0..2_000).chain((2..=1_024).map(|n| n * 1_000)).chain([10, 20, 7, 300_000]).collect();
        for millis in &millis {
            library.observe(Duration::from_millis(*millis).as_secs_f64());
        }
        std::thread::scope(|scope| {
            for part in millis.chunks(millis.len().div_ceil(2 * CELLS)) {
                scope.spawn(|| part.iter().for_each(|millis| own.observe(Duration::from_millis(*millis))));
            }
        });
        let (library, own) = (encoded(library), encoded(own));
        assert_eq!(own.bucket, library.bucket);
        assert_eq!(own.sample_count, library.sample_count);
        assert!((own.sample_sum - library.sample_sum).abs() < 1e-6);
        assert_eq!((own.schema, own.zero_count), (library.schema, library.zero_count));
        assert_eq!(own.positive_span, library.positive_span);
        assert_eq!(own.positive_delta, library.positive_delta);
    }

    #[test]
    fn what_lasts_longer_than_any_bucket_counts_in_the_last_one() {
        let own = Durations::default();
        own.observe(Duration::from_secs(100_000));
        assert_eq!(encoded(own).positive_span[0].offset, LONGEST);
    }

    #[test]
    fn what_one_thread_counts_another_reads_and_what_comes_here_may_go_there() {
        let (tally, level) = (Tally::default(), Level::default());
        std::thread::scope(|scope| {
            for n in 0..20 {
                let (tally, level) = (&tally, &level);
                scope.spawn(move || {
                    tally.inc();
                    if n % 2 == 0 { level.inc() } else { level.dec() }
                });
            }
        });
        assert_eq!(tally.get(), 20);
        let sum: i64 = level.0.iter().map(|cell| cell.0.load(Ordering::Relaxed)).sum();
        assert_eq!(sum, 0);
    }
}
