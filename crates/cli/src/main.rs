//! The `gnarl` binary.

use std::process::ExitCode;

use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    ExitCode::from(gnarl_cli::run(std::env::args_os().collect()))
}
