//! Judges cases from stdin by the bundled table and the rule files named as arguments.

use std::io::{stderr, stdin, stdout};
use std::sync::Arc;

use toolvane::clock::{Clock, SystemClock};
use toolvane::rules::{Limits, load};
use toolvane::yaml::Source;

fn main() -> anyhow::Result<()> {
    let mut layers = Vec::new();
    for path in std::env::args().skip(1) {
        layers.push(Arc::new(Source::new(&path, std::fs::read_to_string(&path)?)));
    }
    let table = load(&layers, Limits::default())?;
    toolvane::cli::classify::classify(stdin().lock(), stdout().lock(), stderr(), &table, SystemClock.now())?;
    Ok(())
}
