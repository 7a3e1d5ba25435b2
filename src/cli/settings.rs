//! `toolvane config show|schema|init` and `toolvane man`.

use std::io::{self, Write};

use clap::Subcommand;
use serde_json::Value;

use super::ask::{Access, AskError, Form};
use super::{BAD, FINE};
use crate::config::Config;

/// `toolvane config …`.
#[derive(Debug, Subcommand)]
pub enum Settings {
    /// The configuration of a running toolvane, with secrets as `*`.
    Show {
        /// Where to ask.
        #[command(flatten)]
        access: Access,
    },
    /// The JSON Schema of the configuration file.
    Schema,
    /// A configuration file to begin with, every key explained.
    Init,
}

/// The commented file that explains every key.
const STARTER: &str = include_str!("../../config/toolvane.yaml");

/// What runs.
pub(super) async fn show(access: &Access, out: &mut impl Write) -> Result<u8, AskError> {
    let answer = access.ask("GET", "/v1/config", None).await?;
    let text = match access.output {
        Form::Json => format!("{answer}\n"),
        Form::Table => answer.get("text").and_then(Value::as_str).unwrap_or_default().to_owned(),
    };
    let _ = out.write_all(text.as_bytes());
    Ok(FINE)
}

/// What may be configured.
pub(super) fn schema(out: &mut impl Write) -> u8 {
    let text = serde_json::to_string_pretty(&Config::schema()).unwrap_or_default();
    wrote(writeln!(out, "{text}"))
}

/// A file to begin with.
pub(super) fn init(out: &mut impl Write) -> u8 {
    wrote(out.write_all(STARTER.as_bytes()))
}

/// The manual page.
pub(super) fn man(command: clap::Command, out: &mut impl Write) -> u8 {
    wrote(clap_mangen::Man::new(command).render(out))
}

fn wrote(result: io::Result<()>) -> u8 {
    match result {
        Ok(()) => FINE,
        // Whoever reads has had enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => FINE,
        Err(_) => BAD,
    }
}
