//! The error of a mapped file that was written to while it was read.
//!
//! Files are checked when they are opened, and what is read of them later is not checked again: numbers that changed since may
//! lead anywhere, and end in a panic. The command ends then with the name of the file, and not with a place in the code.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind, set_hook, take_hook};
use std::sync::atomic::{AtomicBool, Ordering};

use gnarl_common::staging::interrupt;
use gnarl_common::{Result, integrity};
use signal_hook::consts::SIGTERM;

use crate::output::print_error;

/// True once the error is printed.
static TOLD: AtomicBool = AtomicBool::new(false);

/// Looks for such a file from now on, before a panic is told. A thread that panics ends by itself, so that others learn of it
/// and what it began is undone; commands that wait for requests are told to end.
pub fn start() {
    let usual = take_hook();
    set_hook(Box::new(move |panic| {
        let Some(error) = integrity::written_to() else { return usual(panic) };
        if !TOLD.swap(true, Ordering::SeqCst) {
            print_error(&error);
        }
        interrupt::request(SIGTERM);
    }));
}

/// The result of `command`; none if the error is printed already.
pub fn told<T>(command: impl FnOnce() -> Result<T>) -> Option<Result<T>> {
    let result = catch_unwind(AssertUnwindSafe(command));
    if TOLD.load(Ordering::SeqCst) {
        return None;
    }
    Some(result.unwrap_or_else(|panic| resume_unwind(panic)))
}
