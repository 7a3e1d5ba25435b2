//! The project's own rules as tests: modules import only what stands to their left (ARCHITECTURE.md, "Layers"), every
//! source file says what it is for, and siblings do not know each other.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The layers, leftmost first. Modules on one line are siblings: they may not use each other.
const LAYERS: &[&[&str]] = &[
    &["clock", "fetch", "glob", "json"],
    &["yaml"],
    &["mcp", "http"],
    &["rules"],
    &["health"],
    &["config", "store"],
    &["telemetry"],
    &["proxy", "readiness", "diagnosis"],
    &["admin"],
    &["app"],
    &["cli"],
];

fn sources() -> Vec<PathBuf> {
    fn walk(dir: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(dir).expect("src can be listed") {
            let path = entry.expect("an entry of src").path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_some_and(|ext| ext == "rs") {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    walk(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut found);
    assert!(found.len() > 10, "only {} source files found", found.len());
    found
}

/// The top-level module that a source file belongs to.
fn module_of(path: &Path) -> String {
    let relative = path.strip_prefix(Path::new(env!("CARGO_MANIFEST_DIR")).join("src")).expect("a file below src");
    let first = relative.components().next().expect("a first component").as_os_str().to_string_lossy().into_owned();
    first.trim_end_matches(".rs").to_owned()
}

/// Every top-level module that the text names as `crate::module`, alone or in a brace list.
fn used_modules(text: &str) -> BTreeSet<String> {
    let mut used = BTreeSet::new();
    for (at, _) in text.match_indices("crate::") {
        let rest = &text[at + "crate::".len()..];
        let names = match rest.strip_prefix('{') {
            Some(list) => list.split('}').next().unwrap_or_default(),
            None => rest,
        };
        for part in names.split(',').take(if rest.starts_with('{') { usize::MAX } else { 1 }) {
            let name: String = part.trim().chars().take_while(|c| c.is_ascii_lowercase() || *c == '_').collect();
            used.insert(name);
        }
    }
    used
}

fn layer_of(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

#[test]
fn modules_use_only_what_stands_to_their_left() {
    let mut wrong = Vec::new();
    for path in sources() {
        let module = module_of(&path);
        if module == "lib" || module == "main" {
            continue;
        }
        let here = layer_of(&module).unwrap_or_else(|| panic!("{} belongs to no layer", path.display()));
        for used in used_modules(&fs::read_to_string(&path).expect("a source file")) {
            let fine = used == module || layer_of(&used).is_none_or(|there| there < here);
            if !fine {
                wrong.push(format!("{}: {module} may not use {used}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_source_file_says_what_it_is_for() {
    let silent: Vec<_> = sources()
        .into_iter()
        .filter(|path| !fs::read_to_string(path).expect("a source file").starts_with("//!"))
        .collect();
    assert!(silent.is_empty(), "no module text at the head of {silent:?}");
}

#[test]
fn the_reader_of_imports_sees_single_paths_and_brace_lists() {
    let used = used_modules("use crate::rules::Scope;\nuse crate::{clock::Now, health};\nlet x = crate::http::f();");
    assert_eq!(used, ["clock", "health", "http", "rules"].map(String::from).into());
}
