//! MCP on the wire: bytes to messages and back, for both eras of the protocol (DESIGN 3, MCP.md).
//!
//! | module | reads or writes |
//! | --- | --- |
//! | [`request`] | what a client posts: one borrowed parse of the whole body |
//! | [`answer`] | what a server sends: incremental, in constant memory, whatever the size and the chunking |
//! | [`sse`] | the framing of event streams |
//! | [`list`] | pages of `tools/list`: which tools stand in them, and editing them in place |
//! | [`sample`] | input for a tool, from the examples of its schema |
//! | [`reply`] | the messages that toolvane writes itself |
//!
//! Nothing here judges, reads a clock or does I/O. Ids and other tokens that must come back unchanged are kept as the raw
//! JSON text they arrived in: `0`, `"0"` and integers past 2^53 stay what they are.

pub mod answer;
#[cfg(test)]
mod arbitrary;
pub mod excerpt;
mod json;
pub mod list;
pub mod reply;
pub mod request;
pub mod sample;
mod scan;
pub mod sse;

pub use excerpt::Excerpt;

/// How the messages of a body are framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// One JSON text: a message, or a batch of them.
    Json,
    /// Server-sent events, one message (or batch) each.
    EventStream,
    /// Neither, so not MCP: an HTML page of an edge, plain text, no content type at all.
    Other,
}

impl Format {
    /// The framing that a `content-type` announces; parameters and letter case do not matter.
    pub fn of(content_type: Option<&str>) -> Format {
        let essence = content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim();
        if essence.eq_ignore_ascii_case("text/event-stream") {
            Format::EventStream
        } else if essence.eq_ignore_ascii_case("application/json") || ends_with_json(essence) {
            Format::Json
        } else {
            Format::Other
        }
    }
}

/// `application/problem+json` and its like: JSON, whatever it says.
fn ends_with_json(essence: &str) -> bool {
    let suffix = essence.len().checked_sub("+json".len()).and_then(|at| essence.get(at..));
    suffix.is_some_and(|suffix| suffix.eq_ignore_ascii_case("+json"))
}

#[cfg(test)]
mod tests {
    use super::Format;

    #[test]
    fn the_content_type_names_the_framing() {
        for (content_type, format) in [
            (Some("application/json"), Format::Json),
            (Some("Application/JSON; charset=utf-8"), Format::Json),
            (Some("application/problem+json"), Format::Json),
            (Some("text/event-stream"), Format::EventStream),
            (Some(" text/Event-Stream ;charset=utf-8"), Format::EventStream),
            (Some("text/html"), Format::Other),
            (Some("application/jsonlines"), Format::Other),
            (Some("json"), Format::Other),
            (Some("é"), Format::Other),
            (Some(""), Format::Other),
            (None, Format::Other),
        ] {
            assert_eq!(Format::of(content_type), format, "{content_type:?}");
        }
    }
}
