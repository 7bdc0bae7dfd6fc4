//! The `gnarl` command line: parse, run, exit code.
//!
//! In: the words of a command. Out: its exit code; results go to stdout, one JSON object on the last line, progress and logs
//! to stderr. Exit code 2 means an invalid command or configuration, 1 a failure, 128 and more the end by a signal. The
//! binary and the Python package call [`run`], once in a process: it logs, handles signals and allocates for all of it.
//!
//! ```
//! assert_eq!(gnarl_cli::run(["gnarl", "train", "missing.toml"].map(Into::into).to_vec()), 1);
//! ```

mod allocator;
mod args;
mod commands;
mod help;
mod output;
mod panicked;
#[cfg(unix)]
mod shortened;
mod signals;
mod unknown;

use std::ffi::OsString;

/// The exit code of a failure.
const FAILED: u8 = 1;

/// Runs the command of `words`, the first of which is the program's name; returns the exit code. A command that cannot be
/// parsed, or asks for help, ends the process.
pub fn run(words: Vec<OsString>) -> u8 {
    let args = unknown::parse(&words);
    output::start_logging(args.verbose);
    panicked::start();
    let command = || signals::start().and_then(|()| commands::run(args.command, &words));
    let result = panicked::told(command);
    signals::wait_if_ending();
    match result {
        Some(Ok(result)) => output::print_result(&result),
        Some(Err(error)) => {
            output::print_error(&error);
            signals::exit_code(&error)
        }
        None => FAILED,
    }
}
