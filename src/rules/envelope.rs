//! Error envelopes: JSON objects that say by their members alone that a call failed, whatever the status around them. An
//! object that carries anything else than an error is data, and data may be about errors.

use serde_json::{Map, Value};

/// Larger values are data. In bytes of their text.
pub(crate) const ENVELOPE_BOUND: usize = 8 * 1024;

/// The members that an error has, in any order and number, in the normal form of names.
const OF_ERRORS: [&str; 52] = [
    "error",
    "errors",
    "errormessage",
    "errormsg",
    "errordescription",
    "erroruri",
    "errorcode",
    "errordata",
    "errordetails",
    "errorid",
    "errorinfo",
    "errorsummary",
    "errorcauses",
    "errorcodes",
    "errortype",
    "errcode",
    "errmsg",
    "err",
    "message",
    "msg",
    "messages",
    "detail",
    "details",
    "description",
    "reason",
    "title",
    "name",
    "cause",
    "code",
    "subcode",
    "status",
    "statuscode",
    "statustext",
    "httpstatus",
    "httpcode",
    "ok",
    "success",
    "type",
    "object",
    "kind",
    "requestid",
    "traceid",
    "correlationid",
    "timestamp",
    "path",
    "instance",
    "hint",
    "documentationurl",
    "helpurl",
    "retryafter",
    "iserror",
    "extensions",
];
/// Members that must be empty in an error.
const OF_DATA: [&str; 4] = ["data", "result", "results", "response"];
/// Words in `status`, `type` or `object` that name an error.
const ERROR_WORDS: [&str; 5] = ["error", "fail", "failed", "failure", "fault"];

/// Whether the object is an error and nothing else.
pub(crate) fn is_error(value: &Value) -> bool {
    let Value::Object(members) = value else { return false };
    let stated = members.iter().map(|(name, value)| (super::codes::normal(name), value)).collect::<Vec<_>>();
    let flagged = stated.iter().any(|(name, value)| denies_success(name, value));
    let named = stated.iter().any(|(name, value)| is_named_error(name, value));
    let coded = members.get("error").and_then(Value::as_str).is_some_and(is_code);
    let only_error = stated.iter().all(|(name, value)| belongs(name, value, flagged && coded));
    only_error && (named || (flagged && has_message(members)) || marks_error(&stated))
}

/// Whether the raw token of a JSON object, or of a text that holds one, is no error for certain, seen by its first member:
/// one that no error has, with a value, and nothing in the rest that could make a code of it all the same.
pub(crate) fn is_plainly_data(token: &[u8]) -> bool {
    let Some((key, value)) = first_member(token) else { return false };
    let name = super::codes::normal(key);
    let holds = |word: &[u8]| memchr::memmem::find(token, word).is_some();
    let stands_in_errors = OF_ERRORS.contains(&name.as_str()) || OF_DATA.contains(&name.as_str());
    !stands_in_errors && value != b'n' && !holds(b"error") && !holds(b"\\u")
}

/// Whether what follows the opening brace of an object is its end, or a member that errors have, quoted in any way.
pub(crate) fn begins_as_error(inside: &str) -> bool {
    let inside = inside.trim_start_matches([' ', '\n', '\r', '\t', '\\']);
    let name = inside.strip_prefix(['"', '\'']).and_then(|inside| inside.split(['"', '\'']).next());
    inside.starts_with('}') || name.is_some_and(|name| OF_ERRORS.contains(&super::codes::normal(name).as_str()))
}

/// The first key of the object, if it is a plain word, and the first byte of its value.
fn first_member(token: &[u8]) -> Option<(&str, u8)> {
    let (inside, quote): (_, &[u8]) = match token {
        [b'"', inside @ ..] => (inside, b"\\\""),
        _ => (token, b"\""),
    };
    let inside = after_space(inside).strip_prefix(b"{")?;
    let inside = after_space(inside).strip_prefix(quote)?;
    let length = inside.iter().position(|byte| !(byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')))?;
    let (key, rest) = inside.split_at_checked(length)?;
    let rest = after_space(rest.strip_prefix(quote)?).strip_prefix(b":")?;
    Some((std::str::from_utf8(key).ok()?, *after_space(rest).first()?))
}

/// What follows the space, which stands for itself or as an escape.
fn after_space(mut text: &[u8]) -> &[u8] {
    loop {
        text = match text {
            [b' ' | b'\n' | b'\t' | b'\r', rest @ ..] | [b'\\', b'n' | b't' | b'r', rest @ ..] => rest,
            _ => return text,
        }
    }
}

/// `ok: false`, `success: false`, `isError: true`.
fn denies_success(name: &str, value: &Value) -> bool {
    match name {
        "ok" | "success" => *value == Value::Bool(false),
        "iserror" => *value == Value::Bool(true),
        _ => false,
    }
}

/// An `error` that is one: a text, a code or an object, or a list of errors that have messages.
fn is_named_error(name: &str, value: &Value) -> bool {
    let says = |value: &Value| match value {
        Value::String(text) => !text.trim().is_empty(),
        Value::Object(members) => !members.is_empty(),
        _ => false,
    };
    match name {
        "error" => says(value),
        "errors" => value.as_array().is_some_and(|all| !all.is_empty() && all.iter().all(is_one_of_errors)),
        "errormessage" => value.is_string(),
        _ => false,
    }
}

fn is_one_of_errors(value: &Value) -> bool {
    value.as_object().is_some_and(|members| {
        members.contains_key("message") && !members.contains_key("line") && !members.contains_key("row")
    })
}

/// `status: "error"`, `object: "error"`, or a status from 400 on beside a message or code.
fn marks_error(stated: &[(String, &Value)]) -> bool {
    let has = |wanted: &[&str]| stated.iter().any(|(name, _)| wanted.contains(&name.as_str()));
    stated.iter().any(|(name, value)| match (name.as_str(), value) {
        ("status", Value::String(word)) if ends_badly(word) => true,
        ("status" | "type" | "object" | "kind", Value::String(word)) => {
            ERROR_WORDS.iter().any(|known| word.eq_ignore_ascii_case(known))
        }
        ("status" | "statuscode" | "httpstatus" | "httpcode" | "code", Value::Number(number)) => {
            number.as_u64().is_some_and(|n| (400..600).contains(&n))
                && has(&["message", "msg", "detail", "title", "description", "errormsg"])
        }
        _ => false,
    })
}

/// `REQUEST_DENIED`, `UNKNOWN_ERROR`.
fn ends_badly(status: &str) -> bool {
    let status = super::codes::normal(status);
    ["error", "failed", "failure", "fault", "denied"].iter().any(|end| status.ends_with(end))
}

/// Whether a text is an XML document whose root element is an error.
pub(crate) fn is_error_xml(text: &str) -> bool {
    let text = text.trim_start();
    let text =
        if text.starts_with("<?") { text.split_once("?>").map_or("", |(_, rest)| rest.trim_start()) } else { text };
    let root = text.strip_prefix('<').and_then(|rest| rest.split(|c: char| c.is_whitespace() || c == '>').next());
    let name = root.map(|root| root.rsplit(':').next().unwrap_or(root));
    matches!(name, Some("Error" | "Errors" | "ErrorResponse" | "Fault"))
}

fn has_message(members: &Map<String, Value>) -> bool {
    ["message", "msg", "error", "detail", "description", "reason", "errors", "code"]
        .iter()
        .any(|name| members.get(*name).is_some_and(|value| !value.is_null()))
}

/// Whether the member may stand in an error. `coded`: the object says no, and by a code, which settles it.
fn belongs(name: &str, value: &Value, coded: bool) -> bool {
    OF_ERRORS.contains(&name)
        || value.is_null()
        || coded
        || (OF_DATA.contains(&name) && (is_empty(value) || value.is_string()))
}

/// Null, or an object of nothing but nulls, as GraphQL sends beside errors.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(members) => members.values().all(Value::is_null),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

/// A single word such as `token_expired`.
fn is_code(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 64
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_that_is_nothing_but_an_error_is_an_envelope() {
        for value in [
            json!({"error": "no such channel"}),
            json!({"ok": false, "error": "token_expired", "needed": "a", "provided": "b"}),
            json!({"success": false, "message": "no"}),
            json!({"error": {"code": 5, "message": "x"}}),
            json!({"errors": [{"message": "no", "path": ["a"]}], "data": null}),
            json!({"errors": [{"message": "no"}], "data": {"a": null}}),
            json!({"object": "error", "status": 404, "code": "x", "message": "y", "request_id": "z"}),
            json!({"statusCode": 500, "message": "Internal server error"}),
            json!({"status": "error", "data": "<html>"}),
            json!({"status": "UNKNOWN_ERROR", "results": []}),
            json!({"status": "REQUEST_DENIED", "error_message": "no", "results": []}),
        ] {
            assert!(is_error(&value), "{value}");
        }
    }

    #[test]
    fn an_object_with_anything_else_in_it_is_data() {
        for value in [
            json!({"valid": false, "error": "expected a number"}),
            json!({"service": "a", "status": "down", "error": "refused"}),
            json!({"errors": [{"line": 3, "message": "undefined"}], "error_count": 1}),
            json!({"url": "https://a.test", "ok": false, "status": 403}),
            json!({"ok": true, "error": null}),
            json!({"error": null}),
            json!({"error": "", "errors": []}),
            json!({"errors": [{"message": "no"}], "data": {"a": 1}}),
            json!({"status": "down", "message": "all is lost"}),
            json!({"message": "error"}),
            json!({"code": 404, "name": "Not found page"}),
            json!([{"error": "x"}]),
            json!("error"),
            json!({}),
        ] {
            assert!(!is_error(&value), "{value}");
        }
    }

    #[test]
    fn what_is_plainly_data_is_no_error() {
        let quoted = |text: &str| json!(text).to_string();
        for (object, plainly) in [
            (r#"{"id":7,"name":"x"}"#, true),
            ("{ \n \"items\" : [1]}", true),
            (r#"{"name":"x"}"#, false),
            (r#"{"id":null,"error":"x"}"#, false),
            (r#"{"provided":"a","ok":false,"error":"token_expired"}"#, false),
            (r#"{"id":7,"\u0065rror":"x","ok":false}"#, false),
            (r#"{"caf\u00e9":1}"#, false),
            ("{}", false),
            ("{", false),
            ("[1]", false),
        ] {
            assert_eq!(is_plainly_data(object.as_bytes()), plainly, "{object}");
            assert_eq!(is_plainly_data(quoted(object).as_bytes()), plainly, "{object} as a text");
            let value = serde_json::from_str(object).unwrap_or_default();
            assert!(!(plainly && is_error(&value)), "{object}");
        }
    }

    #[test]
    fn an_xml_document_is_an_error_by_its_root() {
        assert!(is_error_xml("<?xml version=\"1.0\"?>\n<Error><Code>InternalError</Code></Error>"));
        assert!(is_error_xml("<soap:Fault a='b'>"));
        for text in ["<Errors1/>", "<Result><Error>x</Error></Result>", "<?xml", "Error", "", "<"] {
            assert!(!is_error_xml(text), "{text}");
        }
    }
}
