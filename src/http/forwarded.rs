//! `Via`, `X-Forwarded-*` and `Forwarded`: who came before us (RFC 9110, 7.6.3; RFC 7239). All off by default.

use std::net::{IpAddr, SocketAddr};

use http::Version;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};

/// The name that this proxy gives itself in `Via`.
const PSEUDONYM: &str = "toolvane";

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// Appends this hop to `Via`.
pub fn add_via(headers: &mut HeaderMap, received: Version) {
    let protocol = match received {
        Version::HTTP_10 => "1.0",
        Version::HTTP_2 => "2.0",
        _ => "1.1",
    };
    append(headers, header::VIA, &format!("{protocol} {PSEUDONYM}"));
}

/// Appends the peer to `X-Forwarded-For`; sets `X-Forwarded-Host` and `-Proto` unless somebody before us did.
pub fn add_x_forwarded(headers: &mut HeaderMap, peer: SocketAddr, host: Option<&HeaderValue>) {
    append(headers, X_FORWARDED_FOR, &peer.ip().to_canonical().to_string());
    if let Some(host) = host {
        headers.entry(X_FORWARDED_HOST).or_insert_with(|| host.clone());
    }
    headers.entry(X_FORWARDED_PROTO).or_insert(HeaderValue::from_static("http"));
}

/// Appends this hop to `Forwarded`.
pub fn add_forwarded(headers: &mut HeaderMap, peer: SocketAddr, host: Option<&HeaderValue>) {
    let node = match peer.ip().to_canonical() {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("\"[{ip}]\""),
    };
    let host = host
        .and_then(|h| h.to_str().ok())
        .filter(|h| !h.contains(['"', '\\']))
        .map(|h| format!(";host=\"{h}\""))
        .unwrap_or_default();
    append(headers, header::FORWARDED, &format!("for={node}{host};proto=http"));
}

/// One field with all members: several fields of one name mean the same, but not every backend knows.
fn append(headers: &mut HeaderMap, name: HeaderName, member: &str) {
    let earlier: Vec<&[u8]> = headers.get_all(&name).iter().map(HeaderValue::as_bytes).collect();
    let mut all = earlier.join(&b", "[..]);
    if !all.is_empty() {
        all.extend_from_slice(b", ");
    }
    all.extend_from_slice(member.as_bytes());
    if let Ok(value) = HeaderValue::from_bytes(&all) {
        headers.insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_hop_is_appended_behind_the_earlier_ones() {
        let mut map = HeaderMap::new();
        map.append(header::VIA, HeaderValue::from_static("1.0 fred"));
        map.append(header::VIA, HeaderValue::from_static("1.1 p.example"));
        map.append(X_FORWARDED_FOR, HeaderValue::from_static("10.0.0.1"));
        map.append(X_FORWARDED_PROTO, HeaderValue::from_static("https"));
        let host = HeaderValue::from_static("tools.local:80");
        add_via(&mut map, Version::HTTP_11);
        add_x_forwarded(&mut map, "[::ffff:10.0.0.2]:9".parse().unwrap(), Some(&host));
        add_forwarded(&mut map, "[2001:db8::1]:9".parse().unwrap(), Some(&host));
        assert_eq!(map.get(header::VIA).unwrap(), "1.0 fred, 1.1 p.example, 1.1 toolvane");
        assert_eq!(map.get(X_FORWARDED_FOR).unwrap(), "10.0.0.1, 10.0.0.2");
        assert_eq!(map.get(X_FORWARDED_HOST).unwrap(), "tools.local:80");
        assert_eq!(map.get(X_FORWARDED_PROTO).unwrap(), "https");
        assert_eq!(map.get(header::FORWARDED).unwrap(), "for=\"[2001:db8::1]\";host=\"tools.local:80\";proto=http");
    }
}
