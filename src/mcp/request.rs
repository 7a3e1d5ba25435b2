//! What a client posts, read in one pass over the whole body; everything is borrowed from it.
//!
//! The parse is lenient where leniency changes nothing: a message that the backend will refuse still gets there, because
//! the original bytes are what is forwarded. It is strict where a second reading could differ from ours: of a member that
//! occurs twice the last one wins here, as in most parsers, and the message is flagged [`Request::ambiguous`], and so it
//! is when a member looks like one that counts but for its letter case (some backends match keys without regard to case)
//! or holds a string that cannot be read without loss. What is ambiguous must not be judged by its name.

mod members;
mod read;

use std::borrow::Cow;

pub use read::parse;

/// The first protocol revision without sessions; protocol versions are dates and compare as text.
const FIRST_MODERN: &str = "2026-07-28";

/// Members of one batch that are read; a longer one is passed on as [`Malformed::TooManyMembers`].
pub const MAX_BATCH: usize = 1_000;

/// What a body turned out to be.
#[derive(Clone, Debug, PartialEq)]
pub enum Message<'a> {
    /// Wants an answer.
    Request(Request<'a>),
    /// Wants none.
    Notification(Notification<'a>),
    /// Answers a request of the server.
    Response(Response<'a>),
    /// Several messages at once (2025-03-26 only). None of the members is itself a batch.
    Batch(Vec<Message<'a>>),
    /// Not a message; the backend will say what is wrong with it.
    Malformed(Malformed),
}

/// Why a body (or a member of a batch) is not a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Malformed {
    /// Not JSON, from this byte on.
    Syntax(usize),
    /// Containers nest deeper than 128 levels.
    TooDeep,
    /// JSON, but neither a request nor a notification nor a response.
    NotJsonRpc,
    /// A request whose id is `null` or neither a number nor a string, so that nobody could match an answer to it.
    BadId,
    /// A batch of more than [`MAX_BATCH`] members.
    TooManyMembers,
}

/// Which family of revisions a request belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Era {
    /// Up to 2025-11-25: `initialize`, sessions, resumable streams.
    #[default]
    Legacy,
    /// 2026-07-28 and later: every request stands alone.
    Modern,
}

/// A message that wants an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Request<'a> {
    /// The id as a raw JSON token, exactly as sent: a number or a string with its quotes.
    pub id: &'a str,
    /// The method.
    pub method: Cow<'a, str>,
    /// What its params say.
    pub params: Params<'a>,
    /// Whether another parser could read another method, id, name or meaning out of the same bytes.
    pub ambiguous: bool,
}

/// A message that wants no answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Notification<'a> {
    /// The method.
    pub method: Cow<'a, str>,
    /// What its params say; for `notifications/cancelled` that is [`Params::request_id`].
    pub params: Params<'a>,
    /// As in [`Request::ambiguous`].
    pub ambiguous: bool,
}

/// The client's answer to a request of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response<'a> {
    /// The id as a raw JSON token; it counts in the server's direction.
    pub id: &'a str,
    /// Whether it is an error.
    pub is_error: bool,
}

/// The members of `params` that matter, each `None` (or false) if absent or of the wrong type.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Params<'a> {
    /// `name`, of a tool or a prompt.
    pub name: Option<Cow<'a, str>>,
    /// `arguments` as raw JSON.
    pub arguments: Option<&'a [u8]>,
    /// `cursor`; the empty string is a valid one.
    pub cursor: Option<Cow<'a, str>>,
    /// `taskId`.
    pub task_id: Option<Cow<'a, str>>,
    /// `requestId` as a raw token.
    pub request_id: Option<&'a str>,
    /// `protocolVersion` of an `initialize`.
    pub protocol_version: Option<Cow<'a, str>>,
    /// Whether a task is asked for (`task` is an object).
    pub has_task: bool,
    /// Whether it continues an earlier request (`inputResponses` or `requestState` is there): its first half ran already.
    pub is_continuation: bool,
    /// `notifications.toolsListChanged` of a `subscriptions/listen`.
    pub listens_to_tools: bool,
    /// `_meta`.
    pub meta: Meta<'a>,
}

/// The members of `params._meta` that matter.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Meta<'a> {
    /// `io.modelcontextprotocol/protocolVersion`.
    pub protocol_version: Option<Cow<'a, str>>,
    /// `progressToken` as a raw token.
    pub progress_token: Option<&'a str>,
}

impl Request<'_> {
    /// The tool that a `tools/call` names.
    pub fn tool(&self) -> Option<&str> {
        if self.method == "tools/call" { self.params.name.as_deref() } else { None }
    }

    /// Which family of revisions it speaks: the modern one only if its own `_meta` says so.
    pub fn era(&self) -> Era {
        self.params.meta.era()
    }
}

impl Meta<'_> {
    /// The family of revisions that the stated version belongs to.
    pub fn era(&self) -> Era {
        match self.protocol_version.as_deref() {
            Some(version) if is_date(version) && version >= FIRST_MODERN => Era::Modern,
            _ => Era::Legacy,
        }
    }
}

fn is_date(version: &str) -> bool {
    let shape = version.bytes().map(|byte| if byte.is_ascii_digit() { b'0' } else { byte });
    shape.eq(*b"0000-00-00")
}

#[cfg(test)]
mod tests;
