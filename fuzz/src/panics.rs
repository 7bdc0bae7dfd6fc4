//! Panics that readers expect.

use std::panic::{set_hook, take_hook};

/// Lets panics in the sources of the crate `name` unwind, whose decoder asserts what it reads: readers turn them into errors.
/// One that no reader catches ends the process all the same, as those in all other sources do at once.
pub fn unwind_in(name: &'static str) {
    let ending = take_hook();
    let source = format!("/{name}-");
    set_hook(Box::new(move |panic| {
        let expected = panic.location().is_some_and(|at| at.file().contains(&source));
        if !expected {
            ending(panic);
        }
    }));
}
