//! Where the cascade of a caller looks (DESIGN 5): SESSION → USER → PROJECT → TENANT → GLOBAL, at each the tool and its
//! backend's `*`, at GLOBAL also those for any backend. Keys are borrowed, so that looking allocates nothing.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use papaya::Equivalent;

use super::caller::Caller;
use super::document::{ANY_BACKEND, Key, WHOLE_BACKEND, hash_parts};
use super::slot::{Slot, Unwell};
use super::view::Shown;
use crate::clock::Tick;
use crate::rules::Scope;

/// A tool of a backend.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ToolRef {
    /// The backend's name in the config.
    pub backend: Arc<str>,
    /// The tool's name as the backend gives it.
    pub tool: Arc<str>,
}

/// The map of all slots.
pub(super) type Slots = papaya::HashMap<Key, Arc<Slot>, foldhash::fast::RandomState>;

/// A [`Key`] that borrows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeyRef<'a> {
    pub(super) tenant_id: Option<&'a str>,
    pub(super) scope: Scope,
    pub(super) scope_id: Option<&'a str>,
    pub(super) backend: &'a str,
    pub(super) tool_name: &'a str,
}

impl Hash for KeyRef<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        hash_parts(self.scope, self.scope_id, (self.backend, self.tool_name), state);
    }
}

impl Equivalent<Key> for KeyRef<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        self.scope == key.scope
            && self.tool_name == key.tool_name
            && self.scope_id == key.scope_id.as_deref()
            && self.backend == key.backend
            && self.tenant_id == key.tenant_id.as_deref()
    }
}

impl KeyRef<'_> {
    pub(super) fn to_key(self) -> Key {
        Key {
            tenant_id: self.tenant_id.map(str::to_owned),
            scope: self.scope,
            scope_id: self.scope_id.map(str::to_owned),
            backend: self.backend.to_owned(),
            tool_name: self.tool_name.to_owned(),
        }
    }
}

impl<'a> From<&'a Key> for KeyRef<'a> {
    fn from(key: &'a Key) -> KeyRef<'a> {
        KeyRef {
            tenant_id: key.tenant_id.as_deref(),
            scope: key.scope,
            scope_id: key.scope_id.as_deref(),
            backend: &key.backend,
            tool_name: &key.tool_name,
        }
    }
}

/// The key at `scope` that applies to `caller`; `None` if he has no session or no user there.
pub(super) fn key<'a>(caller: &'a Caller, scope: Scope, backend: &'a str, tool_name: &'a str) -> Option<KeyRef<'a>> {
    let scope_id = match scope {
        Scope::Session => Some(caller.session.as_deref()?),
        Scope::User => Some(caller.user.as_deref()?),
        Scope::Project => Some(&*caller.project),
        Scope::Tenant => Some(&*caller.tenant),
        Scope::Global => None,
    };
    let tenant_id = scope_id.map(|_| &*caller.tenant);
    Some(KeyRef { tenant_id, scope, scope_id, backend, tool_name })
}

/// The places at one scope that apply to a call, at most four.
fn places(scope: Scope, at: &ToolRef) -> impl Iterator<Item = (&str, &str)> {
    let any = if scope == Scope::Global { 4 } else { 2 };
    [(&*at.backend, &*at.tool), (&*at.backend, WHOLE_BACKEND), (ANY_BACKEND, &*at.tool), (ANY_BACKEND, WHOLE_BACKEND)]
        .into_iter()
        .take(any)
}

/// Every key that applies to a call, narrowest first.
pub(super) fn keys<'a>(caller: &'a Caller, at: &'a ToolRef) -> impl Iterator<Item = KeyRef<'a>> {
    Scope::ALL
        .into_iter()
        .flat_map(move |scope| places(scope, at).filter_map(move |(backend, tool)| key(caller, scope, backend, tool)))
}

/// The entry that decides: of the narrowest scope that has one that is not OK, the worst.
pub(super) fn effective(
    slots: &Slots,
    unwell: &Unwell,
    caller: &Caller,
    at: &ToolRef,
    now: Tick,
) -> Option<(Arc<Slot>, Arc<Shown>)> {
    let pinned = slots.pin();
    for scope in Scope::ALL {
        let mut worst: Option<(&Arc<Slot>, Arc<Shown>)> = None;
        for (backend, tool) in places(scope, at).filter(|(backend, tool)| unwell.any(scope, backend, tool)) {
            let Some(slot) = key(caller, scope, backend, tool).and_then(|key| pinned.get(&key)) else { continue };
            let Some(shown) = slot.shown() else { continue };
            // On a tie the backend's entry decides: its one permit serves all tools.
            if worst.as_ref().is_none_or(|(_, other)| shown.severity(now) >= other.severity(now)) {
                worst = Some((slot, shown));
            }
        }
        if let Some((slot, shown)) = worst {
            return Some((Arc::clone(slot), shown));
        }
    }
    None
}

/// All slots of the cascade that are in memory, narrowest first.
pub(super) fn all(slots: &Slots, caller: &Caller, at: &ToolRef) -> Vec<Arc<Slot>> {
    let pinned = slots.pin();
    let mut found = Vec::new();
    for scope in Scope::ALL {
        let keys = places(scope, at).filter_map(|(backend, tool)| key(caller, scope, backend, tool));
        found.extend(keys.filter_map(|key| pinned.get(&key)).cloned());
    }
    found
}

#[cfg(test)]
mod tests {
    use std::hash::BuildHasher;

    use super::*;

    #[test]
    fn a_borrowed_key_finds_what_its_owned_form_stored() {
        let hasher = foldhash::fast::RandomState::default();
        for (tenant_id, scope_id) in [(Some("t"), Some("alice")), (None, None)] {
            let borrowed = KeyRef { tenant_id, scope: Scope::User, scope_id, backend: "b", tool_name: "x" };
            let owned = borrowed.to_key();
            assert_eq!(hasher.hash_one(borrowed), hasher.hash_one(&owned));
            assert!(borrowed.equivalent(&owned));
            assert_eq!(KeyRef::from(&owned), borrowed);
        }
    }
}
