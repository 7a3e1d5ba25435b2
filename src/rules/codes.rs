//! The machine codes of an answer, wherever APIs put them: members of JSON bodies, XML elements, header parameters.

use http::HeaderName;
use http::header::WWW_AUTHENTICATE;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::exchange::{Answer, Exchange, GRPC_STATUS};

/// Members of a JSON body whose text is a code.
const CODE_MEMBERS: [&str; 20] = [
    "code",
    "error",
    "error_code",
    "errorcode",
    "errcode",
    "error_type",
    "errortype",
    "exception",
    "type",
    "__type",
    "status",
    "reason",
    "tag",
    "kind",
    "sub_code",
    "subcode",
    "error_subcode",
    "name",
    "category",
    "title",
];
/// XML elements whose text is a code.
const CODE_ELEMENTS: [&str; 3] = ["code", "errorcode", "error_code"];
/// The header field in which Amazon's APIs state their code.
static AMAZON_ERROR: HeaderName = HeaderName::from_static("x-amzn-errortype");
/// gRPC status numbers by name.
const GRPC: [&str; 17] = [
    "ok",
    "cancelled",
    "unknown",
    "invalid_argument",
    "deadline_exceeded",
    "not_found",
    "already_exists",
    "permission_denied",
    "resource_exhausted",
    "failed_precondition",
    "aborted",
    "out_of_range",
    "unimplemented",
    "internal",
    "unavailable",
    "data_loss",
    "unauthenticated",
];

/// A longer text is a sentence, not a code. In bytes.
const CODE_BOUND: usize = 80;
/// How many values that never end are tried in one text.
const BROKEN_OFF_MAX: u32 = 3;
/// Of a text longer than this it is worth knowing that its value does not end before any of it is kept. In bytes.
const SKIMMED_MIN: usize = 2 * 1024;
/// Bounds of the walk, so that a hostile body costs no more than a usual one.
const CODES_MAX: usize = 64;
const NODES_MAX: usize = 4_000;
const DEPTH_MAX: usize = 12;

/// A code in the form in which codes are compared: letters and digits only, lower case. `rate_limited`, `RateLimited`
/// and `RATE-LIMITED` are one code.
pub(crate) fn normal(code: &str) -> String {
    code.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// All codes of an answer as they are written, bounded.
pub(crate) fn of(exchange: &Exchange, text: &str, embedded: &[Value]) -> Vec<String> {
    let mut found = Found::default();
    found.headers(exchange);
    if let Some(body) = &exchange.json {
        found.walk(body, 0);
    }
    match &exchange.answer {
        Answer::Error { data: Some(data), .. } => found.walk(data, 0),
        Answer::Result { structured: Some(value), .. } => found.walk(value, 0),
        _ => {}
    }
    if exchange.json.is_none() {
        embedded.iter().for_each(|value| found.walk(value, 0));
        found.xml(text);
    }
    found.codes
}

/// The codes in their normal form, each once.
pub(crate) fn normalized(codes: &[String]) -> Vec<String> {
    let mut normalized = Vec::new();
    for code in codes {
        let code = normal(code);
        if !code.is_empty() && !normalized.contains(&code) {
            normalized.push(code);
        }
    }
    normalized
}

/// JSON objects that stand within a text: at most two, tried at no more than eight places.
pub(crate) fn embedded_json(text: &str) -> Vec<Value> {
    let mut values = Vec::new();
    let mut rest = text;
    let mut broken_off = 0;
    for _ in 0..8 {
        let Some(at) = memchr::memchr2(b'{', b'[', rest.as_bytes()) else { break };
        let Some(from) = rest.get(at..) else { break };
        let skip = match first_value(from) {
            Ok((value, length)) => {
                if value.is_object() || value.get(0).is_some_and(Value::is_object) {
                    values.push(value);
                }
                length.max(1)
            }
            Err(error) => {
                // Each such try has read the whole rest.
                broken_off += u32::from(error.is_eof());
                1
            }
        };
        if values.len() == 2 || broken_off == BROKEN_OFF_MAX {
            break;
        }
        rest = from.get(skip..).unwrap_or("");
    }
    values
}

/// The JSON value with which the text begins, and its length.
fn first_value(text: &str) -> Result<(Value, usize), serde_json::Error> {
    if text.len() > SKIMMED_MIN {
        Skimmed::deserialize(&mut serde_json::Deserializer::from_str(text))?;
    }
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let value = stream.next().unwrap_or(Ok(Value::Null))?;
    Ok((value, stream.byte_offset()))
}

/// A JSON value of which nothing is kept: what is wrong with it is what is wrong with a [`Value`], and found in a fraction of the
/// time.
struct Skimmed;

impl<'de> Deserialize<'de> for Skimmed {
    fn deserialize<D: Deserializer<'de>>(text: D) -> Result<Skimmed, D::Error> {
        text.deserialize_any(Skimmed)
    }
}

/// The name of a member, of which nothing is kept.
struct SkimmedName;

impl<'de> Deserialize<'de> for SkimmedName {
    fn deserialize<D: Deserializer<'de>>(text: D) -> Result<SkimmedName, D::Error> {
        text.deserialize_str(Skimmed).map(|_| SkimmedName)
    }
}

impl<'de> Visitor<'de> for Skimmed {
    type Value = Skimmed;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E>(self) -> Result<Skimmed, E> {
        Ok(Skimmed)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Skimmed, E> {
        Ok(Skimmed)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Skimmed, E> {
        Ok(Skimmed)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Skimmed, E> {
        Ok(Skimmed)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Skimmed, E> {
        Ok(Skimmed)
    }

    fn visit_str<E>(self, _: &str) -> Result<Skimmed, E> {
        Ok(Skimmed)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Skimmed, A::Error> {
        while items.next_element::<Skimmed>()?.is_some() {}
        Ok(Skimmed)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Skimmed, A::Error> {
        while members.next_entry::<SkimmedName, Skimmed>()?.is_some() {}
        Ok(Skimmed)
    }
}

#[derive(Default)]
struct Found {
    codes: Vec<String>,
    nodes: usize,
}

impl Found {
    fn add(&mut self, code: &str) {
        let code = code.trim();
        if !code.is_empty() && code.len() <= CODE_BOUND && !self.is_full() {
            self.codes.push(code.to_owned());
        }
    }

    fn is_full(&self) -> bool {
        self.codes.len() == CODES_MAX
    }

    fn walk(&mut self, value: &Value, depth: usize) {
        self.nodes += 1;
        if depth > DEPTH_MAX || self.nodes > NODES_MAX || self.is_full() {
            return;
        }
        match value {
            Value::Object(members) => {
                for (name, member) in members {
                    match member {
                        Value::String(text) if is_code_member(name) => self.add(last_part(text)),
                        Value::Number(number) if is_code_member(name) => self.add(&number.to_string()),
                        Value::Object(_) | Value::Array(_) => self.walk(member, depth + 1),
                        _ => {}
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.walk(item, depth + 1)),
            _ => {}
        }
    }

    fn headers(&mut self, exchange: &Exchange) {
        for challenge in exchange.headers.get_all(WWW_AUTHENTICATE).iter().filter_map(|v| v.to_str().ok()) {
            if let Some(error) = quoted_parameter(challenge, "error") {
                self.add(error);
            }
        }
        if let Some(kind) = exchange.header(&AMAZON_ERROR) {
            self.add(last_part(kind.split(':').next().unwrap_or(kind)));
        }
        if let Some(number) = exchange.header(&GRPC_STATUS).and_then(|v| v.trim().parse::<usize>().ok())
            && number > 0
            && let Some(name) = GRPC.get(number)
        {
            self.add(name);
        }
    }

    fn xml(&mut self, text: &str) {
        let mut rest = text;
        for _ in 0..CODES_MAX {
            let Some(from) = memchr::memchr(b'<', rest.as_bytes()).and_then(|at| rest.get(at + 1..)) else { return };
            let Some((name, after)) = from.split_once('>') else { return };
            if CODE_ELEMENTS.iter().any(|e| name.eq_ignore_ascii_case(e))
                && let Some((content, _)) = after.split_once('<')
            {
                self.add(last_part(content));
            }
            rest = after;
        }
    }
}

fn is_code_member(name: &str) -> bool {
    CODE_MEMBERS.iter().any(|member| name.eq_ignore_ascii_case(member))
}

/// What names the kind in `com.example#Kind`, `https://example.com/kinds/kind` and `urn:kinds:kind`.
fn last_part(code: &str) -> &str {
    if code.contains(char::is_whitespace) {
        return code;
    }
    code.trim_end_matches(['/', '#']).rsplit(['#', '/', ':']).next().unwrap_or(code)
}

/// The value of `name="value"` within a challenge.
pub(crate) fn quoted_parameter<'a>(challenge: &'a str, name: &str) -> Option<&'a str> {
    let mut rest = challenge;
    while let Some(at) = rest.find(name) {
        let before = rest.get(..at).unwrap_or("");
        let after = rest.get(at + name.len()..).unwrap_or("");
        if !before.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '-')
            && let Some(value) = after.trim_start().strip_prefix('=')
        {
            let value = value.trim_start();
            return match value.strip_prefix('"') {
                Some(quoted) => quoted.split('"').next(),
                None => value.split([',', ' ']).next(),
            };
        }
        rest = after;
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// JSON, sometimes cut off or with something in it that does not belong there.
    fn near_json() -> impl Strategy<Value = String> {
        let pieces = "(\\{\"[a-c]{1,3}\":|\\[|\\]|\\}|,|\"[a-zé ]{0,9}\"|-?[0-9]{1,25}|[0-9]\\.[0-9]e[0-9]{1,4}|true|null| |\"\\\\u[0-9a-f]{2,4}\"|\"\\\\n\"|\\PC)";
        prop_oneof![
            pieces.prop_map(|piece| piece.repeat(200)),
            prop::collection::vec(pieces, 0..40).prop_map(|pieces| pieces.concat()),
            (prop::collection::vec("(\\{\"code\":[0-9]{1,30}\\}|\\[[0-9],\"x\"\\]|null)", 0..20), 0usize..400)
                .prop_map(|(entries, cut)| format!("[{}]", entries.join(",")).chars().take(cut).collect()),
        ]
    }

    proptest! {
        #[test]
        fn what_is_skimmed_fails_as_what_is_kept(text in near_json()) {
            let skimmed = Skimmed::deserialize(&mut serde_json::Deserializer::from_str(&text)).map(|_| ());
            let kept = Value::deserialize(&mut serde_json::Deserializer::from_str(&text)).map(|_| ());
            prop_assert_eq!(skimmed.map_err(|e| e.to_string()), kept.map_err(|e| e.to_string()));
        }
    }
}
