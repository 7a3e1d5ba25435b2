//! Header fields that belong to one connection and must not be passed on (RFC 9110, 7.6.1).

use http::header::{self, HeaderMap, HeaderName, HeaderValue};

/// Fields that are hop-by-hop even when `Connection` does not name them.
const HOP_BY_HOP: [HeaderName; 5] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// Fields that `Connection` may name but that are kept: they say where a message goes and how long it is, so letting a
/// peer strip them is an attack, not an option.
const NEVER_STRIPPED: [HeaderName; 5] = [
    header::HOST,
    header::CONTENT_LENGTH,
    header::CONTENT_TYPE,
    header::AUTHORIZATION,
    HeaderName::from_static("mcp-session-id"),
];

/// Removes what belongs to the connection: the hop-by-hop fields, what `Connection` names, and `TE` beyond `trailers`.
pub fn strip(headers: &mut HeaderMap) {
    if !headers.keys().any(|name| HOP_BY_HOP.contains(name) || *name == header::TE) {
        return;
    }
    strip_named(headers);
    for name in &HOP_BY_HOP {
        headers.remove(name);
    }
    reduce_te(headers);
}

/// The protocol that a request asks to upgrade to, or a 101 answer switches to: `Connection: upgrade` with an `Upgrade`
/// field. `h2c` is none: it would open a tunnel past this proxy ("h2c smuggling").
pub fn upgrade(headers: &HeaderMap) -> Option<HeaderValue> {
    let protocol = headers.get(header::UPGRADE)?;
    let asked = tokens(headers, &header::CONNECTION).any(|t| t.eq_ignore_ascii_case("upgrade"));
    let h2c = protocol.to_str().map_or(true, |p| p.split(',').any(|p| p.trim().eq_ignore_ascii_case("h2c")));
    (asked && !h2c).then(|| protocol.clone())
}

/// Puts an upgrade back after [`strip`].
pub fn set_upgrade(headers: &mut HeaderMap, protocol: HeaderValue) {
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(header::UPGRADE, protocol);
}

/// Whether the sender of a request accepts trailers.
pub fn accepts_trailers(headers: &HeaderMap) -> bool {
    tokens(headers, &header::TE).any(|t| t.eq_ignore_ascii_case("trailers"))
}

/// The comma-separated members of all fields of this name, trimmed, empty ones left out.
pub fn tokens<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    headers
        .get_all(name)
        .into_iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .filter(|token| !token.is_empty())
}

fn strip_named(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = tokens(headers, &header::CONNECTION)
        .filter_map(|token| HeaderName::from_bytes(token.as_bytes()).ok())
        .filter(|name| !NEVER_STRIPPED.contains(name) && *name != header::TE)
        .collect();
    for name in named {
        headers.remove(name);
    }
}

fn reduce_te(headers: &mut HeaderMap) {
    if headers.contains_key(header::TE) {
        let trailers = accepts_trailers(headers);
        headers.remove(header::TE);
        if trailers {
            headers.insert(header::TE, HeaderValue::from_static("trailers"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        lines.iter().map(|(n, v)| (HeaderName::from_static(n), HeaderValue::from_static(v))).collect()
    }

    #[test]
    fn what_belongs_to_the_connection_is_removed_and_nothing_else() {
        type Lines = &'static [(&'static str, &'static str)];
        let cases: &[(Lines, &[&str])] = &[
            (&[("connection", "close, x-foo"), ("x-foo", "1"), ("x-bar", "2")], &["x-bar"]),
            (&[("connection", "X-Foo"), ("connection", "x-baz"), ("x-foo", "1"), ("x-baz", "2")], &[]),
            (
                &[("connection", "content-length, host, authorization"), ("host", "a"), ("content-length", "3")],
                &["host", "content-length"],
            ),
            (
                &[("keep-alive", "5"), ("proxy-connection", "x"), ("transfer-encoding", "chunked"), ("upgrade", "x")],
                &[],
            ),
            (&[("te", "gzip, trailers;q=0.5"), ("accept", "*/*")], &["accept"]),
            (&[("te", "gzip, trailers"), ("connection", "te")], &["te"]),
            (&[("proxy-authorization", "x"), ("trailer", "x-sum")], &["proxy-authorization", "trailer"]),
            (&[("connection", "(), ,,"), ("x", "1")], &["x"]),
        ];
        for (given, kept) in cases {
            let mut map = HeaderMap::new();
            for (n, v) in *given {
                map.append(HeaderName::from_static(n), HeaderValue::from_static(v));
            }
            strip(&mut map);
            let mut names: Vec<&str> = map.keys().map(HeaderName::as_str).collect();
            let mut kept = kept.to_vec();
            names.sort_unstable();
            kept.sort_unstable();
            assert_eq!(names, kept, "given {given:?}");
        }
    }

    #[test]
    fn te_is_reduced_to_trailers() {
        let mut map = headers(&[("te", "gzip, trailers")]);
        strip(&mut map);
        assert_eq!(map.get(header::TE).unwrap(), "trailers");
    }

    #[test]
    fn an_upgrade_needs_both_fields_and_is_never_h2c() {
        type Lines = &'static [(&'static str, &'static str)];
        let cases: &[(Lines, Option<&str>)] = &[
            (&[("connection", "Upgrade"), ("upgrade", "websocket")], Some("websocket")),
            (&[("connection", "keep-alive, upgrade"), ("upgrade", "websocket")], Some("websocket")),
            (&[("upgrade", "websocket")], None),
            (&[("connection", "upgrade")], None),
            (&[("connection", "Upgrade, HTTP2-Settings"), ("upgrade", "h2c")], None),
            (&[("connection", "upgrade"), ("upgrade", "websocket, H2C")], None),
        ];
        for (given, expected) in cases {
            assert_eq!(upgrade(&headers(given)).as_ref().map(|v| v.to_str().unwrap()), *expected, "given {given:?}");
        }
    }
}
