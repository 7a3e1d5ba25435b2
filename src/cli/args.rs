//! What may stand on the command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueHint};
use clap_complete::Shell;

use super::ask::Access;
use super::events::Events;
use super::settings::Settings;
use super::status::Status;
use super::steer::{Clear, Recheck, Set};

/// A sidecar reverse proxy that knows which tools of an LLM agent are usable, for whom, and until when.
#[derive(Debug, Parser)]
#[command(name = "toolvane", version, about, propagate_version = true, arg_required_else_help = true)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the proxy, from a file or from three flags.
    Run(Run),
    /// Check configuration and rule files, and report every mistake at once.
    #[command(after_help = "Exit codes: 0 all files are fine, 2 usage, 78 at least one is not.")]
    Check(Check),
    /// Judge recorded outcomes: one JSON case a line on standard input, one JSON decision a line on standard output.
    Classify(Classify),
    /// Ask a running toolvane whether it is ready; for container health checks.
    #[command(after_help = "Exit codes: 0 ready, 1 not ready, 69 nobody answers.")]
    Healthcheck(Healthcheck),
    /// Show every tool of a running toolvane and how it stands.
    #[command(after_help = "Exit codes: 0 fine, 1 refused, or as bad as `--fail-on` says, 69 nobody answers.")]
    Status(Status),
    /// Follow what happens: status changes, overrides, writes, reloads.
    Events(Events),
    /// Set the status of a tool, or override it.
    Set(Set),
    /// Clear the status, the cooldowns or the override of a tool.
    Clear(Clear),
    /// Have a SAFE_PROBE tool tried once; if it works, its next call passes.
    #[command(after_help = "Exit codes: 0 it works, 1 it fails or cannot be tried, 69 nobody answers.")]
    Recheck(Recheck),
    /// Make a running toolvane leave as SIGTERM does.
    Drain(Access),
    /// Make a running toolvane read its configuration and rules anew.
    Reload(Access),
    /// Show the configuration of a running toolvane, its schema, or a file to begin with.
    Config {
        /// Which of them.
        #[command(subcommand)]
        what: Settings,
    },
    /// Print the manual page.
    Man,
    /// Print a completion script for a shell.
    Completions {
        /// The shell.
        shell: Shell,
    },
}

/// `toolvane run`.
#[derive(Debug, Args)]
pub struct Run {
    /// The configuration file.
    #[arg(short, long, env = "TOOLVANE_CONFIG", value_hint = ValueHint::FilePath, conflicts_with_all = ["listen", "admin", "backend"])]
    pub config: Option<PathBuf>,
    /// Where dispatchers connect (default 127.0.0.1:8080). Port 0 takes a free one.
    #[arg(long, env = "TOOLVANE_LISTEN", value_name = "ADDRESS")]
    pub listen: Option<String>,
    /// Where the admin API and metrics answer (default 127.0.0.1:9090).
    #[arg(long, env = "TOOLVANE_ADMIN", value_name = "ADDRESS")]
    pub admin: Option<String>,
    /// The backend, as a URL with the path of its MCP endpoint.
    #[arg(long, env = "TOOLVANE_BACKEND", value_name = "URL", required_unless_present = "config")]
    pub backend: Option<String>,
}

/// `toolvane check`.
#[derive(Debug, Args)]
pub struct Check {
    /// Configuration files; rule files that they name are checked too.
    #[arg(required = true, value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    /// Answer with one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// `toolvane classify`.
#[derive(Debug, Args)]
pub struct Classify {
    /// A rule file laid over the bundled table; several apply in order.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub rules: Vec<PathBuf>,
}

/// `toolvane healthcheck`.
#[derive(Debug, Args)]
pub struct Healthcheck {
    /// The admin listener.
    #[arg(long, env = "TOOLVANE_ADMIN", default_value = "127.0.0.1:9090", value_name = "ADDRESS")]
    pub admin: String,
}

/// Whether the user asked for no colours (`NO_COLOR`, any value but the empty one).
pub fn no_color() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}
