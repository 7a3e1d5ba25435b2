//! The machine codes of an answer, wherever APIs put them: members of JSON bodies, XML elements, header parameters.

use serde_json::Value;

use super::exchange::{Answer, Exchange};

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
/// Bounds of the walk, so that a hostile body costs no more than a usual one.
const CODES_MAX: usize = 64;
const NODES_MAX: usize = 4_000;
const DEPTH_MAX: usize = 12;

/// A code in the form in which codes are compared: letters and digits only, lower case. `rate_limited`, `RateLimited`
/// and `RATE-LIMITED` are one code.
pub(crate) fn normal(code: &str) -> String {
    code.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// All codes of an answer in their normal form, bounded.
pub(crate) fn of(exchange: &Exchange, text: &str, embedded: &[Value]) -> Vec<String> {
    let mut codes = Vec::new();
    of_each(exchange, text, embedded, &mut |code| {
        let code = normal(code);
        if !code.is_empty() && !codes.contains(&code) {
            codes.push(code);
        }
    });
    codes
}

fn of_each(exchange: &Exchange, text: &str, embedded: &[Value], take: &mut dyn FnMut(&str)) {
    let mut found = Found { take, count: 0, nodes: 0 };
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
}

/// Hands out each code as it is written, for those who want its words; a sentence in a member for codes is none.
pub(crate) fn as_written(exchange: &Exchange, text: &str, embedded: &[Value], mut take: impl FnMut(&str)) {
    of_each(exchange, text, embedded, &mut |code| {
        if !code.contains(char::is_whitespace) {
            take(code);
        }
    });
}

/// JSON objects that stand within a text: at most two, tried at no more than eight places.
pub(crate) fn embedded_json(text: &str) -> Vec<Value> {
    let mut values = Vec::new();
    let mut rest = text;
    let mut broken_off = 0;
    for _ in 0..8 {
        let Some(at) = memchr::memchr2(b'{', b'[', rest.as_bytes()) else { break };
        let Some(from) = rest.get(at..) else { break };
        let mut stream = serde_json::Deserializer::from_str(from).into_iter::<Value>();
        let skip = match stream.next() {
            Some(Ok(value)) => {
                if value.is_object() || value.get(0).is_some_and(Value::is_object) {
                    values.push(value);
                }
                stream.byte_offset().max(1)
            }
            Some(Err(error)) => {
                // Each such try has read the whole rest.
                broken_off += u32::from(error.is_eof());
                1
            }
            None => 1,
        };
        if values.len() == 2 || broken_off == BROKEN_OFF_MAX {
            break;
        }
        rest = from.get(skip..).unwrap_or("");
    }
    values
}

struct Found<'t> {
    take: &'t mut dyn FnMut(&str),
    count: usize,
    nodes: usize,
}

impl Found<'_> {
    fn add(&mut self, code: &str) {
        let code = code.trim();
        if !code.is_empty() && code.len() <= CODE_BOUND && self.count < CODES_MAX {
            self.count += 1;
            (self.take)(code);
        }
    }

    fn walk(&mut self, value: &Value, depth: usize) {
        self.nodes += 1;
        if depth > DEPTH_MAX || self.nodes > NODES_MAX {
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
        for challenge in exchange.headers.get_all("www-authenticate").iter().filter_map(|v| v.to_str().ok()) {
            if let Some(error) = quoted_parameter(challenge, "error") {
                self.add(error);
            }
        }
        if let Some(kind) = exchange.header("x-amzn-errortype") {
            self.add(last_part(kind.split(':').next().unwrap_or(kind)));
        }
        if let Some(number) = exchange.header("grpc-status").and_then(|v| v.trim().parse::<usize>().ok())
            && number > 0
            && let Some(name) = GRPC.get(number)
        {
            self.add(name);
        }
    }

    fn xml(&mut self, text: &str) {
        let mut rest = text;
        for _ in 0..CODES_MAX {
            let Some(from) = rest.find('<').and_then(|at| rest.get(at + 1..)) else { return };
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
