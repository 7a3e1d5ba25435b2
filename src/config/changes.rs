//! What differs between two configuration files, for a reload: which of it takes effect at once and which needs a restart.

use std::sync::Arc;

use crate::yaml::{self, Node, Report, Source, Value};

/// Keys that take effect at a reload. `*` stands for one key.
const LIVE: [&[&str]; 3] = [&["rules"], &["hint"], &["tenants", "*", "rules"]];

/// The keys that differ and only take effect at a restart, such as `limits.calls`, in the order of the newer file. Lists are
/// compared whole.
///
/// # Errors
/// If one of the files is no YAML.
pub fn needing_restart(old: &Arc<Source>, new: &Arc<Source>) -> Result<Vec<String>, Report> {
    let root = |source| yaml::read(source, |at| Some(at.node().cloned()));
    let (old, new) = (root(old)?, root(new)?);
    let mut found = Vec::new();
    compare(&mut Vec::new(), old.as_ref(), new.as_ref(), &mut found);
    Ok(found)
}

fn compare<'n>(path: &mut Vec<&'n str>, old: Option<&'n Node>, new: Option<&'n Node>, found: &mut Vec<String>) {
    let is_extension = path.last().is_some_and(|key| key.starts_with("x-"));
    if is_extension || LIVE.iter().any(|live| is_live(live, path)) || same(old, new) {
        return;
    }
    match (entries(old), entries(new)) {
        (Some(before), Some(after)) => {
            let gone = before.iter().filter(|(key, _)| !after.iter().any(|(name, _)| name == key));
            for (key, _) in after.iter().chain(gone) {
                let of = |all: &[(&'n str, &'n Node)]| all.iter().find(|(name, _)| name == key).map(|(_, node)| *node);
                path.push(key);
                compare(path, of(&before), of(&after), found);
                path.pop();
            }
        }
        _ => found.push(path.join(".")),
    }
}

/// The entries of a map; none where nothing stands.
fn entries(node: Option<&Node>) -> Option<Vec<(&str, &Node)>> {
    match node.map(|node| &node.value) {
        None | Some(Value::Null) => Some(Vec::new()),
        Some(Value::Map(entries)) => Some(entries.iter().map(|entry| (&*entry.key, &*entry.value)).collect()),
        Some(_) => None,
    }
}

fn is_live(live: &[&str], path: &[&str]) -> bool {
    live.len() <= path.len() && live.iter().zip(path).all(|(wanted, key)| *wanted == "*" || wanted == key)
}

fn same(old: Option<&Node>, new: Option<&Node>) -> bool {
    match (old.map(|node| &node.value), new.map(|node| &node.value)) {
        (None | Some(Value::Null), None | Some(Value::Null)) => true,
        (Some(Value::Bool(one)), Some(Value::Bool(other))) => one == other,
        (Some(Value::Int(one)), Some(Value::Int(other))) => one == other,
        (Some(Value::Float(one)), Some(Value::Float(other))) => one.to_bits() == other.to_bits(),
        (Some(Value::Text(one)), Some(Value::Text(other))) => one == other,
        (Some(Value::List(one)), Some(Value::List(other))) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(Some(one), Some(other)))
        }
        (Some(Value::Map(one)), Some(Value::Map(other))) => {
            one.len() == other.len()
                && one.iter().all(|entry| {
                    let twin = other.iter().find(|twin| twin.key == entry.key);
                    twin.is_some_and(|twin| same(Some(&entry.value), Some(&twin.value)))
                })
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(old: &str, new: &str) -> Vec<String> {
        let source = |text: &str| Arc::new(Source::new("toolvane.yaml", text));
        needing_restart(&source(old), &source(new)).unwrap()
    }

    #[test]
    fn rules_and_hints_take_effect_and_everything_else_is_named() {
        let old = "{mode: enforce, limits: {calls: 1, list: 1MiB}, rules: {layers: [a]}, tenants: {t: {rules: {layers: []}}}}";
        for (new, expected) in [
            (old, vec![]),
            (
                "{mode: enforce, limits: {list: 1MiB, calls: 1}, rules: {dir: b}, hint: {max: 2h}, x-a: 7, tenants: {t: {rules: {layers: [c]}}, u: {rules: {layers: [d]}}}}",
                vec![],
            ),
            (
                "{mode: observe, limits: {calls: 2, list: 1MiB}, tenants: {t: {history: {size: 3}}}}",
                vec!["mode", "limits.calls", "tenants.t.history.size"],
            ),
            ("{limits: {calls: 1, list: 1MiB}, backends: [{name: a}]}", vec!["backends", "mode"]),
        ] {
            assert_eq!(changed(old, new), expected, "{new}");
        }
    }

    #[test]
    fn comments_order_and_spelling_are_no_change() {
        assert!(
            changed("mode: enforce\nlog: {level: info}\n", "# new\nlog:\n  level: 'info'\nmode: enforce\n").is_empty()
        );
    }
}
