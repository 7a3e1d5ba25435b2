//! Exemplars: for each bucket of a tool's durations, the last call in it whose caller records a trace.
//!
//! The library keeps exemplars or native histograms, not both, so they stand beside its histograms and are put into the
//! protobuf exposition, the only one that has native histograms.

use std::array;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use prometheus::encoding::prometheus_protobuf::prometheus_data_model::{Exemplar, Histogram, LabelPair};

use super::metrics::BUCKETS;
use super::trace::TraceContext;
use crate::clock::Wall;

/// One for each bucket, the last for what is longer than all bounds.
const COUNT: usize = BUCKETS.len() + 1;

#[derive(Clone, Copy, Debug)]
struct Seen {
    trace_id: u128,
    span_id: u64,
    seconds: f64,
    at: Wall,
}

/// The exemplars of one histogram. Takes no memory to speak of before the first.
#[derive(Debug, Default)]
pub(super) struct Exemplars {
    seen: Mutex<Option<Box<[Option<Seen>; COUNT]>>>,
}

impl Exemplars {
    /// Remembers a call, if its trace is recorded.
    pub(super) fn observe(&self, trace: &TraceContext, duration: Duration, at: Wall) {
        if !trace.sampled {
            return;
        }
        let seconds = duration.as_secs_f64();
        let bucket = BUCKETS.iter().position(|bound| seconds <= *bound).unwrap_or(BUCKETS.len());
        let seen = Seen { trace_id: trace.trace_id, span_id: trace.span_id, seconds, at };
        let mut all = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = all.get_or_insert_with(|| Box::new(array::from_fn(|_| None))).get_mut(bucket) {
            *slot = Some(seen);
        }
    }

    /// Puts them where a scraper looks for them: into the classic buckets, and beside the native ones.
    pub(super) fn fill(&self, histogram: &mut Histogram) {
        let all = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(all) = all.as_deref() else { return };
        for seen in all.iter().flatten() {
            let exemplar = seen.exemplar();
            if let Some(bucket) = histogram.bucket.iter_mut().find(|bucket| seen.seconds <= bucket.upper_bound) {
                bucket.exemplar = Some(exemplar.clone());
            }
            histogram.exemplars.push(exemplar);
        }
        histogram.exemplars.sort_by_key(|exemplar| exemplar.timestamp.map(|at| (at.seconds, at.nanos)));
    }
}

impl Seen {
    fn exemplar(&self) -> Exemplar {
        let label = |name: &str, value: String| LabelPair { name: name.to_owned(), value };
        Exemplar {
            label: vec![
                label("trace_id", format!("{:032x}", self.trace_id)),
                label("span_id", format!("{:016x}", self.span_id)),
            ],
            value: self.seconds,
            timestamp: self.at.system_time().map(Into::into),
        }
    }
}
