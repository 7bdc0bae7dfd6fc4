//! The error of a mapped file that was written to while it was read.
//!
//! Files are checked when they are opened, and what is read of them later is not checked again: numbers that changed since may
//! lead anywhere, and end in a panic. The process ends then with the name of the file, and not with a place in the code.

use std::panic::{set_hook, take_hook};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use gnarl_common::integrity;

use crate::output::print_error;

/// Looks for such a file from now on, before a panic is told.
pub fn start() {
    static SAID: AtomicBool = AtomicBool::new(false);
    let usual = take_hook();
    set_hook(Box::new(move |panic| {
        let Some(error) = integrity::written_to() else { return usual(panic) };
        // Another thread at the same file waits for the end.
        while SAID.swap(true, Ordering::Relaxed) {
            std::thread::sleep(Duration::MAX);
        }
        print_error(&error);
        std::process::exit(1);
    }));
}
