//! The `gnarl` binary: parse, run, exit code.
//!
//! Results go to stdout, one JSON object on the last line; progress and logs go to stderr. Exit
//! code 2 means an invalid command or configuration, 1 a failure, 128 and more the end by a signal.

mod allocator;
mod args;
mod commands;
mod help;
mod output;
mod signals;
mod unknown;

use std::process::ExitCode;

fn main() -> ExitCode {
    let args = unknown::parse();
    output::start_logging(args.verbose);
    let result = signals::start().and_then(|()| commands::run(args.command));
    signals::wait_if_ending();
    match result {
        Ok(result) => output::print_result(&result),
        Err(error) => {
            output::print_error(&error);
            ExitCode::from(signals::exit_code(&error))
        }
    }
}
