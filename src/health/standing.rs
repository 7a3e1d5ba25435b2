//! What stands against tools for more than one user: what an operator looks at first.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::document::Key;
use super::registry::Registry;
use super::view::Shown;
use crate::clock::Tick;
use crate::rules::Scope;

/// A backend and a tool; the tool `*` is the whole backend, the backend `*` any.
type Place = (String, String);

/// Every entry that is not OK, without histories and cooldowns: cheap enough to be asked for often.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Standing {
    /// Of each place the worst entry at PROJECT or wider.
    pub wide: BTreeMap<Place, Arc<Shown>>,
    /// How many entries of single users and sessions each place has.
    pub narrow: BTreeMap<Place, usize>,
}

impl Standing {
    fn add(&mut self, shown: Arc<Shown>, now: Tick) {
        let place = place(&shown.key);
        if shown.key.scope < Scope::Project {
            *self.narrow.entry(place).or_default() += 1;
            return;
        }
        let worse = |known: &Arc<Shown>| shown.severity(now) > known.severity(now);
        if self.wide.get(&place).is_none_or(worse) {
            self.wide.insert(place, shown);
        }
    }
}

fn place(key: &Key) -> Place {
    (key.backend.clone(), key.tool_name.clone())
}

impl Registry {
    /// Every entry in memory that is not OK.
    pub fn standing(&self, now: Tick) -> Standing {
        let mut standing = Standing::default();
        let mut entries: Vec<Arc<Shown>> = self.slots.pin().values().filter_map(|slot| slot.shown()).collect();
        // Of two that are equally bad the first by key is shown, so that the answer does not change from call to call.
        entries.sort_unstable_by(|one, other| one.key.cmp(&other.key));
        entries.into_iter().for_each(|shown| standing.add(shown, now));
        standing
    }
}
