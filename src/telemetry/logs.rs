//! The log: JSON or text lines with `timestamp`, `level`, `message`, `target` and fields such as `tool`, `signature`, `rule`.
//!
//! Never in a log: bodies, arguments, credentials, session ids. Libraries below us are held at WARN whatever the filter says,
//! for their debug lines show headers.

use std::fmt::{self, Write as _};
use std::sync::Arc;

use tracing::level_filters::LevelFilter;
use tracing::{Level, Subscriber};
use tracing_subscriber::filter::{EnvFilter, FilterExt, filter_fn};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;
use tracing_subscriber::fmt::{MakeWriter, layer};
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::registry::Registry;

use crate::clock::Clock;

/// How lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One JSON object a line.
    Json,
    /// For people.
    Text {
        /// With colours.
        ansi: bool,
    },
}

/// A filter that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error(
    "log filter {filter:?} cannot be read: {why}; give a level (error, warn, info, debug, trace, off) or a list such as `info,toolvane::call=debug`"
)]
pub struct BadFilter {
    /// The filter as given.
    pub filter: String,
    /// What is wrong with it.
    pub why: String,
}

/// What writes the log; the caller puts it in force (`tracing::subscriber::set_global_default`).
///
/// # Errors
/// When the filter cannot be read.
pub fn subscriber<W>(
    format: Format,
    filter: &str,
    clock: Arc<dyn Clock>,
    writer: W,
) -> Result<impl Subscriber + Send + Sync + use<W>, BadFilter>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let parsed = EnvFilter::builder().with_default_directive(LevelFilter::OFF.into()).parse(filter);
    let parsed = parsed.map_err(|error| BadFilter { filter: filter.to_owned(), why: error.to_string() })?;
    let ours_or_important =
        filter_fn(|metadata| metadata.target().starts_with("toolvane") || *metadata.level() <= Level::WARN);
    let timed = layer().with_timer(Stamp(clock)).with_writer(writer);
    let lines: Box<dyn Layer<Registry> + Send + Sync> = match format {
        Format::Json => Box::new(timed.json().flatten_event(true).with_current_span(false).with_span_list(false)),
        Format::Text { ansi } => Box::new(timed.with_ansi(ansi)),
    };
    Ok(Registry::default().with(lines.with_filter(parsed.and(ours_or_important))))
}

struct Stamp(Arc<dyn Clock>);

impl FormatTime for Stamp {
    fn format_time(&self, writer: &mut Writer<'_>) -> fmt::Result {
        write!(writer, "{}", self.0.now().wall)
    }
}

/// A name from outside as it may stand in a log: at most 128 characters, with everything escaped that could move a cursor,
/// end a line or turn the direction of text.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a>(pub &'a str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const LONGEST: usize = 128;
        for (n, c) in self.0.chars().enumerate() {
            if n == LONGEST {
                return f.write_char('…');
            }
            if c.is_control()
                || matches!(c, '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
            {
                write!(f, "{}", c.escape_default())?;
            } else {
                f.write_char(c)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "logs_tests.rs"]
mod tests;
