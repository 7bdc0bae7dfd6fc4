//! Memory of threads that are not sampling.

use std::sync::Mutex;

use gnarl_sample::HeteroScratch;

/// Scratch memory that threads of later epochs use again.
#[derive(Debug)]
pub(crate) struct Scratches {
    spare: Mutex<Vec<HeteroScratch>>,
    most: usize,
}

impl Scratches {
    /// That of at most so many threads.
    pub fn new(most: usize) -> Self {
        Self { spare: Mutex::new(Vec::new()), most }
    }

    /// Some that is not in use, or new one.
    pub fn take(&self) -> HeteroScratch {
        // Not waited for: in a process that was forked off, whoever holds it may be missing.
        self.spare.try_lock().ok().and_then(|mut spare| spare.pop()).unwrap_or_default()
    }

    /// Gives scratch memory back.
    pub fn give_back(&self, scratch: HeteroScratch) {
        if let Ok(mut spare) = self.spare.try_lock()
            && spare.len() < self.most
        {
            spare.push(scratch);
        }
    }
}
