//! A gate that threads pass for each batch, and that is closed while the process forks.
//!
//! A child has none of its parent's threads. Memory that one of them had locked at the fork, such as that of the allocator,
//! would stay locked in the child: so they stand still outside of batches until it is over.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The process that closed the gate; 0 while it is open.
static CLOSED: AtomicU32 = AtomicU32::new(0);
static INSIDE: AtomicUsize = AtomicUsize::new(0);

/// Time between two looks at the gate.
const LOOK: Duration = Duration::from_micros(50);
/// Longest wait for threads that are making batches: those of servers may take longer.
const LONGEST: Duration = Duration::from_secs(5);

/// A pass through the gate; dropping it leaves.
pub(crate) struct Inside;

impl Inside {
    /// Waits until the gate is open, and passes.
    pub fn enter() -> Self {
        loop {
            INSIDE.fetch_add(1, Ordering::SeqCst);
            if CLOSED.load(Ordering::SeqCst) == 0 {
                return Self;
            }
            INSIDE.fetch_sub(1, Ordering::SeqCst);
            sleep(LOOK);
        }
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Closes the gate before a fork, and waits until all threads are outside, at most five seconds.
pub fn before_fork() {
    CLOSED.store(std::process::id(), Ordering::SeqCst);
    let start = Instant::now();
    while INSIDE.load(Ordering::SeqCst) > 0 && start.elapsed() < LONGEST {
        sleep(LOOK);
    }
}

/// Opens the gate after a fork, in the parent and in the child, which begins without threads.
pub fn after_fork() {
    if CLOSED.load(Ordering::SeqCst) != std::process::id() {
        INSIDE.store(0, Ordering::SeqCst);
    }
    CLOSED.store(0, Ordering::SeqCst);
}
