//! The `gnarl` binary: parse, run, exit code.
//!
//! Results go to stdout, one JSON object on the last line; progress and logs go to stderr. Exit
//! code 2 means the command or configuration was wrong, 1 that it failed.

mod allocator;
mod args;
mod commands;
mod help;
mod output;

use std::process::ExitCode;

fn main() -> ExitCode {
    let args = args::parse();
    output::start_logging(args.verbose);
    match commands::run(args.command) {
        Ok(result) => output::print_result(&result),
        Err(error) => {
            output::print_error(&error);
            ExitCode::from(error.exit_code())
        }
    }
}
