//! Listing documents (DESIGN 8): by scope, scope id and status, by tool name and status, by due cooldown.

use super::cascade::KeyRef;
use super::document::{Document, Key, Status};
use super::registry::Registry;
use crate::clock::Now;
use crate::rules::Scope;

/// Which documents to list; every field that is set must agree.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    /// Whose.
    pub scope: Option<Scope>,
    /// Session, user, project or tenant id.
    pub scope_id: Option<String>,
    /// Of one tenant.
    pub tenant_id: Option<String>,
    /// Of one backend.
    pub backend: Option<String>,
    /// Of one tool.
    pub tool_name: Option<String>,
    /// OK, DEGRADED or DOWN.
    pub status: Option<Status>,
    /// Only those that hold a cooldown which has run out.
    pub due_cooldown: bool,
}

impl Filter {
    fn takes_key(&self, key: &Key) -> bool {
        let agrees =
            |wanted: &Option<String>, is: Option<&str>| wanted.as_deref().is_none_or(|wanted| is == Some(wanted));
        self.scope.is_none_or(|scope| scope == key.scope)
            && agrees(&self.scope_id, key.scope_id.as_deref())
            && agrees(&self.tenant_id, key.tenant_id.as_deref())
            && agrees(&self.backend, Some(&key.backend))
            && agrees(&self.tool_name, Some(&key.tool_name))
    }
}

impl Registry {
    /// The documents in memory that the filter takes, in the order of their keys.
    pub fn documents(&self, filter: &Filter, now: Now) -> Vec<Document> {
        let pinned = self.slots.pin();
        let mut documents: Vec<Document> = pinned
            .values()
            .filter(|slot| filter.takes_key(&slot.key))
            .filter_map(|slot| {
                let inner = slot.lock();
                let entry = inner.entry.as_ref()?;
                let due = || entry.cooldowns.armed.iter().any(|armed| armed.until.tick <= now.tick);
                let wanted = filter.status.is_none_or(|status| status == entry.status);
                (wanted && (!filter.due_cooldown || due())).then(|| entry.document(&slot.key, now))
            })
            .collect();
        documents.sort_unstable_by(|one, other| one.key.cmp(&other.key));
        documents
    }

    /// The keys of the documents in memory that the filter's names take, in order. Status and cooldowns are not looked at.
    pub fn keys(&self, filter: &Filter) -> Vec<Key> {
        let pinned = self.slots.pin();
        let held = |slot: &&std::sync::Arc<super::slot::Slot>| slot.lock().entry.is_some();
        let mut keys: Vec<Key> = pinned
            .values()
            .filter(|slot| filter.takes_key(&slot.key))
            .filter(held)
            .map(|slot| slot.key.clone())
            .collect();
        keys.sort_unstable();
        keys
    }

    /// The longest cooldown.
    pub fn cooldown_max(&self) -> std::time::Duration {
        self.tuning.cooldown_max
    }

    /// One document, from memory or from the backing.
    pub fn document(&self, key: &Key, now: Now) -> Option<Document> {
        let slot = self.slots.pin().get(&KeyRef::from(key)).cloned();
        let held = slot.and_then(|slot| slot.lock().entry.as_ref().map(|entry| entry.document(key, now)));
        held.or_else(|| self.backing.read(key))
    }
}
