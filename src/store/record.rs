//! How a health document lies in the file: its key as canonical bytes, its value as one format byte and JSON.

use crate::health::{Document, Key};
use crate::rules::Scope;

/// The format that this version writes, and the only one that it reads.
pub(super) const FORMAT: u8 = 1;

/// Why a value is no document.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unreadable {
    #[error("the value is empty")]
    Empty,
    #[error("the value has format {0}, this version reads format {FORMAT}")]
    Format(u8),
    #[error("the value is not a health document: {0}")]
    Json(#[from] serde_json::Error),
}

/// The bytes that a key is found under. Different keys never share them: every part is preceded by whether it is there and
/// how long it is. Documents of one scope and tenant lie next to each other.
pub(super) fn key_bytes(key: &Key) -> Vec<u8> {
    let parts = [key.tenant_id.as_deref(), key.scope_id.as_deref(), Some(key.backend.as_str()), Some(&key.tool_name)];
    let mut bytes = vec![scope_byte(key.scope)];
    for part in parts {
        match part {
            None => bytes.push(0),
            Some(text) => {
                bytes.push(1);
                bytes.extend_from_slice(&u32::try_from(text.len()).unwrap_or(u32::MAX).to_be_bytes());
                bytes.extend_from_slice(text.as_bytes());
            }
        }
    }
    bytes
}

/// On disk for good: never renumber.
const fn scope_byte(scope: Scope) -> u8 {
    match scope {
        Scope::Session => 1,
        Scope::User => 2,
        Scope::Project => 3,
        Scope::Tenant => 4,
        Scope::Global => 5,
    }
}

pub(super) fn encode(document: &Document) -> Result<Vec<u8>, serde_json::Error> {
    let mut bytes = Vec::with_capacity(1024);
    bytes.push(FORMAT);
    serde_json::to_writer(&mut bytes, document)?;
    Ok(bytes)
}

pub(super) fn decode(bytes: &[u8]) -> Result<Document, Unreadable> {
    match bytes.split_first() {
        None => Err(Unreadable::Empty),
        Some((&FORMAT, json)) => Ok(serde_json::from_slice(json)?),
        Some((&other, _)) => Err(Unreadable::Format(other)),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    fn any_key() -> impl Strategy<Value = Key> {
        let word = || "[\u{0}\u{1}a\\x00-\\x02é*]{0,4}";
        let scope = prop::sample::select(Scope::ALL.to_vec());
        (prop::option::of(word()), scope, prop::option::of(word()), word(), word()).prop_map(
            |(tenant_id, scope, scope_id, backend, tool_name)| Key { tenant_id, scope, scope_id, backend, tool_name },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn different_keys_have_different_bytes(keys in prop::collection::hash_set(any_key(), 2..20)) {
            let bytes: HashSet<Vec<u8>> = keys.iter().map(key_bytes).collect();
            prop_assert_eq!(bytes.len(), keys.len());
        }
    }

    #[test]
    fn values_of_another_format_are_told_from_garbage() {
        assert!(matches!(decode(&[]), Err(Unreadable::Empty)));
        assert!(matches!(decode(b"\x02{}"), Err(Unreadable::Format(2))));
        assert!(matches!(decode(b"\x01{}"), Err(Unreadable::Json(_))));
    }
}
