//! Spare scratch memory of the parts of a process.

use std::sync::{Mutex, PoisonError};

use crate::Scratch;

/// Scratch memory of earlier requests, as many as there were at once. All parts and edge types share them: each may have
/// a table of all nodes of a part. They stay for as long as the process lives.
static SPARE: Mutex<Vec<Scratch>> = Mutex::new(Vec::new());

/// Calls `work` with scratch memory.
pub fn with_scratch<T>(work: impl FnOnce(&mut Scratch) -> T) -> T {
    let lock = || SPARE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut scratch = lock().pop().unwrap_or_default();
    let result = work(&mut scratch);
    lock().push(scratch);
    result
}
