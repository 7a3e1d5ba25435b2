//! The `toolvane` binary.

use std::process::ExitCode;

/// Cheaper for a call than the allocator of the C library: its many small pieces of memory live as long as the call.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    ExitCode::from(toolvane::cli::main::main())
}
