//! `toolvane events`: what happens, as it happens.

use std::io::Write;

use clap::Args;
use http_body_util::BodyExt;
use serde_json::Value;

use super::FINE;
use super::ask::{Access, AskError, Form, Refusal, escaped};

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
    let response = args.access.open("GET", &format!("/v1/events?{}", query.join("&")), None).await?;
    let status = response.status();
    if !status.is_success() {
        let bytes = response.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
        let problem = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        return Err(AskError::Refused(Refusal { status: status.as_u16(), problem }));
    }
    let mut body = response.into_body();
    let (mut text, mut told) = (String::new(), 0);
    while let Some(Ok(frame)) = body.frame().await {
        let Ok(data) = frame.into_data() else { continue };
        text.push_str(&String::from_utf8_lossy(&data));
        while let Some((block, rest)) = text.split_once("\n\n") {
            let data = block.lines().find_map(|line| line.strip_prefix("data: ")).map(str::to_owned);
            text = rest.to_owned();
            let Some(data) = data else { continue };
            // Whoever reads has had enough, as `head` does.
            if writeln!(out, "{}", line(&data, args.access.output)).and_then(|()| out.flush()).is_err() {
                return Ok(FINE);
            }
            told += 1;
            if args.count.is_some_and(|count| told >= count) {
                return Ok(FINE);
            }
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
