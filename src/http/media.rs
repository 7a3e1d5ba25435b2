//! Whether content is as its media type says.

use http::header::{self, HeaderMap};

/// Whether the body is not compressed: only then can it be read as it passes.
pub fn is_identity(headers: &HeaderMap) -> bool {
    headers
        .get_all(header::CONTENT_ENCODING)
        .iter()
        .all(|v| v.to_str().is_ok_and(|v| v.split(',').all(|c| matches!(c.trim(), "" | "identity"))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn only_identity_can_be_read_as_it_passes() {
        for (value, expected) in [("identity", true), ("gzip", false), ("identity, br", false), ("", true)] {
            let map = [(header::CONTENT_ENCODING, HeaderValue::from_static(value))].into_iter().collect();
            assert_eq!(is_identity(&map), expected, "{value}");
        }
    }
}
