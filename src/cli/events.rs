//! `toolvane events`: what happens, as it happens.

use std::io::Write;

use clap::Args;
use serde_json::Value;

use super::FINE;
use super::ask::{Access, AskError, Form, escaped};

/// `toolvane events`.
#[derive(Debug, Args)]
pub struct Events {
    /// Kinds to hear of, with a comma between two: transition, cooldown, override, audit, …
    #[arg(long)]
    pub kind: Option<String>,
    /// Of one tool.
    #[arg(long)]
    pub tool: Option<String>,
    /// Begin with what toolvane still remembers.
    #[arg(long)]
    pub all: bool,
    /// End after so many events.
    #[arg(long, value_name = "N")]
    pub count: Option<usize>,
    /// Where to ask.
    #[command(flatten)]
    pub access: Access,
}

/// Follows the stream until it ends.
pub(super) async fn events(args: &Events, out: &mut impl Write) -> Result<u8, AskError> {
    let all = args.all.then(|| "0".to_owned());
    let given = [("kind", &args.kind), ("tool", &args.tool), ("after", &all)];
    let query: Vec<String> =
        given.iter().filter_map(|(name, value)| Some(format!("{name}={}", escaped(value.as_deref()?)))).collect();
    let mut followed = args.access.follow(&format!("/v1/events?{}", query.join("&"))).await?;
    let mut told = 0;
    while let Some(data) = followed.next().await {
        // Whoever reads has had enough, as `head` does.
        if writeln!(out, "{}", line(&data, args.access.output)).and_then(|()| out.flush()).is_err() {
            return Ok(FINE);
        }
        told += 1;
        if args.count.is_some_and(|count| told >= count) {
            return Ok(FINE);
        }
    }
    Ok(FINE)
}

fn line(data: &str, form: Form) -> String {
    let Ok(facts) = serde_json::from_str::<Value>(data) else { return data.to_owned() };
    if form == Form::Json {
        return data.to_owned();
    }
    let text = |name: &str| match facts.get(name)? {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    };
    let names = [
        "at",
        "kind",
        "backend",
        "toolName",
        "integration",
        "scope",
        "scopeId",
        "from",
        "to",
        "change",
        "who",
        "what",
        "result",
        "outcome",
    ];
    let mut words: Vec<String> = names.into_iter().filter_map(text).collect();
    words.extend(["signature", "note", "reason"].into_iter().filter_map(text));
    words.join("  ")
}
