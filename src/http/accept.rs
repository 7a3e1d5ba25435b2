//! `Accept-Encoding` of requests whose answer we must be able to read: lists that are annotated.

use http::header::{self, HeaderMap, HeaderValue};

/// Asks the backend for an answer that is not compressed. Removing the field would allow any coding (RFC 9110, 12.5.3).
pub fn ask_identity(headers: &mut HeaderMap) {
    headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
}

/// Asks the backend for an answer that can be read along: of the codings that the caller takes, those that are read here
/// (gzip, deflate) stay. Nothing changes where the caller takes no others.
pub fn ask_readable(headers: &mut HeaderMap) {
    let readable = |coding: &str| {
        let name = coding.split(';').next().unwrap_or_default().trim();
        ["gzip", "x-gzip", "deflate", "identity", ""].iter().any(|known| name.eq_ignore_ascii_case(known))
    };
    let given: Vec<&str> = headers
        .get_all(header::ACCEPT_ENCODING)
        .iter()
        .flat_map(|value| value.to_str().unwrap_or("*").split(','))
        .collect();
    if !given.is_empty() && given.iter().all(|coding| readable(coding)) {
        return;
    }
    let kept: Vec<&str> = given.into_iter().map(str::trim).filter(|coding| readable(coding)).collect();
    match HeaderValue::from_str(&kept.join(", ")) {
        Ok(value) if !kept.is_empty() => {
            headers.insert(header::ACCEPT_ENCODING, value);
        }
        _ => ask_identity(headers),
    }
}

/// Whether the caller takes `media_type` (`type/subtype`, in lower case) by its `Accept`; no `Accept` takes everything.
/// Only presence counts: `q=0` refuses, other weights do not matter.
pub fn accepts(headers: &HeaderMap, media_type: &str) -> bool {
    let family = media_type.split('/').next().unwrap_or_default();
    let mut present = false;
    let taken = headers
        .get_all(header::ACCEPT)
        .iter()
        .inspect(|_| present = true)
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|range| takes(range, media_type, family));
    taken || !present
}

fn takes(range: &str, media_type: &str, family: &str) -> bool {
    let mut parts = range.split(';').map(str::trim);
    let essence = parts.next().unwrap_or_default().to_ascii_lowercase();
    let refused = parts.any(|p| {
        p.to_ascii_lowercase().strip_prefix("q=").is_some_and(|q| q.trim().parse::<f32>().is_ok_and(|q| q <= 0.0))
    });
    let fits = essence == media_type || essence == "*/*" || essence.strip_suffix("/*") == Some(family);
    fits && !refused
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codings_that_cannot_be_read_along_are_taken_out_and_others_stay_as_they_are() {
        for (given, asked) in [
            (Some("gzip, deflate"), "gzip, deflate"),
            (Some("gzip;q=0.5,identity"), "gzip;q=0.5,identity"),
            (Some("gzip, deflate, zstd"), "gzip, deflate"),
            (Some("br"), "identity"),
            (Some("*"), "identity"),
            (None, "identity"),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(given) = given {
                headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(given));
            }
            ask_readable(&mut headers);
            assert_eq!(headers[header::ACCEPT_ENCODING], asked, "{given:?}");
        }
    }

    #[test]
    fn a_media_type_is_accepted_by_name_by_family_and_by_default() {
        let cases = [
            (Some("application/json, text/event-stream"), true),
            (Some("text/*;q=0.2"), true),
            (Some("*/*"), true),
            (Some("application/json"), false),
            (Some("text/event-stream;q=0"), false),
            (Some("TEXT/Event-Stream ; q=0.5"), true),
            (Some(""), false),
            (None, true),
        ];
        for (value, expected) in cases {
            let map = value.map(|v| (header::ACCEPT, HeaderValue::from_static(v))).into_iter().collect();
            assert_eq!(accepts(&map, "text/event-stream"), expected, "{value:?}");
        }
    }
}
