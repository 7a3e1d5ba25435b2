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
}
