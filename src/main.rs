//! The `toolvane` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(toolvane::cli::main::main())
}
