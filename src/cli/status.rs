//! `toolvane status`: every tool and how it stands.

use std::io::Write;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::ask::{Access, AskError, Form, escaped};
use super::table::table;
use super::{BAD, FINE};

/// `toolvane status`.
#[derive(Debug, Args)]
pub struct Status {
    /// One tool; without it all that are known.
    pub tool: Option<String>,
    /// Of one backend.
    #[arg(long)]
    pub backend: Option<String>,
    /// As one user sees them.
    #[arg(long)]
    pub user: Option<String>,
    /// Exit with 1 if any of them is that bad.
    #[arg(long, value_enum, value_name = "STATUS")]
    pub fail_on: Option<FailOn>,
    /// Where to ask.
    #[command(flatten)]
    pub access: Access,
}

/// How bad is bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// DEGRADED or DOWN.
    Degraded,
    /// DOWN.
    Down,
}

/// Asks, and writes the answer.
pub(super) async fn status(args: &Status, out: &mut impl Write) -> Result<u8, AskError> {
    let mut tools = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let named = [("backend", &args.backend), ("user", &args.user), ("tool", &args.tool), ("after", &after)];
        let given = named.iter().filter_map(|(name, value)| Some(format!("{name}={}", escaped(value.as_deref()?))));
        let query: Vec<String> = given.collect();
        let part = args.access.ask("GET", &format!("/v1/tools?{}", query.join("&")), None).await?;
        tools.extend(part.get("tools").and_then(Value::as_array).cloned().unwrap_or_default());
        match part.get("next").and_then(Value::as_str) {
            Some(next) => after = Some(next.to_owned()),
            None => break,
        }
    }
    if let (Some(tool), true) = (&args.tool, tools.is_empty()) {
        return Err(AskError::Unknown(tool.clone()));
    }
    let is = |tool: &Value, status: &str| tool.get("status").and_then(Value::as_str) == Some(status);
    let bad = |tool: &Value| match args.fail_on {
        Some(FailOn::Degraded) => is(tool, "DEGRADED") || is(tool, "DOWN"),
        Some(FailOn::Down) => is(tool, "DOWN"),
        None => false,
    };
    let code = if tools.iter().any(bad) { BAD } else { FINE };
    let text = match args.access.output {
        Form::Json => format!("{}\n", json!({"tools": tools})),
        Form::Table => shown(&tools),
    };
    let _ = out.write_all(text.as_bytes());
    Ok(code)
}

fn shown(tools: &[Value]) -> String {
    let titles = ["BACKEND", "TOOL", "STATUS", "SINCE", "BACK AT", "SIGNATURE", "NOTE"];
    let row = |tool: &Value| {
        let fact = |name: &str| tool.get(name);
        let text = |name: &str| fact(name).and_then(Value::as_str).unwrap_or("-").to_owned();
        let retesting = fact("retesting").and_then(Value::as_bool).unwrap_or(false);
        let status = match (text("status"), retesting, fact("override").is_some_and(Value::is_object)) {
            (status, _, true) => format!("{status} (override)"),
            (_, true, false) => "RETESTING".to_owned(),
            (status, false, false) => status,
        };
        let [since, back, signature, note] = ["since", "expectedRecoveryAt", "signature", "note"].map(text);
        let note = match against(tool) {
            Some(against) if note == "-" => against,
            Some(against) => format!("{against}; {note}"),
            None => note,
        };
        [text("backend"), text("tool"), status, since, back, signature, note]
    };
    let rows: Vec<_> = tools.iter().map(row).collect();
    table(titles, &rows)
}

/// What stands against a tool besides its health, and whether callers are shown it.
fn against(tool: &Value) -> Option<String> {
    let reason = tool.get("status_reason")?.as_str()?.replace('_', " ");
    let listed = tool.get("listed").and_then(Value::as_bool).unwrap_or(true);
    Some(if listed { reason } else { format!("hidden: {reason}") })
}
