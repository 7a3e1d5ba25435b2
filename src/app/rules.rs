//! The rule tables of a configuration (DESIGN 6, Cascade): bundled ← layers ← tenant ← project.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::config::Config;
use crate::proxy::RuleSet;
use crate::rules::{self, Limits};
use crate::yaml::{self, Node, Place, Problem, Report, Source};

/// The name of a rule file below `rules.dir`.
const FILE: &str = "error-patterns.yaml";

/// How many hexadecimal digits name a configuration.
const HASH_DIGITS: usize = 16;

type Layer = Vec<Arc<Source>>;

/// Reads every rule file that the configuration names and compiles all tables.
///
/// # Errors
/// Every problem of every file.
pub fn compile(config: &Config) -> Result<RuleSet, Report> {
    Layers::read(config)?.compile()
}

/// [`compile`], with a short name for what was read, the configuration file included.
///
/// # Errors
/// Every problem of every file.
pub fn compile_named(config: &Config, file: Option<&Source>) -> Result<(RuleSet, String), Report> {
    let layers = Layers::read(config)?;
    Ok((layers.compile()?, layers.hash_with(file)))
}

/// The rule files that make one table, and the longest cooldown of those whom it judges.
#[derive(Clone, Debug)]
pub struct Stack {
    /// Laid over the bundled table in this order.
    pub layers: Vec<Arc<Source>>,
    /// `cooldown.max`.
    pub cooldown_max: Duration,
}

/// Every table of a configuration as the files that it is made of.
///
/// # Errors
/// Every file that cannot be read.
pub fn stacks(config: &Config) -> Result<Vec<Stack>, Report> {
    let layers = Layers::read(config)?;
    let of = |layers: Layer, tenant: &str| Stack { layers, cooldown_max: config.tuning_of(tenant).cooldown_max };
    let base = Stack { layers: layers.base, cooldown_max: config.tuning.cooldown_max };
    let tenants = layers.tenants.into_iter().map(|(tenant, layers)| of(layers, &tenant));
    let projects = layers.projects.into_iter().map(|((tenant, _), layers)| of(layers, &tenant));
    Ok(std::iter::once(base).chain(tenants).chain(projects).collect())
}

/// Every rule file of a configuration as it was read, with the caller that it is for.
#[derive(Debug)]
pub(super) struct Layers {
    limits: Limits,
    base: Layer,
    tenants: BTreeMap<Arc<str>, Layer>,
    projects: BTreeMap<(Arc<str>, Arc<str>), Layer>,
}

impl Layers {
    /// Reads the files.
    ///
    /// # Errors
    /// Every file that cannot be read.
    pub(super) fn read(config: &Config) -> Result<Layers, Report> {
        let mut files = Files::default();
        let base = files.read_all(&config.rules.layers);
        let mut layers = Layers {
            limits: Limits { hint_max: config.hint_max },
            base: base.clone(),
            tenants: BTreeMap::new(),
            projects: BTreeMap::new(),
        };
        for tenant in tenants(config) {
            let own = config.tenants.get(&tenant).map(|tenant| tenant.layers.as_slice()).unwrap_or_default();
            let directory = config.rules.dir.as_ref().map(|dir| dir.join(&*tenant));
            let mut of_tenant = base.clone();
            of_tenant.extend(files.read_all(own));
            of_tenant.extend(directory.as_deref().and_then(|directory| files.read_in(directory)));
            for project in directory.as_deref().map(directories).unwrap_or_default() {
                let own = directory.as_deref().and_then(|directory| files.read_in(&directory.join(&*project)));
                let of_project = of_tenant.iter().cloned().chain(own).collect();
                layers.projects.insert((Arc::clone(&tenant), project), of_project);
            }
            layers.tenants.insert(tenant, of_tenant);
        }
        files.report.into_result(layers)
    }

    /// Compiles a table for everybody, and one for each tenant and project with files of its own.
    ///
    /// # Errors
    /// Every problem of every file.
    pub(super) fn compile(&self) -> Result<RuleSet, Report> {
        let mut report = Report::new();
        let mut table = |layers: &Layer| {
            rules::load(layers, self.limits).map(Arc::new).map_err(|problems| report.merge(problems)).ok()
        };
        let base = table(&self.base);
        let mut tenants = HashMap::new();
        for (tenant, layers) in &self.tenants {
            table(layers).map(|table| tenants.insert(Arc::clone(tenant), table));
        }
        let mut projects = HashMap::new();
        for (place, layers) in &self.projects {
            table(layers).map(|table| projects.insert(place.clone(), table));
        }
        report.into_result(())?;
        base.map(|base| RuleSet { base, tenants, projects }).ok_or_else(Report::new)
    }

    /// A short name for the configuration file together with everything that the tables depend on.
    pub(super) fn hash_with(&self, file: Option<&Source>) -> String {
        let mut hasher = blake3::Hasher::new();
        let mut add = |part: &str| {
            hasher.update(&u64::try_from(part.len()).unwrap_or(u64::MAX).to_le_bytes());
            hasher.update(part.as_bytes());
        };
        add(file.map(Source::text).unwrap_or_default());
        let mut layer = |who: &str, layers: &Layer| {
            add(who);
            layers.iter().for_each(|source| add(source.text()));
        };
        layer("", &self.base);
        self.tenants.iter().for_each(|(tenant, layers)| layer(tenant, layers));
        self.projects.iter().for_each(|((tenant, project), layers)| layer(&format!("{tenant}/{project}"), layers));
        hasher.finalize().to_hex().chars().take(HASH_DIGITS).collect()
    }
}

/// The same report, but a rule file that cannot be read is a problem of the entry in `source` that names it.
pub fn where_named(report: &Report, source: &Arc<Source>, directory: &Path) -> Report {
    let entries = layer_entries(source);
    let mut named = Report::new();
    for problem in report.problems() {
        let is_it = |path: &str| {
            problem.source().text().is_empty() && directory.join(path).display().to_string() == problem.source().name()
        };
        match entries.iter().find(|(path, _)| is_it(path)) {
            None => named.push(problem.clone()),
            Some((path, place)) => named.push(
                Problem::new(source, *place, format!("the rule file `{path}`: {}", problem.message()))
                    .help("create it or take it out of `layers`; relative paths start where this file lies"),
            ),
        }
    }
    named
}

/// What `layers` of the file name, for everybody and for tenants.
fn layer_entries(source: &Arc<Source>) -> Vec<(Arc<str>, Place)> {
    let layers = |node: &Node| -> Vec<(Arc<str>, Place)> {
        let layers = node.get("rules").and_then(|rules| rules.get("layers"));
        let text = |item: &Arc<Node>| item.text().map(|text| (Arc::clone(text), item.place));
        layers.map(|layers| layers.items().iter().filter_map(text).collect()).unwrap_or_default()
    };
    let all = |at: yaml::At<'_>| {
        let root = at.node()?;
        let tenants = root.get("tenants").map(Node::entries).unwrap_or_default();
        Some(std::iter::once(root).chain(tenants.iter().map(|tenant| &*tenant.value)).flat_map(layers).collect())
    };
    yaml::read(source, all).unwrap_or_default()
}

/// Every rule file that the configuration names or that lies in its directory at the moment, whether it can be read or not.
pub(super) fn paths(config: &Config) -> Vec<PathBuf> {
    let named = config.tenants.values().flat_map(|tenant| &tenant.layers);
    let mut paths: Vec<PathBuf> = config.rules.layers.iter().chain(named).cloned().collect();
    if let Some(dir) = &config.rules.dir {
        for tenant in directories(dir) {
            let tenant = dir.join(&*tenant);
            paths.push(tenant.join(FILE));
            paths.extend(directories(&tenant).iter().map(|project| tenant.join(&**project).join(FILE)));
        }
    }
    paths
}

/// Tenants that have rules of their own.
fn tenants(config: &Config) -> Vec<Arc<str>> {
    let configured =
        config.tenants.iter().filter(|(_, tenant)| !tenant.layers.is_empty()).map(|(name, _)| name.clone());
    let mut all: Vec<Arc<str>> =
        configured.chain(config.rules.dir.as_deref().map(directories).unwrap_or_default()).collect();
    all.sort();
    all.dedup();
    all
}

/// Directories within a directory by name. What starts with a dot, such as the `..data` of a mounted ConfigMap, is nobody's.
fn directories(parent: &Path) -> Vec<Arc<str>> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let directories = entries.filter(|entry| entry.path().is_dir());
    let mut names: Vec<Arc<str>> = directories
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| !name.starts_with('.'))
        .map(Arc::from)
        .collect();
    names.sort();
    names
}

#[derive(Default)]
struct Files {
    report: Report,
}

impl Files {
    fn read_all(&mut self, paths: &[PathBuf]) -> Layer {
        paths.iter().filter_map(|path| self.read(path)).collect()
    }

    fn read_in(&mut self, directory: &Path) -> Option<Arc<Source>> {
        let path = directory.join(FILE);
        path.exists().then(|| self.read(&path)).flatten()
    }

    fn read(&mut self, path: &Path) -> Option<Arc<Source>> {
        Source::load(path).map_err(|report| self.report.merge(report)).ok()
    }
}
