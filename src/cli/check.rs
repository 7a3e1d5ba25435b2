//! `toolvane check FILE…`: reads configuration and rule files as `run` would, opens no port, and tells all mistakes at once.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};

use super::lints;
use super::rules::problem_as_json;
use super::run::environment;
use super::test::has_root_key;
use super::{BAD, CONFIG, FINE, counted};
use crate::app;
use crate::config::Config;
use crate::rules::Limits;
use crate::rules::file::{load_alone, read_cases};
use crate::rules::lint::{Kind, Lint};
use crate::yaml::{Problem, Report, Source, Style};

/// The name of a rule file in the directory of `rules.dir`.
const RULE_FILE: &str = "error-patterns.yaml";

/// What a check is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct How {
    /// The form of the answer.
    pub output: Output,
    /// Warnings make the exit code 1.
    pub strict: bool,
}

/// The form of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// For people.
    Text(Style),
    /// One JSON object.
    Json,
}

/// What a command came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// For standard output: data.
    pub stdout: String,
    /// For standard error: words.
    pub stderr: String,
    /// The exit code.
    pub code: u8,
}

/// Checks each configuration with every rule file that it names, each file of cases (its root has `cases`), and the rule files
/// (`patterns`) laid over each other in their order.
pub fn check(files: &[PathBuf], how: How) -> Checked {
    let mut findings = Findings::default();
    let mut layers = Vec::new();
    for file in files {
        match Source::load(file) {
            Ok(source) if has_root_key(&source, "patterns") => layers.push(source),
            Ok(source) if has_root_key(&source, "cases") => findings.case_source(&source),
            Ok(source) => findings.config(file, &source),
            Err(report) => findings.problems(&report),
        }
    }
    if !layers.is_empty() {
        findings.layers(&layers);
    }
    findings.into_checked(how)
}

#[derive(Default)]
struct Findings {
    report: Report,
    warnings: Vec<Warning>,
    fine: Vec<String>,
    /// What has been told: a file is part of many tables.
    told: HashSet<(String, String)>,
}

/// What is odd though valid.
struct Warning {
    problem: Problem,
    /// The rule, and what is odd about it; `None` where it is not about a rule.
    of_rule: Option<(Arc<str>, Kind)>,
}

impl Findings {
    fn layers(&mut self, layers: &[Arc<Source>]) {
        let looked = lints::of_files(layers);
        let broken = looked.as_ref().err().map(Report::problems).unwrap_or_default();
        let mut below: Vec<&str> = Vec::new();
        for source in layers.iter().filter(|source| !broken.iter().any(|problem| Arc::ptr_eq(problem.source(), source)))
        {
            let over = if below.is_empty() { String::new() } else { format!(", laid over {}", below.join(", ")) };
            self.rule_source(source, &over);
            below.push(source.name());
        }
        self.looked(looked);
    }

    fn config(&mut self, path: &Path, source: &Arc<Source>) {
        let directory = path.parent().unwrap_or(Path::new(""));
        match Config::read(source, directory) {
            Ok(config) => {
                let (count, noun) =
                    (config.backends.len(), if config.backends.len() == 1 { "backend" } else { "backends" });
                self.fine.push(format!("{}: fine, {count} {noun}", source.name()));
                for file in rule_files(&config) {
                    self.rule_file(&file, source, directory);
                }
                self.documents(&config);
                lints::of_config(&config).into_iter().for_each(|looked| self.looked(looked));
                for problem in lints::of_settings(&config, source, &environment()) {
                    self.warnings.push(Warning { problem, of_rule: None });
                }
            }
            Err(report) => self.problems(&report),
        }
    }

    fn problems(&mut self, report: &Report) {
        for problem in report.problems() {
            if self.is_new(problem) {
                self.report.push(problem.clone());
            }
        }
    }

    fn looked(&mut self, looked: Result<Vec<Lint>, Report>) {
        match looked {
            Err(report) => self.problems(&report),
            Ok(lints) => {
                for lint in lints {
                    if self.is_new(&lint.problem) {
                        self.warnings.push(Warning { problem: lint.problem, of_rule: Some((lint.rule, lint.kind)) });
                    }
                }
            }
        }
    }

    fn is_new(&mut self, problem: &Problem) -> bool {
        self.told.insert((problem.position(), problem.message().to_owned()))
    }

    fn documents(&mut self, config: &Config) {
        match app::check_documents(config) {
            Ok(documents) => {
                for document in documents {
                    self.fine.push(format!("{}: fine, {} {}", document.name, document.entries, document.noun));
                    self.fine.extend(document.notes.iter().map(|note| format!("  {note}")));
                }
            }
            Err(report) => self.problems(&report),
        }
    }

    fn rule_file(&mut self, path: &Path, named_by: &Arc<Source>, directory: &Path) {
        match Source::load(path) {
            Ok(source) => self.rule_source(&source, ""),
            Err(report) => {
                for problem in app::where_named(&report, named_by, directory).problems() {
                    self.report.push(problem.clone());
                }
            }
        }
    }

    fn case_source(&mut self, source: &Arc<Source>) {
        match read_cases(source) {
            Ok(cases) => self.fine.push(format!("{}: fine, {} cases", source.name(), cases.len())),
            Err(report) => self.problems(&report),
        }
    }

    /// `over` says what it is laid over, where that is more than the bundled table.
    fn rule_source(&mut self, source: &Arc<Source>, over: &str) {
        match load_alone(source, Limits::default()) {
            Ok(table) => {
                let rules = counted(table.rules().len(), "rule");
                self.fine.push(format!("{}: fine, {rules}{over}", source.name()));
            }
            Err(report) => self.problems(&report),
        }
    }

    fn into_checked(self, how: How) -> Checked {
        let code = match (self.report.is_empty(), self.warnings.is_empty()) {
            (false, _) => CONFIG,
            (true, false) if how.strict => BAD,
            (true, _) => FINE,
        };
        let style = match how.output {
            Output::Json => return Checked { stdout: self.into_json(), stderr: String::new(), code },
            Output::Text(style) => style,
        };
        let mut stderr = String::new();
        if !self.warnings.is_empty() {
            let mut report = Report::new();
            self.warnings.iter().for_each(|warning| report.push(warning.problem.clone()));
            stderr.push_str(&format!("{}\n\n{}\n", report.render(style), counted(report.len(), "warning")));
        }
        if !self.report.is_empty() {
            stderr.push_str(&format!("{}\n\n{}\n", self.report.render(style), counted(self.report.len(), "problem")));
        }
        Checked { stdout: self.fine.iter().map(|line| format!("{line}\n")).collect(), stderr, code }
    }

    fn into_json(self) -> String {
        let problems: Vec<Value> = self.report.problems().iter().map(problem_as_json).collect();
        let warnings: Vec<Value> = self.warnings.iter().map(warning).collect();
        let answer =
            json!({"valid": problems.is_empty(), "problems": problems, "warnings": warnings, "fine": self.fine});
        format!("{answer}\n")
    }
}

fn warning(warning: &Warning) -> Value {
    let mut value = problem_as_json(&warning.problem);
    if let (Some(members), Some((rule, kind))) = (value.as_object_mut(), &warning.of_rule) {
        members.insert("rule".to_owned(), json!(rule));
        members.insert("kind".to_owned(), json!(kind));
    }
    value
}

/// Every rule file of a configuration, each once: layers, those of tenants, and what lies in the directory.
fn rule_files(config: &Config) -> Vec<PathBuf> {
    let tenants = config.tenants.values().flat_map(|tenant| &tenant.layers);
    let mut files: Vec<PathBuf> = config.rules.layers.iter().chain(tenants).cloned().collect();
    for tenant in config.rules.dir.iter().flat_map(|dir| directories(dir)) {
        files.extend(existing(&tenant));
        files.extend(directories(&tenant).iter().flat_map(|project| existing(project)));
    }
    let mut seen = HashSet::new();
    files.retain(|file| seen.insert(file.clone()));
    files
}

fn existing(directory: &Path) -> Option<PathBuf> {
    Some(directory.join(RULE_FILE)).filter(|file| file.exists())
}

fn directories(parent: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(parent)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .filter(|path| path.file_name().is_some_and(|name| !name.to_string_lossy().starts_with('.')))
        .collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "backends: [{name: a, kind: mcp, url: 'http://h/mcp'}]\n";

    fn check_in(files: &[(&str, &str)], arguments: &[&str], output: Output) -> Checked {
        let home = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = home.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let paths: Vec<PathBuf> = arguments.iter().map(|name| home.path().join(name)).collect();
        let checked = check(&paths, How { output, strict: false });
        let strip = |text: &str| text.replace(&format!("{}/", home.path().display()), "");
        Checked { stdout: strip(&checked.stdout), stderr: strip(&checked.stderr), code: checked.code }
    }

    #[test]
    fn good_files_are_named_on_standard_output() {
        let config =
            format!("{GOOD}rules: {{layers: [own.yaml], dir: d}}\ntenants: {{t: {{rules: {{layers: [own.yaml]}}}}}}\n");
        let files = [
            ("toolvane.yaml", config.as_str()),
            (
                "own.yaml",
                "patterns: [{id: a, match: {httpStatus: 618}, classification: UNCLEAR}, {id: b, match: {httpStatus: 619}, classification: UNCLEAR}]",
            ),
            ("d/acme/error-patterns.yaml", "patterns: [{id: a, match: {httpStatus: 618}, classification: UNCLEAR}]"),
            ("d/acme/web/error-patterns.yaml", "patterns: []"),
            ("d/acme/web/notes.yaml", "bad"),
        ];
        let checked = check_in(&files, &["toolvane.yaml"], Output::Text(Style::Plain));
        assert_eq!(checked.stderr, "");
        assert_eq!(
            checked.stdout,
            "toolvane.yaml: fine, 1 backend\nown.yaml: fine, 2 rules\nd/acme/error-patterns.yaml: fine, 1 rule\nd/acme/web/error-patterns.yaml: fine, 0 rules\n"
        );
        assert_eq!(checked.code, FINE);
    }

    #[test]
    fn the_problems_of_all_files_are_told_in_one_run() {
        let config = format!("{GOOD}rules: {{layers: [own.yaml, gone.yaml]}}\n");
        let files = [
            ("a.yaml", "backends: []\nmode: of\n"),
            ("b.yaml", config.as_str()),
            ("own.yaml", "patterns: [bad]"),
            ("c.yaml", "patterns: [bad]"),
            ("latin.yaml", ""),
        ];
        let checked = check_in(&files, &["a.yaml", "b.yaml", "c.yaml", "gone.yaml"], Output::Text(Style::Plain));
        assert_eq!(checked.code, CONFIG);
        assert_eq!(checked.stdout, "b.yaml: fine, 1 backend\n");
        for expected in [
            "a.yaml:1:11",
            "a.yaml:2:7",
            "own.yaml:1:12",
            "c.yaml:1:12",
            "cannot read the file: No such file",
            "b.yaml:2:28",
            "take it out of `layers`",
            "\n\n6 problems\n",
        ] {
            assert!(checked.stderr.contains(expected), "{expected} in\n{}", checked.stderr);
        }
    }

    #[test]
    fn keys_and_openapi_documents_that_lie_in_files_are_checked_too() {
        let config = "backends: [{name: a, kind: http, url: 'http://h', openapi: api.yaml}]\n\
            identity: {jwt: {jwks: {file: keys.json}, issuer: i, audience: a}}\n";
        let api = "openapi: 3.1.0\npaths:\n  /a: {get: {operationId: a}, put: {}}\n";
        let good = check_in(
            &[("t.yaml", config), ("api.yaml", api), ("keys.json", "{\"keys\": []}")],
            &["t.yaml"],
            Output::Text(Style::Plain),
        );
        assert_eq!(good.stderr, "");
        assert_eq!(
            good.stdout,
            "t.yaml: fine, 1 backend\nkeys.json: fine, 0 keys\napi.yaml: fine, 1 tool\n  \
             api.yaml:3:31: `PUT /a` has no operationId and is no tool\n"
        );
        let bad = check_in(
            &[("t.yaml", config), ("api.yaml", "openapi: 2.9\n"), ("keys.json", "{}")],
            &["t.yaml"],
            Output::Text(Style::Plain),
        );
        assert_eq!(bad.code, CONFIG);
        for expected in ["api.yaml:1:10", "only OpenAPI 3.0 and 3.1", "keys.json:1:1", "no key set", "\n2 problems\n"] {
            assert!(bad.stderr.contains(expected), "{expected} in\n{}", bad.stderr);
        }
    }

    #[test]
    fn as_json_each_problem_has_its_place() {
        let checked = check_in(&[("a.yaml", "mode: off\nbakends: []\n")], &["a.yaml"], Output::Json);
        let answer: Value = serde_json::from_str(&checked.stdout).unwrap();
        assert_eq!(checked.code, CONFIG);
        assert_eq!(answer["valid"], false);
        assert_eq!(answer["problems"][1]["line"], 2);
        assert_eq!(answer["problems"][1]["label"], "did you mean `backends`?");
    }

    #[test]
    fn a_file_that_is_not_utf_8_is_refused_with_the_place() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("latin.yaml");
        fs::write(&path, b"mode: enforce # f\xfcr alle\n").unwrap();
        let checked = check(&[path], How { output: Output::Text(Style::Plain), strict: false });
        assert_eq!(checked.code, CONFIG);
        assert!(checked.stderr.contains("latin.yaml:1:18"), "{}", checked.stderr);
    }
}
