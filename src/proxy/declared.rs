//! What backends say in their lists and OpenAPI documents that their tools need (DESIGN 11 and 12), remembered for the calls that follow.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use moka::sync::Cache;
use serde_json::{Map, Value};

use crate::health::{Declared, ToolRef};
use crate::mcp::list::Listed;
use crate::mcp::sample::of_schema;

/// Declarations that are remembered, over all backends.
const KEPT: u64 = 100_000;
/// Credentials or roles that one tool may declare; what is more is cut off.
const MOST: usize = 32;
/// Longest name of an integration, credential or role, in bytes; a longer one counts as absent.
const LONGEST: usize = 256;

/// The largest sample input that is kept, in bytes.
const SAMPLE_MAX: usize = 16 * 1024;

const INTEGRATION: &str = "integration";
const CREDENTIALS: &str = "credentials_required";
const ROLES: &str = "requiresEngineRoles";

/// What is remembered.
#[derive(Debug)]
pub(super) struct Declarations {
    kept: Cache<ToolRef, Arc<Declared>>,
    changes: AtomicU64,
}

impl Declarations {
    pub(super) fn new() -> Declarations {
        Declarations { kept: Cache::new(KEPT), changes: AtomicU64::new(0) }
    }

    /// Remembers what the list says of a tool, with a sample input if it is `tried`; whether it is for certain roles only.
    pub(super) fn note(&self, at: ToolRef, tool: &Listed, tried: bool) -> bool {
        let sample = tool.input_schema.as_deref().filter(|_| tried).and_then(sample);
        let declared = Declared { sample, ..read(tool.annotations.as_deref(), tool.meta.as_deref()) };
        let for_roles = !declared.roles.is_empty();
        if declared != Declared::default() {
            if self.kept.get(&at).is_none_or(|known| *known != declared) {
                self.put(at, declared);
            }
        } else if self.kept.contains_key(&at) {
            self.forget(&at);
        }
        for_roles
    }

    /// Remembers what an OpenAPI document says of a tool.
    pub(super) fn declare(&self, at: ToolRef, credentials: &[Arc<str>]) {
        let credentials: Vec<_> = credentials.iter().take(MOST).cloned().collect();
        if !credentials.is_empty() {
            self.put(at, Declared { credentials, ..Declared::default() });
        }
    }

    fn put(&self, at: ToolRef, declared: Declared) {
        self.kept.insert(at, Arc::new(declared));
        self.changes.fetch_add(1, Ordering::Release);
    }

    /// Forgets what was said of a tool.
    pub(super) fn forget(&self, at: &ToolRef) {
        self.kept.invalidate(at);
        self.changes.fetch_add(1, Ordering::Release);
    }

    /// How often something was declared otherwise than before.
    pub(super) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// What was said of a tool last, if anything.
    pub(super) fn of(&self, at: &ToolRef) -> Option<Arc<Declared>> {
        self.kept.get(at)
    }
}

fn sample(schema: &str) -> Option<Arc<Map<String, Value>>> {
    let sample = of_schema(&serde_json::from_str(schema).ok()?)?;
    let length: usize = sample.iter().map(|(name, value)| name.len() + value.to_string().len()).sum();
    (length <= SAMPLE_MAX).then(|| Arc::new(sample))
}

/// Reads what a tool declares: in its `annotations`, else in its `_meta`, there also with `toolvane/` before the name.
fn read(annotations: Option<&str>, meta: Option<&str>) -> Declared {
    let mentions = |text: &&str| [INTEGRATION, CREDENTIALS, ROLES].iter().any(|name| text.contains(name));
    let parse = |text: Option<&str>| -> Value {
        text.filter(mentions).and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    };
    let (annotations, meta) = (parse(annotations), parse(meta));
    let find =
        |name: &str| annotations.get(name).or_else(|| meta.get(name)).or_else(|| meta.get(format!("toolvane/{name}")));
    let text = |value: &Value| -> Option<Arc<str>> {
        value.as_str().filter(|text| (1..=LONGEST).contains(&text.len())).map(Arc::from)
    };
    let list = |name: &str| -> Vec<Arc<str>> {
        let items = find(name).and_then(Value::as_array).into_iter().flatten();
        items.filter_map(text).take(MOST).collect()
    };
    Declared {
        integration: find(INTEGRATION).and_then(text),
        credentials: list(CREDENTIALS),
        roles: list(ROLES),
        sample: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_declaration_stands_in_annotations_or_meta_and_annotations_go_first() {
        let declared = |integration: &str, credentials: &[&str], roles: &[&str]| {
            let names = |names: &[&str]| names.iter().map(|name| Arc::from(*name)).collect();
            Declared {
                integration: Some(integration).filter(|id| !id.is_empty()).map(Arc::from),
                credentials: names(credentials),
                roles: names(roles),
                sample: None,
            }
        };
        for (annotations, meta, expected) in [
            (None, None, declared("", &[], &[])),
            (Some(r#"{"readOnlyHint":true}"#), Some("{}"), declared("", &[], &[])),
            (
                Some(r#"{"integration":"gmail","credentials_required":["A",7,"B"]}"#),
                None,
                declared("gmail", &["A", "B"], &[]),
            ),
            (None, Some(r#"{"toolvane/integration":"x","requiresEngineRoles":["r"]}"#), declared("x", &[], &["r"])),
            (
                Some(r#"{"integration":"a"}"#),
                Some(r#"{"integration":"b","credentials_required":["C"]}"#),
                declared("a", &["C"], &[]),
            ),
            (
                Some(r#"{"integration":["a"],"credentials_required":"A"}"#),
                Some("not integration"),
                declared("", &[], &[]),
            ),
        ] {
            assert_eq!(read(annotations, meta), expected, "{annotations:?} {meta:?}");
        }
    }

    #[test]
    fn what_a_list_no_longer_says_is_forgotten() {
        let (kept, at) = (Declarations::new(), ToolRef { backend: "b".into(), tool: "t".into() });
        let listed = |annotations: Option<&str>| Listed {
            name: "t".into(),
            annotations: annotations.map(str::to_owned),
            meta: None,
            input_schema: Some("{}".to_owned()),
        };
        assert!(kept.note(at.clone(), &listed(Some(r#"{"requiresEngineRoles":["admin"]}"#)), false));
        assert!(kept.of(&at).is_some());
        assert!(!kept.note(at.clone(), &listed(None), false));
        assert!(kept.of(&at).is_none());
        kept.note(at.clone(), &listed(None), true);
        assert_eq!(kept.of(&at).unwrap().sample, Some(Arc::default()));
    }
}
