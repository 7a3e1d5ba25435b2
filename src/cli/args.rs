//! What may stand on the command line.

use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;

use super::ask::Access;
use super::events::Events;
use super::settings::Settings;
use super::status::Status;
use super::steer::{Clear, Recheck, Set};
use super::top::Top;

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
    #[command(
        after_help = "Exit codes: 0 all files are fine, 1 there are warnings and --strict, 2 usage, 78 at least one is invalid."
    )]
    Check(Check),
    /// Run the tests of rules and of files of cases; tell which rules no test hits and which can never decide.
    #[command(after_help = "Exit codes: 0 all tests hold, 1 at least one does not, 2 usage, 78 a file is invalid.")]
    Test(Test),
    /// Tell which rule decides an outcome, why no earlier one does, and what follows from it.
    #[command(
        after_help = "Exit codes: 0 explained, 1 the case cannot be read or the rule is not known, 2 usage, 78 a rule file is invalid."
    )]
    Explain(Explain),
    /// Judge recorded outcomes again and tell what these rules would change.
    #[command(
        after_help = "Exit codes: 0 replayed, 1 at least one line cannot be read, 2 usage, 78 a rule file is invalid."
    )]
    Replay(Replay),
    /// Judge recorded outcomes: one JSON case a line on standard input, one JSON decision a line on standard output.
    Classify(Classify),
    /// Ask a running toolvane whether it is ready; for container health checks.
    #[command(after_help = "Exit codes: 0 ready, 1 not ready, 69 nobody answers.")]
    Healthcheck(Healthcheck),
    /// What backs tools, whether it is set up, and which tools it unlocks.
    #[command(after_help = "Exit codes: 0 fine, 1 refused, 69 nobody answers.")]
    Integrations(Integrations),
    /// What a caller sees in the tool list, and why not the rest.
    #[command(after_help = "Exit codes: 0 fine, 1 refused, 69 nobody answers.")]
    Manifest(Manifest),
    /// Show every tool of a running toolvane and how it stands.
    #[command(after_help = "Exit codes: 0 fine, 1 refused, or as bad as `--fail-on` says, 69 nobody answers.")]
    Status(Status),
    /// Show every tool of a running toolvane in the terminal, live.
    #[command(
        after_help = "Keys: arrows select, Enter shows details, / finds, s sorts, r reverses, q quits. NO_COLOR is heeded.\nExit codes: 0 fine, 1 refused, 2 no terminal, 69 nobody answers."
    )]
    Top(Top),
    /// Follow what happens: status changes, overrides, writes, reloads.
    Events(Events),
    /// Set the status of a tool, or override it.
    Set(Set),
    /// Clear the status, the cooldowns or the override of a tool.
    Clear(Clear),
    /// Have a SAFE_PROBE tool tried once; if it works, its next call passes.
    #[command(after_help = "Exit codes: 0 it works, 1 it fails or cannot be tried, 69 nobody answers.")]
    Recheck(Recheck),
    /// Announce the end of a running toolvane: not ready any more, health frozen, served on until SIGTERM.
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
    #[arg(short, long, env = "TOOLVANE_CONFIG", value_hint = ValueHint::FilePath)]
    pub config: Option<PathBuf>,
    /// Where dispatchers connect (default 127.0.0.1:8080). Port 0 takes a free one.
    #[arg(long, env = "TOOLVANE_LISTEN", value_name = "ADDRESS")]
    pub listen: Option<String>,
    /// Where the admin API and metrics answer (default 127.0.0.1:9090).
    #[arg(long, env = "TOOLVANE_ADMIN", value_name = "ADDRESS")]
    pub admin: Option<String>,
    /// The backend, as a URL with the path of its MCP endpoint.
    #[arg(long, env = "TOOLVANE_BACKEND", value_name = "URL")]
    pub backend: Option<String>,
}

impl Run {
    /// Refuses what a configuration file says better beside one. What the environment says is meant for other commands too:
    /// beside a file it does not count.
    ///
    /// # Errors
    /// Names the argument.
    pub(super) fn check(given: &ArgMatches, command: &mut clap::Command) -> Result<(), clap::Error> {
        if given.get_one::<PathBuf>("config").is_none() {
            return Ok(());
        }
        let typed = |name: &&str| given.value_source(name) == Some(ValueSource::CommandLine);
        match ["listen", "admin", "backend"].into_iter().find(typed) {
            None => Ok(()),
            Some(name) => Err(command.error(
                ErrorKind::ArgumentConflict,
                format!("`--{name}` cannot be used with a configuration file (`--config` or TOOLVANE_CONFIG), which says it itself"),
            )),
        }
    }
}

/// `toolvane check`.
#[derive(Debug, Args)]
pub struct Check {
    /// Configuration files; rule files that they name are checked too. Rule files given by themselves are laid over the
    /// bundled table in this order, as `test` does; files of cases may stand among them.
    #[arg(required = true, value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    /// The form of the answer.
    #[arg(short, long, default_value = "table", value_name = "FORM")]
    pub output: Form,
    /// The same as `-o json`.
    #[arg(long, hide = true)]
    pub json: bool,
    /// Exit with 1 if there are warnings.
    #[arg(long)]
    pub strict: bool,
}

/// The form of test results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum TestForm {
    /// A line for each test that fails.
    #[default]
    Table,
    /// One JSON object.
    Json,
    /// JUnit XML, for build servers.
    Junit,
}

/// `toolvane test`.
#[derive(Debug, Args)]
pub struct Test {
    /// Rule files, laid over the bundled table in this order, and files of cases (their root has `cases`). Without any the
    /// bundled table is tested.
    #[arg(value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    /// The form of the answer.
    #[arg(short, long, value_enum, default_value_t, value_name = "FORM")]
    pub output: TestForm,
}

/// `toolvane explain`.
#[derive(Debug, Args)]
pub struct Explain {
    /// A rule file laid over the bundled table; several apply in order.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub rules: Vec<PathBuf>,
    /// A file with one case or one line of a recording; `-` is standard input.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["log", "outcome"])]
    pub case: Option<PathBuf>,
    /// A line of toolvane's log that names a rule; `-` reads it from standard input.
    #[arg(long, value_name = "LINE", conflicts_with = "outcome")]
    pub log: Option<String>,
    /// The outcome.
    #[command(flatten)]
    pub outcome: OutcomeFlags,
    /// The form of the answer.
    #[arg(short, long, default_value = "table", value_name = "FORM")]
    pub output: Form,
}

/// An outcome in flags.
#[derive(Debug, Default, Args)]
#[group(id = "outcome", multiple = true)]
pub struct OutcomeFlags {
    /// HTTP status of the answer.
    #[arg(long, value_name = "STATUS", value_parser = clap::value_parser!(u16).range(100..=999))]
    pub status: Option<u16>,
    /// A header field of the answer, as `name: value`; may be repeated.
    #[arg(long, value_name = "FIELD")]
    pub header: Vec<String>,
    /// Body of the answer, or the text of an MCP error.
    #[arg(long, value_name = "TEXT")]
    pub body: Option<String>,
    /// The answer is an MCP result with isError.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    pub mcp_error: Option<bool>,
    /// The answer is a JSON-RPC error with this code.
    #[arg(long, value_name = "CODE", allow_negative_numbers = true)]
    pub rpc_code: Option<i64>,
    /// No answer came: connect-refused, dns, tls, reset, timeout, body-truncated, stream-ended, child-exited, protocol.
    #[arg(long, value_name = "KIND")]
    pub exception: Option<String>,
    /// Name of the tool.
    #[arg(long, value_name = "NAME")]
    pub tool: Option<String>,
    /// Name of the backend.
    #[arg(long, value_name = "NAME")]
    pub backend: Option<String>,
    /// What the backend speaks, where that does not follow from the rest.
    #[arg(long, value_name = "KIND", value_parser = ["mcp", "http"])]
    pub kind: Option<String>,
    /// A host that the arguments name; may be repeated.
    #[arg(long, value_name = "HOST")]
    pub target: Vec<String>,
    /// The call carried a credential.
    #[arg(long)]
    pub credential: bool,
    /// The tool is one of `session_tools`.
    #[arg(long)]
    pub session_tool: bool,
    /// The tool stands in the backend's list.
    #[arg(long)]
    pub listed: bool,
}

/// `toolvane replay`.
#[derive(Debug, Args)]
pub struct Replay {
    /// A recording (`record` in the configuration), or cases as `classify` reads them; `-` is standard input.
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// A rule file laid over the bundled table; several apply in order.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub rules: Vec<PathBuf>,
    /// The form of the answer.
    #[arg(short, long, default_value = "table", value_name = "FORM")]
    pub output: Form,
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

/// How an answer looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// JSON, as the admin API gives it.
    Json,
    /// For people.
    Table,
}

/// `toolvane integrations`.
#[derive(Debug, Args)]
pub struct Integrations {
    /// Where to ask.
    #[command(flatten)]
    pub access: Access,
}

/// `toolvane manifest`.
#[derive(Debug, Args)]
pub struct Manifest {
    /// Where to ask.
    #[command(flatten)]
    pub access: Access,
    /// Tools of this backend alone.
    #[arg(long)]
    pub backend: Option<String>,
    /// The caller's session.
    #[arg(long)]
    pub session: Option<String>,
    /// The caller.
    #[arg(long)]
    pub user: Option<String>,
    /// The caller's project.
    #[arg(long)]
    pub project: Option<String>,
    /// The caller's tenant.
    #[arg(long)]
    pub tenant: Option<String>,
    /// The caller's roles, a comma between two.
    #[arg(long)]
    pub roles: Option<String>,
    /// The caller's profile.
    #[arg(long)]
    pub profile: Option<String>,
}

/// Whether the user asked for no colours (`NO_COLOR`, any value but the empty one).
pub fn no_color() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}
