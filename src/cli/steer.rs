//! The commands that change something: `set`, `clear`, `recheck`, `drain`, `reload`.

use std::io::Write;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::FINE;
use super::ask::{Access, AskError, Form, escaped};

/// The answer to a reload of files that are invalid.
const UNPROCESSABLE: u16 = 422;

/// Which document is meant.
#[derive(Debug, Args)]
pub struct Place {
    /// The tool, or `*` for its whole backend.
    pub tool: String,
    /// Who is affected: session, user, project, tenant or global.
    #[arg(long, default_value = "project")]
    pub scope: String,
    /// Which of them; needed for a session and a user, otherwise by default `default`. Global has none.
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
    /// Of which backend, where there are several.
    #[arg(long)]
    pub backend: Option<String>,
    /// Of which tenant, where there are several.
    #[arg(long)]
    pub tenant: Option<String>,
}

impl Place {
    fn path(&self) -> String {
        let id = self.scope_id().unwrap_or("-");
        format!("/v1/health/{}/{}/{}", escaped(&self.scope), escaped(id), escaped(&self.tool))
    }

    fn query(&self) -> String {
        let given = [("backend", &self.backend), ("tenant", &self.tenant)];
        let pairs = given.iter().filter_map(|(name, value)| Some(format!("{name}={}", escaped(value.as_deref()?))));
        pairs.collect::<Vec<_>>().join("&")
    }

    fn scope_id(&self) -> Option<&str> {
        let is_shared = ["project", "tenant"].iter().any(|scope| self.scope.eq_ignore_ascii_case(scope));
        self.id.as_deref().or(is_shared.then_some("default"))
    }
}

/// What a tool is set to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum To {
    /// Usable.
    Ok,
    /// Usable, fails now and then.
    Degraded,
    /// Not usable.
    Down,
    /// Believed what is believed, but every call passes: an override, also without `--override`.
    Observe,
}

/// `toolvane set`.
#[derive(Debug, Args)]
pub struct Set {
    /// Which document.
    #[command(flatten)]
    pub place: Place,
    /// What it is set to.
    #[arg(value_enum)]
    pub to: To,
    /// Why; others will read it.
    #[arg(long)]
    pub reason: String,
    /// For how long, such as 30m; needed for all but `ok` without `--override`. Without `--override` it is an estimate: what
    /// proves to work sooner, in a probe and then a call, is used sooner.
    #[arg(long = "for", value_name = "DURATION")]
    pub length: Option<String>,
    /// Decide against all evidence, until the time is over or `clear --override`: calls, probes and the judge change nothing of it.
    #[arg(long = "override")]
    pub forced: bool,
    /// Where to ask.
    #[command(flatten)]
    pub access: Access,
}

/// `toolvane clear`.
#[derive(Debug, Args)]
pub struct Clear {
    /// Which document.
    #[command(flatten)]
    pub place: Place,
    /// Why; others will read it.
    #[arg(long)]
    pub reason: String,
    /// Remove cooldowns and leave the status alone.
    #[arg(long, conflicts_with = "forced")]
    pub cooldowns_only: bool,
    /// Take an override back, and leave everything else alone.
    #[arg(long = "override")]
    pub forced: bool,
    /// Where to ask.
    #[command(flatten)]
    pub access: Access,
}

/// `toolvane recheck`.
#[derive(Debug, Args)]
pub struct Recheck {
    /// The tool, which must be SAFE_PROBE and have a sample input.
    pub tool: String,
    /// Of which backend, where there are several.
    #[arg(long)]
    pub backend: Option<String>,
    /// As which user; without it as the system.
    #[arg(long)]
    pub user: Option<String>,
    /// Where to ask.
    #[command(flatten)]
    pub access: Access,
}

/// Sets a status, or an override.
pub(super) async fn set(args: &Set, out: &mut impl Write) -> Result<u8, AskError> {
    let place = &args.place;
    if args.forced || args.to == To::Observe {
        let force = match args.to {
            To::Ok => "OK",
            // An override knows nothing between the two: DEGRADED is no reason to refuse.
            To::Degraded | To::Observe => "OBSERVE",
            To::Down => "DOWN",
        };
        let body = json!({
            "tool": place.tool, "scope": place.scope.to_ascii_uppercase(), "scopeId": place.scope_id(),
            "backend": place.backend, "tenant": place.tenant, "force": force, "reason": args.reason,
            "expiresIn": args.length,
        });
        let answer = args.access.ask("POST", "/v1/override", Some(&body)).await.map_err(in_flags)?;
        return Ok(tell(&answer, args.access.output, out));
    }
    let verb = match args.to {
        To::Ok => "available",
        To::Degraded => "degraded",
        To::Down | To::Observe => "unavailable",
    };
    let body = json!({"reason": args.reason, "expiresIn": args.length});
    let path = format!("{}/{verb}?{}", place.path(), place.query());
    let answer = args.access.ask("POST", &path, Some(&body)).await.map_err(in_flags)?;
    Ok(tell(&answer, args.access.output, out))
}

/// Fields of the API that `set` fills, as its flags are called; of two ways to say an end the command has one.
const FLAGS: [(&str, &str); 4] =
    [(" or `expectedRecoveryAt`", ""), (" or `until`", ""), ("`expiresIn`", "`--for`"), ("`reason`", "`--reason`")];

/// A refusal in words of the command line.
fn in_flags(error: AskError) -> AskError {
    let AskError::Refused(mut refusal) = error else { return error };
    if let Some(Value::String(detail)) = refusal.problem.get_mut("detail") {
        *detail = FLAGS.iter().fold(std::mem::take(detail), |words, (field, flag)| words.replace(field, flag));
    }
    AskError::Refused(refusal)
}

/// Clears a document, its cooldowns, or its override.
pub(super) async fn clear(args: &Clear, out: &mut impl Write) -> Result<u8, AskError> {
    let place = &args.place;
    let answer = if args.forced {
        let mut query = format!("tool={}&scope={}&{}", escaped(&place.tool), escaped(&place.scope), place.query());
        query.extend(place.scope_id().map(|id| format!("&scopeId={}", escaped(id))));
        args.access.ask("DELETE", &format!("/v1/override?{query}"), None).await?
    } else {
        let body = json!({"reason": args.reason, "cooldownsOnly": args.cooldowns_only});
        args.access.ask("POST", &format!("{}/clear?{}", place.path(), place.query()), Some(&body)).await?
    };
    Ok(tell(&answer, args.access.output, out))
}

/// Has a tool tried once.
pub(super) async fn recheck(args: &Recheck, out: &mut impl Write) -> Result<u8, AskError> {
    let given = [("backend", &args.backend), ("user", &args.user)];
    let pairs = given.iter().filter_map(|(name, value)| Some(format!("{name}={}", escaped(value.as_deref()?))));
    let query = pairs.collect::<Vec<_>>().join("&");
    let path = format!("/v1/tools/{}/recheck?{query}", escaped(&args.tool));
    let answer = args.access.ask("POST", &path, None).await?;
    let fact = |name: &str| answer.get(name).and_then(Value::as_str);
    let works = fact("result") == Some("works");
    let text = match (args.access.output, works) {
        (Form::Json, _) => answer.to_string(),
        (Form::Table, true) => format!("{} works", args.tool),
        (Form::Table, false) => {
            format!("{} fails: {} ({})", args.tool, fact("signature").unwrap_or("-"), fact("said").unwrap_or_default())
        }
    };
    let _ = writeln!(out, "{text}");
    Ok(if works { FINE } else { super::BAD })
}

/// `drain` and `reload`: one request without a body.
pub(super) async fn order(access: &Access, what: &str, out: &mut impl Write) -> Result<u8, AskError> {
    let answer = access.ask("POST", &format!("/v1/{what}"), None).await.map_err(|error| match error {
        // What only a reload is told: the files are not as they should be.
        AskError::Refused(refusal) if refusal.status == UNPROCESSABLE => AskError::Invalid(refusal),
        other => other,
    })?;
    let text = match access.output {
        Form::Json => answer.to_string(),
        Form::Table => {
            let keys = answer.get("needsRestart").and_then(Value::as_array).into_iter().flatten();
            let keys: Vec<&str> = keys.filter_map(Value::as_str).collect();
            match keys.is_empty() {
                true => format!("{what}: done"),
                false => format!("{what}: done; changed, and in force only after a restart: {}", keys.join(", ")),
            }
        }
    };
    let _ = writeln!(out, "{text}");
    Ok(FINE)
}

fn tell(answer: &Value, form: Form, out: &mut impl Write) -> u8 {
    let text = |pointer: &str| answer.pointer(pointer).and_then(Value::as_str).unwrap_or("-");
    let line = match form {
        Form::Json => answer.to_string(),
        Form::Table => {
            let document = [text("/toolName"), text("/scope"), text("/scopeId")].join(" ");
            let forced = match answer.pointer("/override/force").and_then(Value::as_str) {
                Some(force) => format!(", override {force} until {}", text("/override/until")),
                None => String::new(),
            };
            format!("{document}: {}{forced}", text("/status"))
        }
    };
    let _ = writeln!(out, "{line}");
    FINE
}
