//! Writes a state file in which tools have a past: for the screenshots and for the browser tests, which cannot wait a day.
//!
//! `cargo run --example past -- STATE TOOL…` gives each tool a day of spells, the same for the same name; `--many N` makes up N
//! tools. Start toolvane on that file afterwards, with the backend `demo`.
#![expect(clippy::print_stderr, reason = "a program for tests says on stderr what it did")]

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use clap::Parser;
use serde_json::{Value, json};
use toolvane::clock::{Clock, SystemClock, Wall};
use toolvane::health::Document;
use toolvane::store::{InstallKey, Settings, Store};

const MINUTE: i64 = 60_000;
const DAY: i64 = 24 * 60 * MINUTE;

#[derive(Debug, Parser)]
#[command(about = "Writes a state file in which tools have a past")]
struct Args {
    /// The file; made if it is not there.
    state: PathBuf,
    /// Tools by name.
    tools: Vec<String>,
    /// So many further ones, `tool_000` and on.
    #[arg(long, default_value_t = 0)]
    many: usize,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let settings = Settings::new(&args.state, Arc::clone(&clock), Arc::new(|_| ()), InstallKey([7; 32]));
    let (store, _) = Store::open(settings).context("cannot open the state file")?;
    let made_up = (0..args.many).map(|number| format!("tool_{number:03}"));
    let documents: Vec<Document> = args
        .tools
        .into_iter()
        .chain(made_up)
        .map(|tool| past(&tool, clock.now().wall))
        .collect::<Result<_, _>>()
        .context("a document cannot be made")?;
    let count = documents.len();
    store.commit(documents).await.context("cannot write the state file")?;
    eprintln!("{count} tools have a past");
    Ok(())
}

/// The document of a tool after a day in which it was OK between up to six spells.
fn past(tool: &str, now: Wall) -> serde_json::Result<Document> {
    let mut dice = fastrand::Rng::with_seed(
        tool.bytes().fold(7, |seed: u64, byte| seed.wrapping_mul(31).wrapping_add(byte.into())),
    );
    let mut at = now.0 - DAY + dice.i64(0..300) * MINUTE;
    let mut history = Vec::new();
    for _ in 0..dice.u8(0..7) {
        let down = dice.u8(0..3) < 2;
        let length = if down { dice.i64(6..70) } else { dice.i64(10..150) } * MINUTE;
        if at + length > now.0 - 20 * MINUTE {
            break;
        }
        history.push(if down {
            entry(at, "DOWN", "TECHNICALLY_BROKEN", ("judge", "5 seconds with failures, 20 of 20 calls failed"))
        } else {
            entry(at, "DEGRADED", "INTERMITTENT", ("judge", "31 % of 60 calls failed within a minute"))
        });
        history.push(entry(at + length, "OK", "WORKING", ("success", "the tool works again")));
        at += length + dice.i64(30..300) * MINUTE;
    }
    let since = history
        .last()
        .and_then(|entry| entry.get("at")?.as_str())
        .and_then(|at| at.parse().ok())
        .unwrap_or(Wall(now.0 - 3 * DAY));
    serde_json::from_value(json!({
        "tenantId": "default", "scope": "PROJECT", "scopeId": "default", "backend": "demo", "toolName": tool,
        "status": "OK", "since": since, "lastCheckedAt": now, "expectedRecoveryAt": null, "nextTrialAt": null,
        "lastDiagnosis": null, "history": history, "cooldowns": [], "asOf": since, "origin": "success",
        "signature": null, "epoch": 1, "version": 1, "level": 1, "flap": {"penalty": 0.0, "at": null},
        "credential": null, "createdAt": Wall(now.0 - 3 * DAY), "updatedAt": now,
    }))
}

fn entry(at: i64, status: &str, classification: &str, (by, note): (&str, &str)) -> Value {
    json!({"classification": classification, "status": status, "note": note, "by": by, "at": Wall(at), "recoveryAt": null})
}
