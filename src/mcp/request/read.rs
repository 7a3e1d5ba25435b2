//! The pass over the body.

use super::super::json::{Cursor, Fault, Raw, Text};
use super::members::{Known, PARAMS, Seen, TOP};
use super::{MAX_BATCH, Malformed, Message, Meta, Notification, Params, Request, Response};

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
