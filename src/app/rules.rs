//! The rule tables of a configuration (DESIGN 6, Cascade): bundled ← layers ← tenant ← project.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::config::Config;
use crate::proxy::RuleSet;
use crate::rules::{self, Limits};
use crate::yaml::{Report, Source};

/// The name of a rule file below `rules.dir`.
const FILE: &str = "error-patterns.yaml";

/// Reads every rule file that the configuration names and compiles all tables.
///
/// # Errors
/// Every problem of every file.
pub fn compile(config: &Config) -> Result<RuleSet, Report> {
    let mut files = Files { limits: Limits { hint_max: config.hint_max }, report: Report::new() };
    let base = files.read_all(&config.rules.layers);
    let mut tenants = HashMap::new();
    let mut projects = HashMap::new();
    for tenant in names(config) {
        let own = config.tenants.get(&tenant).map(|tenant| tenant.layers.as_slice()).unwrap_or_default();
        let directory = config.rules.dir.as_ref().map(|dir| dir.join(&*tenant));
        let mut layers = base.clone();
        layers.extend(files.read_all(own));
        layers.extend(directory.as_deref().and_then(|directory| files.read_in(directory)));
        for project in directory.as_deref().map(directories).unwrap_or_default() {
            let layer = directory.as_deref().and_then(|directory| files.read_in(&directory.join(&*project)));
            let layers: Vec<_> = layers.iter().cloned().chain(layer).collect();
            files.table(&layers).map(|table| projects.insert((tenant.clone(), project), table));
        }
        files.table(&layers).map(|table| tenants.insert(tenant, table));
    }
    let base = files.table(&base);
    files.report.into_result(())?;
    base.map(|base| RuleSet { base, tenants, projects }).ok_or_else(Report::new)
}

/// Tenants that have rules of their own.
fn names(config: &Config) -> Vec<Arc<str>> {
    let configured =
        config.tenants.iter().filter(|(_, tenant)| !tenant.layers.is_empty()).map(|(name, _)| name.clone());
    let mut all: Vec<Arc<str>> =
        configured.chain(config.rules.dir.as_deref().map(directories).unwrap_or_default()).collect();
    all.sort();
    all.dedup();
    all
}

fn directories(parent: &Path) -> Vec<Arc<str>> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let directories = entries.filter(|entry| entry.path().is_dir());
    directories.filter_map(|entry| entry.file_name().into_string().ok().map(Arc::from)).collect()
}

struct Files {
    limits: Limits,
    report: Report,
}

impl Files {
    fn read_all(&mut self, paths: &[PathBuf]) -> Vec<Arc<Source>> {
        paths.iter().filter_map(|path| self.read(path)).collect()
    }

    fn read_in(&mut self, directory: &Path) -> Option<Arc<Source>> {
        let path = directory.join(FILE);
        path.exists().then(|| self.read(&path)).flatten()
    }

    fn read(&mut self, path: &Path) -> Option<Arc<Source>> {
        Source::load(path).map_err(|report| self.report.merge(report)).ok()
    }

    fn table(&mut self, layers: &[Arc<Source>]) -> Option<Arc<rules::Table>> {
        rules::load(layers, self.limits).map(Arc::new).map_err(|report| self.report.merge(report)).ok()
    }
}
