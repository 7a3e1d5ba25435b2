//! `toolvane explain`: which rule decides an outcome, why no earlier one does, and what follows.

use std::io::Write;
use std::path::Path;

use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};

use super::args::{Explain, Form, OutcomeFlags};
use super::rules::{Layered, Streams, columns, refuse_in, text_of};
use super::{BAD, FINE, USAGE};
use crate::clock::Now;
use crate::health::{self, Caller, Explained, Forecast, Policy, Tuning};
use crate::rules::{BackendKind, Basis, Described, Exchange, Table, case, file};
use crate::yaml::duration_text;

/// Why there is nothing to explain, and the exit code for it.
type Refused = (u8, String);

/// Runs the command; gives the exit code. `now` stands in for the time at which the answer was received.
pub fn explain<O: Write, W: Write>(args: &Explain, now: Now, streams: &mut Streams<O, W>) -> u8 {
    let layered = match Layered::load(&args.rules) {
        Ok(layered) => layered,
        Err(report) => return refuse_in(args.output, &report, streams),
    };
    let answer = match &args.log {
        Some(line) => logged(line, &layered.table, args.output),
        None => exchange(args, now).map(|exchange| explained(&layered.table, &exchange, args.output)),
    };
    match answer {
        Ok(data) => {
            let _ = streams.data.write_all(data.as_bytes());
            FINE
        }
        Err((code, why)) => {
            let _ = writeln!(streams.words, "error: {why}");
            code
        }
    }
}

fn exchange(args: &Explain, now: Now) -> Result<Exchange, Refused> {
    let Some(path) = &args.case else { return described(&args.outcome, now) };
    let shown = path.display();
    let text = text_of(path).map_err(|error| (USAGE, format!("cannot read {shown}: {error}")))?;
    let one_line = serde_json::from_str::<Value>(&text).map(|value| value.to_string()).unwrap_or(text);
    let mut lines = one_line.lines().filter(|line| !line.trim().is_empty());
    let (Some(line), None) = (lines.next(), lines.next()) else {
        return Err((BAD, format!("{shown} must hold one case, as a JSON object")));
    };
    case::read(line, now).map(|case| case.exchange).map_err(|error| (BAD, format!("{shown}: {error}")))
}

fn described(flags: &OutcomeFlags, now: Now) -> Result<Exchange, Refused> {
    let says_nothing =
        flags.status.is_none() && flags.mcp_error.is_none() && flags.rpc_code.is_none() && flags.exception.is_none();
    if says_nothing {
        let why = "say what came: one of --status, --mcp-error, --rpc-code and --exception, or --case or --log";
        return Err((USAGE, why.to_owned()));
    }
    let fault = flags.exception.as_deref().map(file::fault).transpose();
    let kind = flags.kind.as_deref().map(|kind| if kind == "mcp" { BackendKind::Mcp } else { BackendKind::Http });
    let described = Described {
        kind,
        status: flags.status,
        headers: headers(&flags.header)?,
        body: flags.body.clone().unwrap_or_default(),
        mcp_error: flags.mcp_error,
        rpc_code: flags.rpc_code,
        fault: fault.map_err(|why| (USAGE, format!("--exception is not known: {why}")))?,
        tool: flags.tool.as_deref().unwrap_or("tool").into(),
        backend: flags.backend.as_deref().unwrap_or("backend").into(),
        targets: flags.target.iter().map(|host| host.to_lowercase()).collect(),
    };
    if let Some(why) = described.contradiction() {
        return Err((USAGE, format!("there is no such outcome: {why}")));
    }
    let (credentialed, listed, session_tool) = (flags.credential, flags.listed, flags.session_tool);
    Ok(Exchange { now, credentialed, listed, session_tool, ..described.into_exchange() })
}

fn headers(fields: &[String]) -> Result<HeaderMap, Refused> {
    let mut map = HeaderMap::new();
    for field in fields {
        let read = field.split_once(':').and_then(|(name, value)| {
            Some((HeaderName::try_from(name.trim()).ok()?, HeaderValue::from_str(value.trim()).ok()?))
        });
        let Some((name, value)) = read else {
            return Err((USAGE, format!("--header {field:?} is no field such as `retry-after: 30`")));
        };
        map.append(name, value);
    }
    Ok(map)
}

fn explained(table: &Table, exchange: &Exchange, form: Form) -> String {
    let policy = Policy { session_tool: exchange.session_tool, has_targets: true, ..Policy::default() };
    let explained = health::explain(exchange, table, &Caller::somebody(), &policy, &Tuning::default());
    match form {
        Form::Json => format!("{}\n", json!(explained)),
        Form::Table => as_table(&explained),
    }
}

fn as_table(explained: &Explained) -> String {
    let Explained { explanation, place, forecast: next } = explained;
    let finding = explanation.verdict.finding.as_ref();
    let rule = finding.zip(place.as_ref()).map(|(finding, place)| format!("{} ({place})", finding.rule));
    let by = match (explanation.basis, rule) {
        (Basis::Cancelled, _) => "no rule: the caller cancelled the call".to_owned(),
        (Basis::NotYetAnOutcome, _) => "no rule: this is not yet an outcome".to_owned(),
        (Basis::Success, _) => "no rule: by its structure it is a success".to_owned(),
        (Basis::KnownTool, Some(rule)) => format!("{rule}, and the backend's own list, in which the tool stands"),
        (_, Some(rule)) => rule,
        (_, None) => "no rule matches".to_owned(),
    };
    let mut rows = vec![("decided by", by), ("counts as", format!("{:?}", explanation.verdict.kind).to_lowercase())];
    if let Some(finding) = finding {
        rows.push(("signature", finding.signature.to_string()));
        rows.push(("classification", finding.classification.to_string()));
        rows.push(("dispatch code", finding.dispatch_code.to_string()));
        rows.push(("health action", finding.health_action.to_string()));
        rows.push(("evidence", format!("{:?}", finding.evidence).to_lowercase()));
        rows.extend(finding.hint.map(|hint| ("the answer's own hint", duration_text(hint))));
        rows.extend(finding.note.as_ref().map(|note| ("note", note.to_string())));
    }
    rows.extend(next.scope.map(|scope| ("written to", scope.to_string())));
    let seconds = |wait| duration_text(std::time::Duration::from_secs(wait));
    rows.extend(next.cooldown_seconds.map(|wait| ("cooldown", seconds(wait))));
    rows.push(("status of a tool that was OK", status_words(next)));
    rows.extend(next.expected_recovery_seconds.map(|wait| ("expected back in", seconds(wait))));
    let mut out = columns(&rows.into_iter().map(|(name, value)| vec![name.to_owned(), value]).collect::<Vec<_>>());
    if !explanation.earlier.is_empty() {
        out.push_str("\nbefore it, the first clause that does not hold\n");
        let unmet = explanation.earlier.iter().map(|unmet| vec![format!("  {}", unmet.rule), unmet.clause.to_owned()]);
        out.push_str(&columns(&unmet.collect::<Vec<_>>()));
    }
    out
}

fn status_words(next: &Forecast) -> String {
    let mut words = format!("{:?}", next.status).to_uppercase();
    if next.confirms_backend {
        words.push_str(", while three connects find out whether the backend is down");
    }
    match next.then {
        Some(then) => {
            let status = format!("{:?}", then.status).to_uppercase();
            words
                .push_str(&format!(", then {status} with the outcome number {} of a row, one a second", then.outcomes));
        }
        None => words.push_str(", however often it comes"),
    }
    if next.diagnosis {
        words.push_str("; a diagnosis is asked for");
    }
    words
}

/// What a line of the log says was decided, and whether these rules would still say so. The line holds nothing of the answer.
fn logged(line: &str, table: &Table, form: Form) -> Result<String, Refused> {
    let text = match line {
        "-" => text_of(Path::new("-")).map_err(|error| (USAGE, format!("cannot read standard input: {error}")))?,
        _ => line.to_owned(),
    };
    let member = |name: &str| log_member(&text, name);
    let Some(id) = member("rule") else {
        let why = "the line names no rule: `call ended` lines of failures do, at `log.level: debug`";
        return Err((BAD, why.to_owned()));
    };
    let Some(rule) = table.rule(&id) else {
        return Err((BAD, format!("no rule has the id `{id}` any more; with --rules the files of then can be given")));
    };
    let then = &rule.then;
    let same = |name: &str, now: &str| member(name).is_none_or(|said| said == now);
    let unchanged = same("signature", &then.signature) && same("classification", then.classification.as_str());
    let answer = json!({
        "rule": rule.id,
        "place": rule.origin.to_string(),
        "signature": then.signature,
        "classification": then.classification,
        "healthAction": then.health_action,
        "note": then.note,
        "tool": member("tool"),
        "backend": member("backend"),
        "unchanged": unchanged,
    });
    if form == Form::Json {
        return Ok(format!("{answer}\n"));
    }
    let mut rows = vec![
        vec!["decided by".to_owned(), format!("{} ({})", rule.id, rule.origin)],
        vec!["signature".to_owned(), then.signature.to_string()],
        vec!["classification".to_owned(), then.classification.to_string()],
        vec!["health action".to_owned(), then.health_action.to_string()],
    ];
    rows.extend(then.note.iter().map(|note| vec!["note".to_owned(), note.to_string()]));
    if !unchanged {
        rows.push(vec!["changed since".to_owned(), "the rule says something else now than the line does".to_owned()]);
    }
    Ok(columns(&rows))
}

/// A member of a line of the log, in JSON or in text.
fn log_member(line: &str, name: &str) -> Option<String> {
    if let Ok(Value::Object(members)) = serde_json::from_str(line.trim()) {
        return members.get(name)?.as_str().map(str::to_owned);
    }
    let start = format!("{name}=");
    let word = line.split_whitespace().find_map(|word| word.strip_prefix(&start))?;
    Some(word.trim_matches('"').to_owned())
}
