//! The `gnarl` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(gnarl_cli::run(std::env::args_os().collect()))
}
