//! What a client posts, read in one pass over the whole body; everything is borrowed from it.
//!
//! The parse is lenient where leniency changes nothing: a message that the backend will refuse still gets there, because
//! the original bytes are what is forwarded. It is strict where a second reading could differ from ours: of a member that
//! occurs twice the last one wins here, as in most parsers, and the message is flagged [`Request::ambiguous`], and so it
//! is when a member looks like one that counts but for its letter case (some backends match keys without regard to case)
//! or holds a string that cannot be read without loss. What is ambiguous must not be judged by its name.

mod members;

use std::borrow::Cow;

use super::json::{Cursor, Fault, Raw, Text};
use members::{Known, PARAMS, Seen, TOP};

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

/// Reads a body. Never fails: what is no message is [`Message::Malformed`].
pub fn parse(body: &[u8]) -> Message<'_> {
    let mut cursor = Cursor::new(body);
    let parsed = match cursor.peek() {
        b'[' => batch(&mut cursor),
        _ => single(&mut cursor),
    };
    match parsed.and_then(|message| cursor.end().map(|()| message)) {
        Ok(message) => message,
        Err(Fault::Syntax(at)) => Message::Malformed(Malformed::Syntax(at)),
        Err(Fault::Depth) => Message::Malformed(Malformed::TooDeep),
    }
}

fn batch<'a>(cursor: &mut Cursor<'a>) -> Result<Message<'a>, Fault> {
    let (mut members, mut count) = (Vec::new(), 0);
    cursor.array(|cursor| {
        count += 1;
        let member = single(cursor)?;
        if count <= MAX_BATCH {
            members.push(member);
        }
        Ok(())
    })?;
    Ok(match count {
        0 => Message::Malformed(Malformed::NotJsonRpc),
        1..=MAX_BATCH => Message::Batch(members),
        _ => Message::Malformed(Malformed::TooManyMembers),
    })
}

#[derive(Default)]
struct Envelope<'a> {
    id: Option<Raw<'a>>,
    method: Option<Raw<'a>>,
    params: Params<'a>,
    result: bool,
    error: bool,
    seen: Seen,
}

fn single<'a>(cursor: &mut Cursor<'a>) -> Result<Message<'a>, Fault> {
    if cursor.peek() != b'{' {
        cursor.value()?;
        return Ok(Message::Malformed(Malformed::NotJsonRpc));
    }
    let mut envelope = Envelope::default();
    cursor.object(|cursor, key| envelope.member(cursor, &key))?;
    Ok(envelope.message())
}

impl<'a> Envelope<'a> {
    fn member(&mut self, cursor: &mut Cursor<'a>, key: &Text<'_>) -> Result<(), Fault> {
        match self.seen.note(TOP, key) {
            Some(Known::Id) => self.id = Some(cursor.value()?),
            Some(Known::Method) => self.method = Some(cursor.value()?),
            Some(Known::Result) => self.result = cursor.value().map(|_| true)?,
            Some(Known::Error) => self.error = cursor.value().map(|_| true)?,
            Some(Known::Params) => {
                self.params = Params::default();
                return self.params.read(cursor, &mut self.seen);
            }
            _ => drop(cursor.value()?),
        }
        Ok(())
    }

    fn message(self) -> Message<'a> {
        let id = self.id.filter(|id| id.is_id()).and_then(Raw::token);
        let Some(method) = self.method else {
            return match id {
                Some(id) if self.result || self.error => Message::Response(Response { id, is_error: self.error }),
                _ => Message::Malformed(Malformed::NotJsonRpc),
            };
        };
        let Some(method) = method.text() else { return Message::Malformed(Malformed::NotJsonRpc) };
        let ambiguous = self.seen.ambiguous || !method.exact;
        match (self.id, id) {
            (None, _) => Message::Notification(Notification { method: method.text, params: self.params, ambiguous }),
            (Some(_), Some(id)) => {
                Message::Request(Request { id, method: method.text, params: self.params, ambiguous })
            }
            (Some(_), None) => Message::Malformed(Malformed::BadId),
        }
    }
}

impl<'a> Params<'a> {
    fn read(&mut self, cursor: &mut Cursor<'a>, seen: &mut Seen) -> Result<(), Fault> {
        if cursor.peek() != b'{' {
            return cursor.value().map(drop);
        }
        cursor.object(|cursor, key| self.member(cursor, &key, seen))
    }

    fn member(&mut self, cursor: &mut Cursor<'a>, key: &Text<'_>, seen: &mut Seen) -> Result<(), Fault> {
        match seen.note(PARAMS, key) {
            Some(Known::Meta) => return self.meta.read(cursor, seen),
            Some(Known::Notifications) => return self.listen(cursor),
            Some(Known::Name) => self.name = seen.text(cursor.value()?),
            Some(Known::Arguments) => self.arguments = Some(cursor.value()?.bytes),
            Some(Known::Cursor) => self.cursor = seen.text(cursor.value()?),
            Some(Known::TaskId) => self.task_id = seen.text(cursor.value()?),
            Some(Known::RequestId) => self.request_id = id_token(cursor.value()?),
            Some(Known::ProtocolVersion) => self.protocol_version = seen.text(cursor.value()?),
            Some(Known::Task) => self.has_task = cursor.value()?.first() == b'{',
            Some(Known::InputResponses | Known::RequestState) => {
                self.is_continuation = cursor.value().map(|_| true)?;
            }
            _ => drop(cursor.value()?),
        }
        Ok(())
    }

    fn listen(&mut self, cursor: &mut Cursor<'a>) -> Result<(), Fault> {
        self.listens_to_tools = false;
        if cursor.peek() != b'{' {
            return cursor.value().map(drop);
        }
        cursor.object(|cursor, key| {
            let value = cursor.value()?;
            if key.text == "toolsListChanged" {
                self.listens_to_tools = value.bytes == b"true";
            }
            Ok(())
        })
    }
}

impl<'a> Meta<'a> {
    fn read(&mut self, cursor: &mut Cursor<'a>, seen: &mut Seen) -> Result<(), Fault> {
        *self = Meta::default();
        if cursor.peek() != b'{' {
            return cursor.value().map(drop);
        }
        cursor.object(|cursor, key| {
            let value = cursor.value()?;
            match &*key.text {
                "io.modelcontextprotocol/protocolVersion" => self.protocol_version = seen.text(value),
                "progressToken" => self.progress_token = id_token(value),
                _ => {}
            }
            Ok(())
        })
    }
}

fn id_token(value: Raw<'_>) -> Option<&str> {
    Some(value).filter(|value| value.is_id()).and_then(Raw::token)
}

fn is_date(version: &str) -> bool {
    let shape = version.bytes().map(|byte| if byte.is_ascii_digit() { b'0' } else { byte });
    shape.eq(*b"0000-00-00")
}

#[cfg(test)]
mod tests;
