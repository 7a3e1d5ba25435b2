//! A response without its id: what a server that says the same says each time.

use std::ops::Range;

use bytes::Bytes;

use super::super::json::Cursor;

/// A response, with the place of its id known.
#[derive(Clone, Debug)]
pub struct Apart {
    message: Bytes,
    id: Range<usize>,
}

impl Apart {
    /// `None` where the message is no JSON object with one `id`.
    pub fn of(message: &Bytes) -> Option<Apart> {
        let (mut found, mut count) = (None, 0);
        let mut cursor = Cursor::new(message);
        let walked = cursor.object(|cursor, key| {
            let value = cursor.value()?;
            if key.text == "id" {
                (found, count) = (Some(value.start..value.end()), count + 1);
            }
            Ok(())
        });
        let id = found.filter(|_| count == 1 && walked.and_then(|()| cursor.end()).is_ok())?;
        Some(Apart { message: message.clone(), id })
    }

    /// Whether `message` is this response but with `id`, a raw token, for its id.
    pub fn is(&self, message: &[u8], id: &[u8]) -> bool {
        let inside = || {
            let rest = message.strip_prefix(self.message.get(..self.id.start)?)?;
            rest.strip_prefix(id).filter(|rest| self.message.get(self.id.end..) == Some(rest))
        };
        message.len() + self.id.len() == self.message.len() + id.len() && inside().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apart(message: &'static str) -> Option<Apart> {
        Apart::of(&Bytes::from_static(message.as_bytes()))
    }

    #[test]
    fn a_response_is_the_same_under_another_id_and_in_nothing_else() {
        let known = apart(r#"{"jsonrpc":"2.0", "id": 1,"result":{"id":1,"isError":true}}"#).unwrap();
        for (message, id, expected) in [
            (r#"{"jsonrpc":"2.0", "id": 1,"result":{"id":1,"isError":true}}"#, "1", true),
            (r#"{"jsonrpc":"2.0", "id": 23,"result":{"id":1,"isError":true}}"#, "23", true),
            (r#"{"jsonrpc":"2.0", "id": "a","result":{"id":1,"isError":true}}"#, r#""a""#, true),
            (r#"{"jsonrpc":"2.0", "id": 23,"result":{"id":1,"isError":true}}"#, "2", false),
            (r#"{"jsonrpc":"2.0", "id": 2,"result":{"id":1,"isError":true}}"#, "23", false),
            (r#"{"jsonrpc":"2.0", "id": 23,"result":{"id":23,"isError":true}}"#, "23", false),
            (r#"{"jsonrpc":"2.0","id": 23,"result":{"id":1,"isError":true}} "#, "23", false),
            ("", "1", false),
        ] {
            assert_eq!(known.is(message.as_bytes(), id.as_bytes()), expected, "{message} under {id}");
        }
    }

    #[test]
    fn what_has_no_single_id_is_no_response_to_be_known_by() {
        for message in
            [r#"{"result":{"id":1}}"#, r#"{"id":1,"\u0069d":2}"#, r#"[{"id":1}]"#, r#"{"id":1"#, r#"{"id":1} x"#]
        {
            assert!(apart(message).is_none(), "{message}");
        }
    }
}
