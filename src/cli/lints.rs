//! The warnings of `toolvane check`: what is odd about rules that are valid, seen in the tables in which they take effect.

use std::sync::Arc;
use std::time::Duration;

use crate::app;
use crate::config::{Config, Environment, SecretSource};
use crate::rules::file;
use crate::rules::lint::{Lint, lint};
use crate::yaml::{self, Place, Problem, Report, Source, duration_text};

/// The longest cooldown where no configuration says another.
const COOLDOWN_MAX: Duration = Duration::from_secs(24 * 3600);

/// The warnings about rule files, laid over the bundled table in this order.
///
/// # Errors
/// Every problem of every file.
pub(super) fn of_files(sources: &[Arc<Source>]) -> Result<Vec<Lint>, Report> {
    of_layers(sources, COOLDOWN_MAX)
}

/// The same for every table of a configuration. Files that cannot be read are none of its business.
pub(super) fn of_config(config: &Config) -> Vec<Result<Vec<Lint>, Report>> {
    let stacks = app::stacks(config).unwrap_or_default();
    stacks.iter().map(|stack| of_layers(&stack.layers, stack.cooldown_max)).collect()
}

/// What is odd about settings that are valid.
pub(super) fn of_settings(config: &Config, source: &Arc<Source>, environment: &Environment) -> Vec<Problem> {
    let warning = |place, message: String, help: String| Problem::new(source, place, message).help(help).warning();
    let mut found = Vec::new();
    for token in &config.admin_access.tokens {
        if let SecretSource::Env(name) = &token.secret
            && !environment.has(name)
        {
            let message = format!(
                "the token `{}` is read from the environment variable `{name}`, which is not set here",
                token.name
            );
            let help = format!("set {name} where toolvane runs: without it `toolvane run` ends with exit code 78");
            found.push(warning(token.place, message, help));
        }
    }
    let (announce, timeout) = (config.drain_announce, config.drain_timeout);
    let place = ["drain_announce", "drain_timeout"].iter().find_map(|key| place_of(source, key));
    if let Some(place) = place.filter(|_| announce >= timeout) {
        let message = format!(
            "`drain_announce` ({}) uses up `drain_timeout` ({}), which it is a part of: running calls are cut off after {1}, as \
             soon as no new ones are taken",
            duration_text(announce),
            duration_text(timeout)
        );
        let help = "make `drain_timeout` longer than `drain_announce` by the time that calls may need to finish";
        found.push(warning(place, message, help.to_owned()));
    }
    found
}

fn place_of(source: &Arc<Source>, key: &str) -> Option<Place> {
    yaml::read(source, |at| at.node()?.entry(key).map(|entry| entry.place)).ok()
}

fn of_layers(layers: &[Arc<Source>], cooldown_max: Duration) -> Result<Vec<Lint>, Report> {
    let rules = file::layered(layers)?;
    Ok(lint(&rules, cooldown_max, |source| layers.iter().any(|own| Arc::ptr_eq(own, source))))
}
