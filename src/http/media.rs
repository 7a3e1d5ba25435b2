//! What kind of content a head announces.

use http::header::{self, HeaderMap};

/// The kinds that matter for observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Media {
    /// `application/json` and `…+json`.
    Json,
    /// `text/event-stream`.
    EventStream,
    /// Anything else, or nothing.
    Other,
}

/// The kind of the `Content-Type`; parameters and case do not matter. Several fields that differ are `Other`.
pub fn media(headers: &HeaderMap) -> Media {
    let mut all = headers.get_all(header::CONTENT_TYPE).iter().map(|v| v.to_str().map_or(Media::Other, kind));
    let first = all.next().unwrap_or(Media::Other);
    if all.all(|other| other == first) { first } else { Media::Other }
}

/// Whether the body is as the media type says, not compressed: only then can it be read along.
pub fn is_identity(headers: &HeaderMap) -> bool {
    headers
        .get_all(header::CONTENT_ENCODING)
        .iter()
        .all(|v| v.to_str().is_ok_and(|v| v.split(',').all(|c| matches!(c.trim(), "" | "identity"))))
}

fn kind(value: &str) -> Media {
    let essence = value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if essence == "application/json" || essence.ends_with("+json") {
        Media::Json
    } else if essence == "text/event-stream" {
        Media::EventStream
    } else {
        Media::Other
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn the_essence_decides() {
        let cases = [
            ("application/json", Media::Json),
            ("Application/JSON; charset=utf-8", Media::Json),
            ("application/problem+json", Media::Json),
            ("text/event-stream;charset=utf-8", Media::EventStream),
            ("text/html", Media::Other),
            ("", Media::Other),
            ("json", Media::Other),
        ];
        for (value, expected) in cases {
            let map = [(header::CONTENT_TYPE, HeaderValue::from_static(value))].into_iter().collect();
            assert_eq!(media(&map), expected, "{value}");
        }
        assert_eq!(media(&HeaderMap::new()), Media::Other);
    }

    #[test]
    fn only_identity_can_be_read_along() {
        for (value, expected) in [("identity", true), ("gzip", false), ("identity, br", false), ("", true)] {
            let map = [(header::CONTENT_ENCODING, HeaderValue::from_static(value))].into_iter().collect();
            assert_eq!(is_identity(&map), expected, "{value}");
        }
    }
}
