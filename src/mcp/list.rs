//! Pages of `tools/list`: which tools stand in them, and editing them in place (DESIGN 10).
//!
//! An edit touches the bytes it must touch and no others: the order of tools and members, the spelling of numbers and
//! strings, unknown members, members that occur twice, space, and the framing of an event stream (ids, names, comments,
//! line endings, several `data` lines) all stay. Where nothing is to be changed the very same bytes come back, and so they
//! do where the body cannot be read: a list that is not understood is passed on as it is.

mod locate;
mod patch;

use std::borrow::Cow;

use super::Format;
use super::json::Raw;
use locate::{List, lists};
use patch::{Patch, texts};

/// A page of a tool list, taken from its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The JSON-RPC response that holds the page, without its framing: what to keep as the last good copy.
    pub message: Vec<u8>,
    /// The tools, in the backend's order.
    pub tools: Vec<Listed>,
    /// `nextCursor`, if there is a next page.
    pub next_cursor: Option<String>,
}

/// A tool of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// Its `annotations` as raw JSON.
    pub annotations: Option<String>,
    /// Its `_meta` as raw JSON.
    pub meta: Option<String>,
    /// Its `inputSchema` as raw JSON.
    pub input_schema: Option<String>,
}

/// A tool that is about to be edited.
#[derive(Clone, Debug)]
pub struct Tool<'a> {
    /// Its name.
    pub name: Cow<'a, str>,
    /// Its `annotations` as raw JSON.
    pub annotations: Option<&'a [u8]>,
    /// Its `_meta` as raw JSON.
    pub meta: Option<&'a [u8]>,
    /// Its `inputSchema` as raw JSON.
    pub input_schema: Option<&'a [u8]>,
}

/// What to do with a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Edit {
    /// Leave it as it is.
    #[default]
    Keep,
    /// Take it off the page.
    Drop,
    /// Say something about it.
    Annotate {
        /// Text to add to the end of its description. Where there is none this becomes the description, without leading
        /// space.
        description: Option<String>,
        /// JSON to put under `_meta["toolvane/health"]`.
        health: Option<String>,
    },
}

/// What to do with the page as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListEdit {
    /// Lower `ttlMs` to this, in milliseconds, if it is there and higher.
    pub max_ttl_ms: Option<u64>,
    /// Set `cacheScope` to `private`, if it is there and says something else.
    pub private: bool,
}

/// Reads a page out of a complete response body: a message, or the event of a stream that holds it. `None` if there is no
/// tool list in it.
pub fn page(body: &[u8], format: Format) -> Option<Page> {
    texts(body, format).iter().find_map(|text| {
        let list = lists(&text.json)?.pop()?;
        Some(Page {
            message: text.json.to_vec(),
            tools: list.tools().map(|tool| Listed::from(&tool)).collect(),
            next_cursor: list.next_cursor(),
        })
    })
}

/// Edits the pages in a complete response body and leaves everything else as it is. `edit` is asked once for each tool,
/// in order.
pub fn rewrite<'a>(
    body: &'a [u8],
    format: Format,
    whole: ListEdit,
    mut edit: impl FnMut(&Tool<'_>) -> Edit,
) -> Cow<'a, [u8]> {
    let mut patches = Vec::new();
    for text in texts(body, format) {
        let mut inside = Vec::new();
        for list in lists(&text.json).unwrap_or_default() {
            edit_list(&list, whole, &mut edit, &mut inside);
        }
        text.place(inside, &mut patches);
    }
    patch::apply(body, patches)
}

fn edit_list(list: &List<'_>, whole: ListEdit, edit: &mut impl FnMut(&Tool<'_>) -> Edit, patches: &mut Vec<Patch>) {
    let mut dropped = vec![false; list.elements.len()];
    for (element, dropped) in list.elements.iter().zip(&mut dropped) {
        let Some(tool) = element.tool() else { continue };
        match edit(&tool) {
            Edit::Keep => {}
            Edit::Drop => *dropped = true,
            Edit::Annotate { description, health } => element.annotate(description, health, patches),
        }
    }
    drop_elements(list, &dropped, patches);
    let lower = whole.max_ttl_ms.filter(|max| list.ttl_ms().is_some_and(|ttl| ttl > *max));
    if let (Some(max), Some(ttl)) = (lower, list.ttl) {
        patches.push(Patch::replace(ttl, max.to_string()));
    }
    if let Some(scope) = list.cache_scope.filter(|scope| whole.private && scope.bytes != b"\"private\"") {
        patches.push(Patch::replace(scope, "\"private\"".to_owned()));
    }
}

/// Takes elements out of the array, each together with one comma: the one before it, or the one after it as long as no
/// element before it stays.
fn drop_elements(list: &List<'_>, dropped: &[bool], patches: &mut Vec<Patch>) {
    let mut before: Option<Raw<'_>> = None;
    let mut any_stays = false;
    let mut rest = list.elements.iter().zip(dropped).peekable();
    while let Some((element, dropped)) = rest.next() {
        let here = element.raw;
        match before.filter(|_| any_stays) {
            _ if !dropped => any_stays = true,
            Some(before) => patches.push(Patch::delete(before.end(), here.end())),
            None => {
                let end = rest.peek().map_or(here.end(), |(next, _)| next.raw.start);
                patches.push(Patch::delete(here.start, end));
            }
        }
        before = Some(here);
    }
}

impl From<&Tool<'_>> for Listed {
    fn from(tool: &Tool<'_>) -> Listed {
        let owned = |raw: Option<&[u8]>| raw.map(|raw| String::from_utf8_lossy(raw).into_owned());
        Listed {
            name: tool.name.to_string(),
            annotations: owned(tool.annotations),
            meta: owned(tool.meta),
            input_schema: owned(tool.input_schema),
        }
    }
}

#[cfg(test)]
mod tests;
