//! The view that explains: an outcome goes in, and out comes which rule decides it, why no earlier one does, and what follows.

use std::collections::BTreeMap;
use std::sync::Arc;

use askama::Template;
use axum::Form;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;

use super::view::Frame;
use super::words::Pill;
use super::{Filled, show, unreadable};
use crate::admin::overview::word;
use crate::admin::target::Who;
use crate::admin::{Admin, explain};
use crate::clock::Now;
use crate::health::{Caller, Explained, Forecast};
use crate::rules::{BackendKind, Basis, Described, Exchange, Explanation, file};
use crate::yaml::duration_text;

/// What the form holds, as it was sent: it is shown again.
#[derive(Clone, Debug, Default)]
struct Asked {
    kind: String,
    status: String,
    headers: String,
    body: String,
    mcp_error: bool,
    rpc_code: String,
    exception: String,
    tool: String,
    backend: String,
    credential: bool,
}

/// A fact of an answer.
struct Fact {
    name: &'static str,
    value: String,
}

/// A rule that does not hold, and its first clause that does not.
struct Earlier {
    rule: String,
    clause: String,
}

/// What came out.
struct Answer {
    by: String,
    place: String,
    pill: Option<Pill>,
    facts: Vec<Fact>,
    earlier: Vec<Earlier>,
}

#[derive(Template)]
#[template(path = "explain.html")]
struct View {
    frame: Frame,
    asked: Asked,
    faults: Vec<&'static str>,
    wrong: Option<String>,
    answer: Option<Answer>,
}

/// `GET /explain`: the empty form.
pub(super) async fn form(State(admin): State<Arc<Admin>>, who: Who) -> Response {
    let asked = Asked { status: "503".to_owned(), headers: "retry-after: 120".to_owned(), ..Asked::default() };
    view(&admin, &who, StatusCode::OK, (asked, None, None))
}

/// `POST /explain`: the form with its answer. It changes nothing; it is a POST since a failure's text belongs into no log.
pub(super) async fn answer(State(admin): State<Arc<Admin>>, who: Who, filled: Filled) -> Response {
    let Form(filled) = match filled {
        Ok(filled) => filled,
        Err(rejection) => return unreadable(&rejection),
    };
    let asked = Asked::of(&filled);
    match asked.exchange(admin.clock.now()) {
        Ok(exchange) => {
            let exchange = explain::known(&admin, exchange);
            let explained = explain::of(&admin, &exchange, &Caller::somebody());
            view(&admin, &who, StatusCode::OK, (asked, None, Some(Answer::from(explained))))
        }
        Err(wrong) => view(&admin, &who, StatusCode::UNPROCESSABLE_ENTITY, (asked, Some(wrong), None)),
    }
}

type Content = (Asked, Option<String>, Option<Answer>);

fn view(admin: &Admin, who: &Who, status: StatusCode, (asked, wrong, answer): Content) -> Response {
    let frame = Frame::new((admin, who), "Explain", "/explain", admin.clock.now()).still();
    show(status, &View { frame, asked, faults: file::faults(), wrong, answer })
}

impl Asked {
    fn of(filled: &BTreeMap<String, String>) -> Asked {
        let text = |name: &str| filled.get(name).cloned().unwrap_or_default();
        let ticked = |name: &str| filled.contains_key(name);
        Asked {
            kind: text("kind"),
            status: text("status").trim().to_owned(),
            headers: text("headers"),
            body: text("body"),
            mcp_error: ticked("mcp_error"),
            rpc_code: text("rpc_code").trim().to_owned(),
            exception: text("exception"),
            tool: text("tool").trim().to_owned(),
            backend: text("backend").trim().to_owned(),
            credential: ticked("credential"),
        }
    }

    fn exchange(&self, now: Now) -> Result<Exchange, String> {
        let status =
            number(&self.status, "the HTTP status is a number from 100 to 999", |status| (100..=999).contains(status))?;
        let rpc_code: Option<i64> =
            number(&self.rpc_code, "the JSON-RPC code is a whole number such as -32603", |_| true)?;
        let fault = Some(self.exception.as_str()).filter(|kind| !kind.is_empty()).map(file::fault).transpose()?;
        if status.is_none() && rpc_code.is_none() && fault.is_none() && !self.mcp_error {
            return Err("say what came: a status, an MCP error, a JSON-RPC code, or a fault".to_owned());
        }
        let or = |text: &str, usual: &str| Arc::from(if text.is_empty() { usual } else { text });
        let described = Described {
            kind: match self.kind.as_str() {
                "mcp" => Some(BackendKind::Mcp),
                "http" => Some(BackendKind::Http),
                _ => None,
            },
            status,
            headers: headers(&self.headers)?,
            body: self.body.clone(),
            mcp_error: self.mcp_error.then_some(true),
            rpc_code,
            fault,
            tool: or(&self.tool, "tool"),
            backend: or(&self.backend, "backend"),
            targets: Vec::new(),
        };
        if let Some(why) = described.contradiction() {
            return Err(format!("there is no such outcome: {why}"));
        }
        Ok(Exchange { now, credentialed: self.credential, ..described.into_exchange() })
    }
}

fn number<T: std::str::FromStr>(text: &str, wrong: &str, fits: impl Fn(&T) -> bool) -> Result<Option<T>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    text.parse().ok().filter(|number| fits(number)).map(Some).ok_or_else(|| format!("{wrong}, not {text:?}"))
}

fn headers(lines: &str) -> Result<HeaderMap, String> {
    let mut map = HeaderMap::new();
    for line in lines.lines().filter(|line| !line.trim().is_empty()) {
        let field = line.split_once(':').and_then(|(name, value)| {
            Some((HeaderName::try_from(name.trim()).ok()?, HeaderValue::from_str(value.trim()).ok()?))
        });
        let (name, value) =
            field.ok_or_else(|| format!("the header {line:?} is no field such as `retry-after: 30`"))?;
        map.append(name, value);
    }
    Ok(map)
}

impl From<Explained> for Answer {
    fn from(explained: Explained) -> Answer {
        let Explained { explanation, place, forecast } = explained;
        let finding = explanation.verdict.finding.as_ref();
        let by = match (explanation.basis, finding) {
            (Basis::NoRule, _) => "no rule matches".to_owned(),
            (_, Some(finding)) => finding.rule.to_string(),
            (_, None) => "no rule: by its structure it is a success".to_owned(),
        };
        let earlier = explanation.earlier.iter();
        Answer {
            by,
            place: place.unwrap_or_default(),
            pill: finding.map(|finding| Pill::new(finding.classification.as_str())),
            facts: facts(&explanation, &forecast),
            earlier: earlier
                .map(|unmet| Earlier { rule: unmet.rule.to_string(), clause: unmet.clause.to_owned() })
                .collect(),
        }
    }
}

fn facts(explanation: &Explanation, next: &Forecast) -> Vec<Fact> {
    let seconds = |length| duration_text(std::time::Duration::from_secs(length));
    let mut facts = vec![Fact { name: "Counts as", value: format!("{:?}", explanation.verdict.kind).to_lowercase() }];
    let mut add = |name, value: Option<String>| facts.extend(value.map(|value| Fact { name, value }));
    let finding = explanation.verdict.finding.as_ref();
    add("Signature", finding.map(|finding| finding.signature.to_string()));
    add("Dispatch code", finding.map(|finding| finding.dispatch_code.to_string()));
    add("Note", finding.and_then(|finding| finding.note.as_ref()).map(ToString::to_string));
    add("Hint of the answer", finding.and_then(|finding| finding.hint).map(duration_text));
    add("Written to", next.scope.map(|scope| scope.to_string()));
    add("Cooldown", next.cooldown_seconds.map(seconds));
    add("Status of a tool that was OK", Some(word(next.status).to_owned()));
    let then = next
        .then
        .map(|then| format!("{} with outcome number {} in a row, one a second", word(then.status), then.outcomes));
    add("If it goes on", then.or_else(|| Some("nothing more, however often it comes".to_owned())));
    add("Expected back in", next.expected_recovery_seconds.map(seconds));
    add("Before that", next.confirms_backend.then(|| "three connects find out whether the backend is down".to_owned()));
    add("Diagnosis", next.diagnosis.then(|| "one is asked for".to_owned()));
    facts
}
