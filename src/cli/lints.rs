//! The warnings of `toolvane check`: what is odd about rules that are valid, seen in the tables in which they take effect.

use std::sync::Arc;
use std::time::Duration;

use crate::app;
use crate::config::Config;
use crate::rules::file;
use crate::rules::lint::{Lint, lint};
use crate::yaml::{Report, Source};

/// The longest cooldown where no configuration says another.
const COOLDOWN_MAX: Duration = Duration::from_secs(24 * 3600);

/// The warnings about one rule file, laid over the bundled table.
///
/// # Errors
/// Every problem of the file.
pub(super) fn of_file(source: &Arc<Source>) -> Result<Vec<Lint>, Report> {
    of_layers(std::slice::from_ref(source), COOLDOWN_MAX)
}

/// The same for every table of a configuration. Files that cannot be read are none of its business.
pub(super) fn of_config(config: &Config) -> Vec<Result<Vec<Lint>, Report>> {
    let stacks = app::stacks(config).unwrap_or_default();
    stacks.iter().map(|stack| of_layers(&stack.layers, stack.cooldown_max)).collect()
}

fn of_layers(layers: &[Arc<Source>], cooldown_max: Duration) -> Result<Vec<Lint>, Report> {
    let rules = file::layered(layers)?;
    Ok(lint(&rules, cooldown_max, |source| layers.iter().any(|own| Arc::ptr_eq(own, source))))
}
