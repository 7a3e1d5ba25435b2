//! Pages of the tool list that were asked for on the old transport: their answers come on the session's stream, and are
//! annotated there.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::health::Caller;

/// Pages that one stream is asked for at once; of more the oldest pass as they are.
const MOST: usize = 16;

/// One page.
#[derive(Debug)]
pub(super) struct Page {
    /// The id of the request, as a raw JSON token.
    pub(super) id: Box<str>,
    /// The cursor that it named.
    pub(super) cursor: Option<String>,
    /// Who asked.
    pub(super) caller: Arc<Caller>,
}

/// The pages that one stream is to bring.
#[derive(Debug, Default)]
pub(super) struct Asked {
    pages: Mutex<VecDeque<Page>>,
}

impl Asked {
    pub(super) fn put(&self, page: Page) {
        let mut pages = self.lock();
        pages.push_back(page);
        if pages.len() > MOST {
            pages.pop_front();
        }
    }

    /// The page that the answer with this id brings.
    pub(super) fn take(&self, id: &str) -> Option<Page> {
        let mut pages = self.lock();
        let at = pages.iter().position(|page| *page.id == *id)?;
        pages.remove(at)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Page>> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_too_many_pages_the_oldest_are_forgotten() {
        let asked = Asked::default();
        let caller = Arc::new(Caller {
            session: None,
            user: None,
            project: "p".into(),
            tenant: "t".into(),
            roles: Vec::new(),
            credential: None,
        });
        for n in 0..=MOST {
            asked.put(Page { id: n.to_string().into(), cursor: None, caller: Arc::clone(&caller) });
        }
        assert!(asked.take("0").is_none());
        assert!(asked.take("1").is_some() && asked.take("1").is_none());
    }
}
