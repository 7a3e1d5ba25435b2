//! The heads of HTTP/1.1 messages: read strictly, without copying values, and written as they came.

use std::mem::MaybeUninit;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request, Response, StatusCode, Uri, Version};
use httparse::{Header, Status};
use hyper::ext::ReasonPhrase;

use crate::http::hop;

/// Fields that are parsed without asking for memory.
const FEW: usize = 100;

/// Digits of a length that certainly fits.
const LENGTH_DIGITS: usize = 18;

/// The names of a message's fields as they were spelt, in their order, where any of them has a capital letter. Among the
/// extensions of the message.
#[derive(Clone, Debug)]
pub(super) struct Spelling(Arc<[Bytes]>);

/// Where a head ends in `bytes`, its empty line included; the first `from` bytes were looked at before.
pub(super) fn end_of_head(bytes: &[u8], from: usize) -> Option<usize> {
    let from = from.saturating_sub(2);
    memchr::memchr_iter(b'\n', bytes.get(from..)?).find_map(|at| match bytes.get(from + at + 1..)? {
        [b'\n', ..] => Some(from + at + 2),
        [b'\r', b'\n', ..] => Some(from + at + 3),
        _ => None,
    })
}

/// The head of a request that holds nothing unusual.
#[derive(Clone, Debug)]
pub(super) struct RequestHead {
    pub(super) request: Request<()>,
    /// Bytes of its body.
    pub(super) length: u64,
    /// It says how long its body is.
    pub(super) states_length: bool,
    /// The dispatcher will send no further one.
    pub(super) is_last: bool,
}

/// Reads `head`, a whole head; `None` if anything about it is unusual or wrong, which is not told apart here.
pub(super) fn request(head: &Bytes, most_fields: usize) -> Option<RequestHead> {
    let mut slots = [const { MaybeUninit::uninit() }; FEW];
    let mut parsed = httparse::Request::new(&mut []);
    let slots = slots.get_mut(..most_fields.min(FEW))?;
    if parsed.parse_with_uninit_headers(head, slots) != Ok(Status::Complete(head.len())) || parsed.version != Some(1) {
        return None;
    }
    let target = parsed.path.filter(|target| target.starts_with('/'))?;
    let has_empty_lines = head.starts_with(b"\r") || head.starts_with(b"\n");
    if has_empty_lines || !is_crlf_only(head) {
        return None;
    }
    let mut request = Request::new(());
    *request.method_mut() = usual_method(parsed.method?)?;
    *request.uri_mut() = Uri::from_maybe_shared(head.slice_ref(target.as_bytes())).ok()?;
    let spelling = fields(head, parsed.headers, request.headers_mut())?;
    if let Some(spelling) = spelling {
        request.extensions_mut().insert(spelling);
    }
    let headers = request.headers();
    if headers.get_all(header::HOST).iter().count() != 1 || UNUSUAL.iter().any(|name| headers.contains_key(name)) {
        return None;
    }
    let mut lengths = headers.get_all(header::CONTENT_LENGTH).iter();
    let stated = lengths.next();
    if lengths.next().is_some() {
        return None;
    }
    let length = stated.map_or(Some(0), |value| digits(value.as_bytes()))?;
    let (states_length, is_last) = (stated.is_some(), closes(headers));
    Some(RequestHead { request, length, states_length, is_last })
}

/// Whether the beginning of a head shows that no request will come of it.
pub(super) fn is_wrong(begun: &[u8]) -> bool {
    let mut slots = [const { MaybeUninit::uninit() }; FEW];
    httparse::Request::new(&mut []).parse_with_uninit_headers(begun, &mut slots).is_err()
}

/// Fields that change how a connection is spoken over.
const UNUSUAL: [HeaderName; 4] = [header::TRANSFER_ENCODING, header::UPGRADE, header::EXPECT, header::TE];

fn usual_method(name: &str) -> Option<Method> {
    Some(match name {
        "GET" => Method::GET,
        "HEAD" => Method::HEAD,
        "POST" => Method::POST,
        "PUT" => Method::PUT,
        "PATCH" => Method::PATCH,
        "DELETE" => Method::DELETE,
        "OPTIONS" => Method::OPTIONS,
        _ => return None,
    })
}

/// Whether every line ends in CRLF.
fn is_crlf_only(head: &[u8]) -> bool {
    memchr::memchr_iter(b'\n', head).all(|at| at > 0 && head.get(at - 1) == Some(&b'\r'))
}

/// How the end of a message's body is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// So many bytes.
    Length(u64),
    Chunked,
    /// The connection ends with it.
    Close,
}

/// The head of an answer.
#[derive(Clone, Debug)]
pub(super) struct AnswerHead {
    pub(super) response: Response<()>,
    pub(super) framing: Framing,
    /// The connection can be used again after it.
    pub(super) keeps: bool,
}

/// Why the head of an answer is none.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NoHead {
    /// Only empty lines so far.
    Partial,
    Malformed,
    TooManyFields,
}

/// Reads the head of an answer to a request with this method. The framing of interim answers means nothing.
pub(super) fn answer(head: &Bytes, method: &Method, most_fields: usize) -> Result<AnswerHead, NoHead> {
    let mut few = [const { MaybeUninit::uninit() }; FEW];
    let mut many = Vec::new();
    let slots = match few.get_mut(..most_fields) {
        Some(slots) => slots,
        None => {
            many.resize_with(most_fields, MaybeUninit::uninit);
            &mut many
        }
    };
    let mut parsed = httparse::Response::new(&mut []);
    match httparse::ParserConfig::default().parse_response_with_uninit_headers(&mut parsed, head, slots) {
        Ok(Status::Complete(length)) if length == head.len() => {}
        Ok(Status::Partial) => return Err(NoHead::Partial),
        Err(httparse::Error::TooManyHeaders) => return Err(NoHead::TooManyFields),
        Ok(Status::Complete(_)) | Err(_) => return Err(NoHead::Malformed),
    }
    let mut response = Response::new(());
    let code = parsed.code.ok_or(NoHead::Malformed)?;
    *response.status_mut() = StatusCode::from_u16(code).map_err(|_| NoHead::Malformed)?;
    *response.version_mut() = if parsed.version == Some(1) { Version::HTTP_11 } else { Version::HTTP_10 };
    let spelling = fields(head, parsed.headers, response.headers_mut()).ok_or(NoHead::Malformed)?;
    if let Some(spelling) = spelling {
        response.extensions_mut().insert(spelling);
    }
    let reason = parsed.reason.unwrap_or_default();
    if response.status().canonical_reason() != Some(reason)
        && let Ok(reason) = ReasonPhrase::try_from(reason.as_bytes())
    {
        response.extensions_mut().insert(reason);
    }
    let framing = framing(&mut response, method).ok_or(NoHead::Malformed)?;
    let headers = response.headers();
    // Chunks and a length are a riddle that the next answer might be part of.
    let ambiguous = headers.contains_key(header::TRANSFER_ENCODING) && headers.contains_key(header::CONTENT_LENGTH);
    let keeps = response.version() == Version::HTTP_11 && framing != Framing::Close && !ambiguous && !closes(headers);
    Ok(AnswerHead { response, framing, keeps })
}

/// RFC 9112, 6.3; `None` where that leaves room for two opinions.
fn framing(response: &mut Response<()>, method: &Method) -> Option<Framing> {
    let (status, version) = (response.status(), response.version());
    let is_empty = matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED) || *method == Method::HEAD;
    if is_empty || status.is_informational() {
        return Some(Framing::Length(0));
    }
    let headers = response.headers_mut();
    let mut codings = headers.get_all(header::TRANSFER_ENCODING).iter();
    if let Some(coding) = codings.next() {
        let is_chunked = coding.as_bytes().eq_ignore_ascii_case(b"chunked") && codings.next().is_none();
        return (is_chunked && version == Version::HTTP_11).then_some(Framing::Chunked);
    }
    let mut lengths = headers
        .get_all(header::CONTENT_LENGTH)
        .iter()
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .map(|text| digits(text.trim_ascii()));
    let Some(length) = lengths.next() else { return Some(Framing::Close) };
    if lengths.any(|other| other != length) {
        return None;
    }
    Some(Framing::Length(length?))
}

/// A length of digits alone.
pub(super) fn digits(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > LENGTH_DIGITS {
        return None;
    }
    text.iter().try_fold(0_u64, |number, byte| Some(number * 10 + u64::from(char::from(*byte).to_digit(10)?)))
}

/// Whether `Connection` says that this was the last message.
pub(super) fn closes(headers: &HeaderMap) -> bool {
    hop::tokens(headers, &header::CONNECTION).any(|token| token.eq_ignore_ascii_case("close"))
}

/// Takes the fields over into `headers`; `None` if one of them is none.
fn fields(head: &Bytes, parsed: &[Header<'_>], headers: &mut HeaderMap) -> Option<Option<Spelling>> {
    headers.reserve(parsed.len());
    for field in parsed {
        let name = HeaderName::from_bytes(field.name.as_bytes()).ok()?;
        let value = HeaderValue::from_maybe_shared(head.slice_ref(field.value)).ok()?;
        headers.append(name, value);
    }
    let has_capitals = parsed.iter().any(|field| field.name.bytes().any(|byte| byte.is_ascii_uppercase()));
    let spelt = || parsed.iter().map(|field| head.slice_ref(field.name.as_bytes())).collect();
    Some(has_capitals.then(|| Spelling(spelt())))
}

/// Writes the fields, spelt as they came where that is known.
pub(super) fn write_fields(out: &mut BytesMut, headers: &HeaderMap, spelling: Option<&Spelling>) {
    let mut spelt = spelling.map(Spelt::of);
    for (name, value) in headers {
        let name = name.as_str().as_bytes();
        let as_it_came = spelt.as_mut().and_then(|spelt| spelt.next(name));
        write_field(out, as_it_came.unwrap_or(name), value.as_bytes());
    }
}

/// Finds names in a [`Spelling`], each once; quickly where they are asked for in their order.
struct Spelt<'a> {
    names: &'a [Bytes],
    /// One bit for each of the first names that was found before.
    found: u128,
    /// Behind the one that was found last.
    at: usize,
}

impl<'a> Spelt<'a> {
    fn of(Spelling(names): &'a Spelling) -> Spelt<'a> {
        Spelt { names, found: 0, at: 0 }
    }

    /// How the next field of this name is spelt.
    fn next(&mut self, name: &[u8]) -> Option<&'a [u8]> {
        let (before, after) = self.names.split_at_checked(self.at)?;
        let in_turn = (self.at..).zip(after).chain((0..).zip(before));
        let is_next = |at, spelt: &Bytes| spelt.eq_ignore_ascii_case(name) && self.found & bit(at) == 0;
        let (at, spelt) = in_turn.into_iter().find(|(at, spelt)| is_next(*at, spelt))?;
        self.found |= bit(at);
        self.at = at + 1;
        Some(spelt)
    }
}

/// The bit of the field at `at`; none for those that are too many, which may be found again.
fn bit(at: usize) -> u128 {
    u32::try_from(at).ok().and_then(|at| 1_u128.checked_shl(at)).unwrap_or(0)
}

/// Writes one field.
pub(super) fn write_field(out: &mut BytesMut, name: &[u8], value: &[u8]) {
    for part in [name, b": ", value, b"\r\n"] {
        out.extend_from_slice(part);
    }
}

impl Spelling {
    /// How the first field of this name is spelt.
    pub(super) fn of(spelling: Option<&Spelling>, name: &'static HeaderName) -> Bytes {
        let spelt = spelling.and_then(|Spelling(names)| {
            names.iter().find(|spelt| spelt.eq_ignore_ascii_case(name.as_str().as_bytes()))
        });
        spelt.cloned().unwrap_or_else(|| Bytes::from_static(name.as_str().as_bytes()))
    }
}

/// Room that a head with these fields takes, about.
pub(super) fn size_of_head(headers: &HeaderMap) -> usize {
    headers.iter().fold(128, |size, (name, value)| size + name.as_str().len() + value.len() + 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<RequestHead> {
        assert_eq!(end_of_head(text.as_bytes(), 0), Some(text.len()), "{text:?}");
        request(&Bytes::copy_from_slice(text.as_bytes()), 100)
    }

    #[test]
    fn a_plain_request_is_read_as_it_stands() {
        let head = "POST /mcp?x=%00&y HTTP/1.1\r\nHost: a:80\r\nX-MiXed:  v \t\r\nx-a: 1\r\nX-A: \u{e4}\r\nContent-Length: 007\r\n\r\n";
        let read = read(head).unwrap();
        assert_eq!((read.length, read.states_length, read.is_last), (7, true, false));
        assert_eq!(read.request.method(), Method::POST);
        assert_eq!(read.request.uri(), "/mcp?x=%00&y");
        let mut written = BytesMut::new();
        write_fields(&mut written, read.request.headers(), read.request.extensions().get());
        let expected = "Host: a:80\r\nX-MiXed: v\r\nx-a: 1\r\nX-A: \u{e4}\r\nContent-Length: 007\r\n";
        assert_eq!(written, expected.as_bytes());
    }

    #[test]
    fn what_real_clients_send_is_plain() {
        for head in [
            "GET /mcp HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\nConnection: keep-alive\r\n\r\n",
            "POST /mcp HTTP/1.1\r\nhost: a\r\nconnection: keep-alive\r\ncontent-type: application/json\r\naccept: */*\r\naccept-language: *\r\nsec-fetch-mode: cors\r\nuser-agent: node\r\naccept-encoding: br, gzip, deflate\r\ncontent-length: 151\r\n\r\n",
            "POST /mcp HTTP/1.1\r\nHost: a\r\nAccept: application/json, text/event-stream\r\nAccept-Encoding: gzip, deflate\r\nConnection: keep-alive\r\nUser-Agent: python-httpx/0.28.1\r\nContent-Length: 3\r\nmcp-session-id: x\r\n\r\n",
            "DELETE /mcp HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        ] {
            let read = read(head).unwrap();
            assert_eq!(read.is_last, head.contains("close"));
            assert_eq!(read.request.extensions().get::<Spelling>().is_some(), head.contains("Host"));
        }
    }

    #[test]
    fn what_is_unusual_or_wrong_is_not_plain() {
        for head in [
            "GET / HTTP/1.0\r\nHost: a\r\n\r\n",
            "PRI * HTTP/2.0\r\n\r\n",
            "BREW / HTTP/1.1\r\nHost: a\r\n\r\n",
            "CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n",
            "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\nHost: a\n\n",
            "GET / HTTP/1.1\r\nHost: a\n\r\n",
            "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5,5\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000000000000000\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length : 5\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: x\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nTE: trailers\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nX-A: 1\r\n folded\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nX-A: \0\r\n\r\n",
        ] {
            let end = end_of_head(head.as_bytes(), 0).unwrap();
            assert!(request(&Bytes::copy_from_slice(&head.as_bytes()[..end]), 100).is_none(), "{head:?}");
        }
        assert!(request(&Bytes::from_static(b"GET / HTTP/1.1\r\nHost: a\r\nX-A: 1\r\n\r\n"), 1).is_none());
    }

    #[test]
    fn a_head_that_began_wrong_is_not_waited_for() {
        for (begun, expected) in [
            ("GET / HTTP/1.1\r\nHo", false),
            ("PRI * HT", false),
            ("PRI * HTTP/2.0\r\n", true),
            ("GET / HTTP/1.1\r\0\r\n", true),
            ("GET / HTTP/1.1\r\nX A", true),
            ("\u{16}\u{3}\u{1}", true),
        ] {
            assert_eq!(is_wrong(begun.as_bytes()), expected, "{begun:?}");
        }
    }

    #[test]
    fn the_end_of_a_head_is_found_however_it_arrives() {
        for head in ["GET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET / HTTP/1.1\nHost: a\n\n", "a\r\n\n", "a\n\r\n"] {
            for seen in 0..head.len() {
                assert_eq!(end_of_head(&head.as_bytes()[..seen], 0), None);
                assert_eq!(end_of_head(head.as_bytes(), seen), Some(head.len()), "{head:?} after {seen}");
            }
        }
    }
}
