//! Spare scratch memory of the parts of a process.

use std::sync::Mutex;

use crate::Scratch;

/// Scratch memory of earlier requests, as many as there were at once. All parts and edge types share them: each may have
/// a table of all nodes of a part. They stay for as long as the process lives.
static SPARE: Mutex<Vec<Scratch>> = Mutex::new(Vec::new());

/// Attempts to lock them.
const SPINS: usize = 10_000;

/// Calls `work` with scratch memory.
pub fn with_scratch<T>(work: impl FnOnce(&mut Scratch) -> T) -> T {
    let mut scratch = locked(Vec::pop).flatten().unwrap_or_default();
    let result = work(&mut scratch);
    locked(|spare| spare.push(scratch));
    result
}

/// Calls `act` with the spare memory. It is held for a moment only; where it stays locked, this process was forked off one
/// whose thread, which is missing here, held it: that is not waited for.
fn locked<T>(act: impl FnOnce(&mut Vec<Scratch>) -> T) -> Option<T> {
    let mut spare = (0..SPINS).find_map(|_| {
        let spare = SPARE.try_lock().ok();
        std::hint::spin_loop();
        spare
    })?;
    Some(act(&mut spare))
}
