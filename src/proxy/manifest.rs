//! The tool list as a caller sees it (DESIGN 10): which words stand beside a tool, and the last good copy for the time in
//! which the backend cannot be asked.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use moka::sync::Cache;

use crate::clock::{Now, Wall};
use crate::config::Annotate;
use crate::health::{Caller, CredentialHash, Status, StatusReason, Unready, View};
use crate::mcp::list::{self, Edit, ListEdit, Page};
use crate::mcp::{Format, reply};
use crate::rules::Scope;

use super::facts::{Facts, setup_step};

/// Bytes of tool lists that are kept for callers of a backend that is down.
const KEPT_BYTES: u64 = 64 * 1024 * 1024;

/// Pages that are kept for one caller.
const MOST_PAGES: usize = 256;

/// No list is good for less, in milliseconds.
const SHORTEST_TTL_MS: u64 = 1000;

/// Session tools that are remembered, over all sessions.
const SESSION_TOOLS: u64 = 100_000;

/// What is added to the description of a tool, `None` if it is to be listed as it is.
pub(super) fn words(view: &View) -> Option<String> {
    let since = view.since.map(|at| at.hour_minute()).unwrap_or_default();
    match view.status {
        Status::Ok => None,
        Status::Degraded => {
            let last = view.failed_at.map(|at| at.hour_minute()).unwrap_or(since);
            Some(format!(" [intermittent: last failure at {last} UTC, retry tolerated]"))
        }
        Status::Down if view.retesting => None,
        Status::Down => Some(match view.expected_recovery_at {
            Some(at) => format!(" [currently unavailable: expected back at {} UTC]", at.hour_minute()),
            None => format!(" [unavailable since {since} UTC]"),
        }),
    }
}

/// What is added to the description of a tool that is not set up and listed all the same.
pub(super) fn unready_words(unready: &Unready) -> String {
    format!(" [not set up ({}): {}]", unready.reason.as_str(), setup_step(unready).trim_end_matches('.'))
}

/// How a tool appears in the list of a caller.
#[derive(Clone, Debug)]
pub(super) enum Appears {
    /// As its health says.
    Healthy(View),
    /// Not at all, by the operator's will.
    Never,
    /// Not at all, until it is set up.
    NotYet(Unready),
    /// With the reason why it is not set up.
    Unready(Unready),
    /// As the backend lists it, since it is only observed; with the reason if it is not set up.
    Observed(Option<StatusReason>),
}

/// How a list is rewritten for a caller.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rewriting {
    pub(super) format: Format,
    pub(super) annotate: Annotate,
    /// Whether callers can see different lists by the operator's will.
    pub(super) private: bool,
    pub(super) now: Now,
}

/// A body with a tool list as a caller sees it: `appears` says how for each tool, in order. Whatever is not concerned keeps its
/// bytes.
pub(super) fn rewrite<'a>(
    body: &'a [u8],
    rewriting: Rewriting,
    mut appears: impl FnMut(&str) -> Appears,
) -> Cow<'a, [u8]> {
    let mut whole = ListEdit { max_ttl_ms: None, private: rewriting.private };
    let edited = list::rewrite(body, rewriting.format, ListEdit::default(), |tool| {
        rewriting.edit(&appears(&tool.name), &mut whole)
    });
    if whole == ListEdit::default() {
        return edited;
    }
    match list::rewrite(&edited, rewriting.format, whole, |_| Edit::Keep) {
        Cow::Owned(changed) => Cow::Owned(changed),
        Cow::Borrowed(_) => edited,
    }
}

impl Rewriting {
    fn edit(&self, appears: &Appears, whole: &mut ListEdit) -> Edit {
        let (words, change) = match appears {
            Appears::Never => return Edit::Drop,
            Appears::Observed(_) => return Edit::Keep,
            Appears::NotYet(unready) => {
                self.changes_at(unready.next_check, whole);
                return Edit::Drop;
            }
            Appears::Unready(unready) => (unready_words(unready), Some(unready.next_check)),
            Appears::Healthy(view) => match words(view) {
                Some(words) => (words, view.next_trial_at),
                None => return Edit::Keep,
            },
        };
        if self.annotate == Annotate::Off {
            return Edit::Keep;
        }
        if let Some(at) = change {
            self.changes_at(at, whole);
        }
        let health = match appears {
            Appears::Unready(unready) => Facts::of_unready(unready, self.now),
            Appears::Healthy(view) => {
                whole.private |= matches!(view.scope(), Some(Scope::Session | Scope::User));
                Facts::of_view(view, self.now)
            }
            Appears::Never | Appears::NotYet(_) => return Edit::Drop,
            Appears::Observed(_) => return Edit::Keep,
        };
        Edit::Annotate {
            description: self.annotate.in_description().then_some(words),
            health: self.annotate.in_meta().then(|| health.json()),
        }
    }

    /// The list is good until then at most.
    fn changes_at(&self, at: Wall, whole: &mut ListEdit) {
        let ahead = u64::try_from(at.0.saturating_sub(self.now.wall.0)).unwrap_or(0).max(SHORTEST_TTL_MS);
        whole.max_ttl_ms = [whole.max_ttl_ms, Some(ahead)].into_iter().flatten().min();
    }
}

/// Whose list it is: what a backend shows one caller is never shown to another.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Whose {
    backend: Arc<str>,
    tenant: Arc<str>,
    project: Arc<str>,
    user: Option<Arc<str>>,
    credential: Option<CredentialHash>,
}

#[derive(Debug, Default)]
struct Pages {
    by_cursor: BTreeMap<Option<String>, Kept>,
}

#[derive(Debug)]
struct Kept {
    message: Vec<u8>,
    names: HashSet<String>,
}

/// The last good tool lists, bounded.
#[derive(Debug)]
pub(super) struct LastGood {
    pages: Cache<Whose, Arc<Mutex<Pages>>>,
    session_tools: Cache<(Arc<str>, Arc<str>, String), ()>,
}

impl LastGood {
    pub(super) fn new() -> LastGood {
        let weight = |_: &Whose, pages: &Arc<Mutex<Pages>>| {
            let pages = pages.lock().unwrap_or_else(PoisonError::into_inner);
            let bytes: usize = pages.by_cursor.values().map(|kept| kept.message.len() + 512).sum();
            u32::try_from(bytes).unwrap_or(u32::MAX)
        };
        LastGood {
            pages: Cache::builder().max_capacity(KEPT_BYTES).weigher(weight).build(),
            session_tools: Cache::new(SESSION_TOOLS),
        }
    }

    /// Remembers a page as the backend gave it.
    pub(super) fn keep(
        &self,
        backend: &Arc<str>,
        caller: &Caller,
        (cursor, page): (Option<&str>, Page),
        is_session_tool: impl Fn(&str) -> bool,
    ) {
        let whose = whose(backend, caller);
        if let Some(session) = &caller.session {
            for tool in page.tools.iter().filter(|tool| is_session_tool(&tool.name)) {
                self.session_tools.insert((Arc::clone(backend), Arc::clone(session), tool.name.clone()), ());
            }
        }
        let pages = self.pages.get_with(whose.clone(), Arc::default);
        {
            let mut pages = pages.lock().unwrap_or_else(PoisonError::into_inner);
            if cursor.is_none() && page.next_cursor.is_none() {
                pages.by_cursor.clear();
            }
            if pages.by_cursor.len() < MOST_PAGES {
                let names = page.tools.into_iter().map(|tool| tool.name).collect();
                pages.by_cursor.insert(cursor.map(str::to_owned), Kept { message: page.message, names });
            }
        }
        self.pages.insert(whose, pages);
    }

    /// The page as an answer to the request with this id; `None` if this caller never got it.
    pub(super) fn page(&self, backend: &Arc<str>, caller: &Caller, cursor: Option<&str>, id: &str) -> Option<Vec<u8>> {
        let pages = self.pages.get(&whose(backend, caller))?;
        let pages = pages.lock().unwrap_or_else(PoisonError::into_inner);
        reply::relabelled(&pages.by_cursor.get(&cursor.map(str::to_owned))?.message, id)
    }

    /// The tools of a session that its own lists named.
    pub(super) fn session_tools(&self, backend: &str, session: &str) -> Vec<String> {
        let of_session = self.session_tools.iter().filter(|(key, ())| &*key.0 == backend && &*key.1 == session);
        of_session.map(|(key, ())| key.2.clone()).collect()
    }

    /// Every tool that some caller's last good list names, by backend.
    pub(super) fn tools(&self) -> BTreeSet<(Arc<str>, String)> {
        let mut tools = BTreeSet::new();
        for (whose, pages) in &self.pages {
            let pages = pages.lock().unwrap_or_else(PoisonError::into_inner);
            let names = pages.by_cursor.values().flat_map(|kept| kept.names.iter());
            tools.extend(names.map(|name| (Arc::clone(&whose.backend), name.clone())));
        }
        tools
    }

    /// Whether the tool stands in the last good list of this caller (DESIGN 4).
    pub(super) fn lists(&self, backend: &Arc<str>, caller: &Caller, tool: &str) -> bool {
        let in_session = caller.session.as_ref().is_some_and(|session| {
            self.session_tools.contains_key(&(Arc::clone(backend), Arc::clone(session), tool.to_owned()))
        });
        in_session
            || self.pages.get(&whose(backend, caller)).is_some_and(|pages| {
                let pages = pages.lock().unwrap_or_else(PoisonError::into_inner);
                pages.by_cursor.values().any(|kept| kept.names.contains(tool))
            })
    }
}

fn whose(backend: &Arc<str>, caller: &Caller) -> Whose {
    Whose {
        backend: Arc::clone(backend),
        tenant: Arc::clone(&caller.tenant),
        project: Arc::clone(&caller.project),
        user: caller.user.clone(),
        credential: caller.credential,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Tick;
    use crate::health::StatusReason;

    const NOW: Now = Now { tick: Tick(0), wall: Wall(1_772_460_120_000) };

    fn view(status: Status, change: impl FnOnce(&mut View)) -> View {
        let mut view = View { status, since: Some(NOW.wall), ..View::OK };
        change(&mut view);
        view
    }

    #[test]
    fn what_stands_beside_a_tool_is_stable_within_a_minute_and_nothing_if_it_can_be_called() {
        let later = Wall(NOW.wall.0 + 1_680_000);
        let table = [
            (View::OK, None),
            (view(Status::Down, |view| view.retesting = true), None),
            (view(Status::Down, |_| {}), Some(" [unavailable since 14:02 UTC]")),
            (
                view(Status::Down, |view| view.expected_recovery_at = Some(later)),
                Some(" [currently unavailable: expected back at 14:30 UTC]"),
            ),
            (view(Status::Degraded, |_| {}), Some(" [intermittent: last failure at 14:02 UTC, retry tolerated]")),
            (
                view(Status::Degraded, |view| view.failed_at = Some(later)),
                Some(" [intermittent: last failure at 14:30 UTC, retry tolerated]"),
            ),
        ];
        for (view, expected) in table {
            assert_eq!(words(&view).as_deref(), expected, "{view:?}");
        }
    }

    fn rewriting(annotate: Annotate) -> Rewriting {
        Rewriting { format: Format::Json, annotate, private: false, now: NOW }
    }

    const LIST: &[u8] =
        br#"{"jsonrpc":"2.0","id":1,"result":{"ttlMs":60000,"tools":[{"name":"a","description":"A"},{"name":"b"}]}}"#;

    #[test]
    fn a_list_in_which_all_is_well_keeps_its_bytes() {
        for how in [Annotate::Off, Annotate::Description, Annotate::Meta, Annotate::Both] {
            let appears = |_: &str| Appears::Healthy(View::OK);
            assert!(matches!(rewrite(LIST, rewriting(how), appears), Cow::Borrowed(LIST)));
        }
    }

    #[test]
    fn the_time_to_live_is_lowered_to_the_next_trial() {
        let later = Some(Wall(NOW.wall.0 + 5_000));
        let down = |_: &str| Appears::Healthy(view(Status::Down, |view| view.next_trial_at = later));
        let list = rewrite(LIST, rewriting(Annotate::Description), down).into_owned();
        let list: serde_json::Value = serde_json::from_slice(&list).unwrap();
        assert_eq!(list["result"]["ttlMs"], 5_000);
        assert_eq!(list["result"]["tools"][0]["description"], "A [unavailable since 14:02 UTC]");
    }

    fn unready(after_ms: i64) -> Unready {
        Unready {
            reason: StatusReason::CredentialsMissing,
            integration: None,
            setup_hint: Some("Ask \"Ops\".".into()),
            missing: Vec::new(),
            since: None,
            next_check: NOW.wall.plus_millis(after_ms),
        }
    }

    #[test]
    fn a_tool_that_is_not_set_up_goes_or_says_why_and_shortens_the_life_of_the_list() {
        for (appears, tools) in [
            (Appears::NotYet(unready(7_000)), r#"{"name":"b"}"#),
            (
                Appears::Unready(unready(7_000)),
                r#"{"name":"a","description":"A [not set up (credentials_missing): Ask \"Ops\"]"},{"name":"b"}"#,
            ),
        ] {
            let of = |tool: &str| if tool == "a" { appears.clone() } else { Appears::Healthy(View::OK) };
            let list = rewrite(LIST, rewriting(Annotate::Description), of).into_owned();
            let expected = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"ttlMs":7000,"tools":[{tools}]}}}}"#);
            assert_eq!(String::from_utf8(list).unwrap(), expected);
        }
    }

    #[test]
    fn what_the_operator_excludes_goes_also_where_nothing_is_annotated_and_makes_the_list_private() {
        let list = br#"{"result":{"cacheScope":"public","ttlMs":60000,"tools":[{"name":"a"},{"name":"b"}]}}"#;
        let rewriting = Rewriting { private: true, ..rewriting(Annotate::Off) };
        let of = |tool: &str| if tool == "a" { Appears::Never } else { Appears::Unready(unready(1)) };
        let expected = br#"{"result":{"cacheScope":"private","ttlMs":60000,"tools":[{"name":"b"}]}}"#;
        assert_eq!(rewrite(list, rewriting, of), expected.as_slice());
    }

    fn caller(user: &str, session: Option<&str>) -> Caller {
        Caller {
            session: session.map(Arc::from),
            user: Some(user.into()),
            project: "p".into(),
            tenant: "t".into(),
            roles: Vec::new(),
            credential: None,
        }
    }

    fn page(names: &[&str]) -> Page {
        let tools = names.iter().map(|name| format!("{{\"name\":\"{name}\"}}")).collect::<Vec<_>>().join(",");
        let body = format!("{{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{{\"tools\":[{tools}]}}}}");
        list::page(body.as_bytes(), Format::Json).unwrap()
    }

    #[test]
    fn a_copy_is_given_back_to_whom_it_was_given_under_the_id_of_the_new_request() {
        let (lists, backend) = (LastGood::new(), Arc::from("demo"));
        lists.keep(&backend, &caller("alice", None), (None, page(&["a"])), |_| false);
        let copy = lists.page(&backend, &caller("alice", None), None, "\"x\"").unwrap();
        assert!(String::from_utf8(copy).unwrap().contains("\"id\":\"x\""));
        assert_eq!(lists.page(&backend, &caller("bob", None), None, "1"), None);
        assert!(lists.lists(&backend, &caller("alice", None), "a"));
        assert!(!lists.lists(&backend, &caller("bob", None), "a"));
    }

    #[test]
    fn a_session_tool_is_remembered_for_its_session_when_a_later_list_lacks_it() {
        let (lists, backend) = (LastGood::new(), Arc::from("demo"));
        let is_session_tool = |tool: &str| tool.starts_with("client_");
        lists.keep(&backend, &caller("alice", Some("s1")), (None, page(&["client_read"])), is_session_tool);
        lists.keep(&backend, &caller("alice", Some("s2")), (None, page(&["a"])), is_session_tool);
        assert!(lists.lists(&backend, &caller("alice", Some("s1")), "client_read"));
        assert!(!lists.lists(&backend, &caller("alice", Some("s2")), "client_read"));
    }
}
