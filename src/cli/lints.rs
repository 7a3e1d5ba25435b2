//! The warnings of `toolvane check`: what is odd about rules that are valid, seen in the tables in which they take effect.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use crate::app;
use crate::config::Config;
use crate::rules::lint::{Lint, lint};
use crate::rules::{Rule, file};
use crate::yaml::{Problem, Source};

/// The longest cooldown where no configuration says another.
const COOLDOWN_MAX: Duration = Duration::from_secs(24 * 3600);

/// The warnings about one rule file, laid over the bundled table.
pub(super) fn of_file(source: &Arc<Source>) -> Vec<Lint> {
    of_layers(std::slice::from_ref(source), COOLDOWN_MAX)
}

/// The warnings about every rule file of a configuration, in each table that it is part of, each once.
pub(super) fn of_config(config: &Config) -> Vec<Lint> {
    // Files that cannot be read have been reported as errors.
    let stacks = app::stacks(config).unwrap_or_default();
    let mut told = HashSet::new();
    let all = stacks.iter().flat_map(|stack| of_layers(&stack.layers, stack.cooldown_max));
    all.filter(|lint| told.insert(key(&lint.problem))).collect()
}

fn key(problem: &Problem) -> (String, String) {
    (problem.position(), problem.message().to_owned())
}

fn of_layers(layers: &[Arc<Source>], cooldown_max: Duration) -> Vec<Lint> {
    let bundled = Arc::new(Source::new(file::BUNDLED_NAME, file::BUNDLED));
    let read = std::iter::once(&bundled).chain(layers).map(file::read);
    let Ok(layered) = read.collect::<Result<Vec<Vec<Rule>>, _>>() else { return Vec::new() };
    let rules = layered.into_iter().fold(Vec::new(), file::cascade);
    lint(&rules, cooldown_max, |source| layers.iter().any(|own| Arc::ptr_eq(own, source)))
}
