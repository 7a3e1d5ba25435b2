//! The process as the kernel sees it, under the names that every Prometheus client uses for it. Read when scraped.

use std::fmt;
use std::fs;

use prometheus::collector::Collector;
use prometheus::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus::metrics::counter::ConstCounter;
use prometheus::metrics::gauge::ConstGauge;
use prometheus::registry::Unit;

#[derive(Debug)]
pub(super) struct ProcessCollector;

impl Collector for ProcessCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        // What cannot be read is left out: /proc may be hidden.
        if let Some(stat) = Stat::read() {
            let (seconds, bytes) = (Some(Unit::Seconds), Some(Unit::Bytes));
            write(
                &mut encoder,
                ("process_cpu", "CPU time spent, user and system", seconds.as_ref()),
                &ConstCounter::new(stat.cpu_seconds),
            )?;
            write(
                &mut encoder,
                ("process_resident_memory", "Resident memory", bytes.as_ref()),
                &ConstGauge::new(stat.resident_bytes),
            )?;
            write(
                &mut encoder,
                ("process_virtual_memory", "Virtual memory", bytes.as_ref()),
                &ConstGauge::new(stat.virtual_bytes),
            )?;
            write(&mut encoder, ("process_threads", "Threads", None), &ConstGauge::new(stat.threads))?;
            if let Some(start) = stat.start_seconds {
                write(
                    &mut encoder,
                    ("process_start_time", "Start of the process since the Unix epoch", seconds.as_ref()),
                    &ConstGauge::new(start),
                )?;
            }
        }
        if let Some(open) = open_descriptors() {
            write(&mut encoder, ("process_open_fds", "Open file descriptors", None), &ConstGauge::new(open))?;
        }
        let max = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        if let Some(max) = max.and_then(|max| i64::try_from(max).ok()) {
            write(
                &mut encoder,
                ("process_max_fds", "Most file descriptors that may be open", None),
                &ConstGauge::new(max),
            )?;
        }
        Ok(())
    }
}

fn write(
    encoder: &mut DescriptorEncoder<'_>,
    named: (&str, &str, Option<&Unit>),
    metric: &impl EncodeMetric,
) -> fmt::Result {
    let (name, help, unit) = named;
    metric.encode(encoder.encode_descriptor(name, &format!("{help}."), unit, metric.metric_type())?)
}

fn open_descriptors() -> Option<i64> {
    // One of them is the directory that is being read.
    let listed = fs::read_dir("/proc/self/fd").ok()?.count();
    i64::try_from(listed.saturating_sub(1)).ok()
}

/// What `/proc/self/stat` says (proc(5)).
#[derive(Debug)]
struct Stat {
    cpu_seconds: f64,
    start_seconds: Option<f64>,
    virtual_bytes: i64,
    resident_bytes: i64,
    threads: i64,
}

impl Stat {
    fn read() -> Option<Stat> {
        let boot = fs::read_to_string("/proc/stat").ok();
        let boot = boot.as_deref().and_then(boot_time);
        Stat::parse(&fs::read_to_string("/proc/self/stat").ok()?, boot)
    }

    fn parse(text: &str, boot: Option<f64>) -> Option<Stat> {
        // The second field is the program's name in parentheses, which may hold blanks and parentheses itself.
        let (_, fields) = text.rsplit_once(')')?;
        let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
        // Counted as proc(5) counts them, from 1; the first two are gone.
        let field = |number: usize| fields.get(number - 3).and_then(|field| field.parse::<i64>().ok());
        #[expect(clippy::cast_precision_loss, reason = "ticks and pages stay far below 2^53")]
        let seconds = |ticks: i64| ticks as f64 / rustix::param::clock_ticks_per_second() as f64;
        let page = i64::try_from(rustix::param::page_size()).ok()?;
        Some(Stat {
            cpu_seconds: seconds(field(14)?.saturating_add(field(15)?)),
            start_seconds: boot.and_then(|boot| Some(boot + seconds(field(22)?))),
            virtual_bytes: field(23)?,
            resident_bytes: field(24)?.saturating_mul(page),
            threads: field(20)?,
        })
    }
}

/// When the machine started, in seconds since the Unix epoch, from `/proc/stat`.
fn boot_time(text: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_programs_name_with_blanks_and_parentheses_does_not_shift_the_fields() {
        let text = "42 (a) b (c) R 1 42 42 0 -1 4194304 90 0 0 0 150 50 0 0 20 0 7 0 1000 4096000 250 1 2 3";
        let stat = Stat::parse(text, Some(1_000.0)).unwrap();
        assert!((stat.cpu_seconds - 2.0).abs() < 1e-9);
        assert_eq!((stat.threads, stat.virtual_bytes), (7, 4_096_000));
        assert!((stat.start_seconds.unwrap() - 1_010.0).abs() < 1e-9);
        assert!(Stat::parse("garbage", None).is_none());
        assert!(Stat::parse("1 (x) R 1", None).is_none());
    }
}
