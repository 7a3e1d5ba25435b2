//! From arguments to an exit code: which command, with which streams.

use std::io::{self, IsTerminal, Write};

use clap::{CommandFactory, FromArgMatches};

use super::args::{Arguments, Classify, Command, Form, Run};
use super::check::{self, How, Output};
use super::rules::{Layered, Streams, refuse};
use super::settings::Settings;
use super::{
    BAD, FINE, USAGE, ask, classify, events, explain, healthcheck, integrations, replay, run, settings, status, steer,
    test, top,
};
use crate::clock::{Clock, SystemClock};
use crate::yaml::Style;

/// Runs the command that the process was started with; gives its exit code.
pub fn main() -> u8 {
    let arguments = match parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() { USAGE } else { FINE };
        }
    };
    let words = &mut io::stderr();
    match arguments.command {
        Command::Run(args) => run::run(&args, words, style()),
        Command::Check(args) => {
            let json = args.json || args.output == Form::Json;
            let output = if json { Output::Json } else { Output::Text(style()) };
            let checked = check::check(&args.files, How { output, strict: args.strict });
            let _ = io::stdout().write_all(checked.stdout.as_bytes());
            let _ = words.write_all(checked.stderr.as_bytes());
            checked.code
        }
        Command::Test(args) => test::test(&args, &mut streams()),
        Command::Explain(args) => explain::explain(&args, SystemClock.now(), &mut streams()),
        Command::Replay(args) => replay::replay(&args, SystemClock.now(), &mut streams()),
        Command::Classify(args) => classify(&args, words),
        Command::Healthcheck(args) => healthcheck::healthcheck(&args.admin, words),
        Command::Integrations(args) => ask::run(words, integrations::integrations(&args, &mut io::stdout())),
        Command::Manifest(args) => ask::run(words, integrations::manifest(&args, &mut io::stdout())),
        Command::Status(args) => ask::run(words, status::status(&args, &mut io::stdout())),
        Command::Top(args) => top::top(&args, !super::args::no_color(), words),
        Command::Events(args) => ask::run(words, events::events(&args, &mut io::stdout())),
        Command::Set(args) => ask::run(words, steer::set(&args, &mut io::stdout())),
        Command::Clear(args) => ask::run(words, steer::clear(&args, &mut io::stdout())),
        Command::Recheck(args) => ask::run(words, steer::recheck(&args, &mut io::stdout())),
        Command::Drain(access) => ask::run(words, steer::order(&access, "drain", &mut io::stdout())),
        Command::Reload(access) => ask::run(words, steer::order(&access, "reload", &mut io::stdout())),
        Command::Config { what: Settings::Show { access } } => {
            ask::run(words, settings::show(&access, &mut io::stdout()))
        }
        Command::Config { what: Settings::Schema } => settings::schema(&mut io::stdout()),
        Command::Config { what: Settings::Init } => settings::init(&mut io::stdout()),
        Command::Man => settings::man(Arguments::command(), &mut io::stdout()),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "toolvane", &mut script);
            // Whoever reads may have had enough, as `head` does.
            let _ = io::stdout().write_all(&script);
            FINE
        }
    }
}

fn parse() -> Result<Arguments, clap::Error> {
    let mut command = Arguments::command();
    let given = command.try_get_matches_from_mut(std::env::args_os())?;
    if let Some(("run", given)) = given.subcommand() {
        Run::check(given, &mut command)?;
    }
    Arguments::from_arg_matches(&given)
}

fn classify(args: &Classify, words: &mut impl Write) -> u8 {
    let table = match Layered::load(&args.rules) {
        Ok(layered) => layered.table,
        Err(report) => return refuse(&report, words, style()),
    };
    let output = io::BufWriter::new(io::stdout().lock());
    match classify::classify(io::stdin().lock(), output, &mut *words, &table, SystemClock.now()) {
        Ok(summary) if summary.bad == 0 => FINE,
        Ok(_) => BAD,
        // Whoever reads has had enough, as `head` does.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => FINE,
        Err(error) => {
            let _ = writeln!(words, "error: {error}");
            BAD
        }
    }
}

fn streams() -> Streams<io::Stdout, io::Stderr> {
    Streams { data: io::stdout(), words: io::stderr(), style: style() }
}

fn style() -> Style {
    if io::stderr().is_terminal() && !super::args::no_color() { Style::Coloured } else { Style::Plain }
}
