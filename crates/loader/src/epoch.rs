//! The batches of an epoch, prepared by threads and given in order.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded, unbounded};
use gnarl_common::{Error, Kind, Result};
use gnarl_sample::HeteroScratch;

use crate::batch::Batch;
use crate::gate::Inside;
use crate::scratches::Scratches;

/// Makes the batch of a number.
type Make = dyn Fn(usize, &mut HeteroScratch) -> Result<Batch> + Send + Sync;

/// The batches of an epoch in order. Dropping it ends the threads after the batches they are making; it waits for them, unless
/// they may wait for servers.
pub struct Epoch {
    /// Numbers of batches to make; none once all are being made.
    wanted: Option<Sender<usize>>,
    made: Receiver<(usize, Result<Batch>)>,
    /// Batches that were made before those that come first.
    early: BTreeMap<usize, Result<Batch>>,
    next: usize,
    asked: usize,
    batches: usize,
    threads: Vec<JoinHandle<()>>,
    /// True if threads may wait for servers: they are not waited for in the end.
    remote: bool,
    /// Why threads could not be started, until it is told.
    failed: Option<Error>,
}

impl Epoch {
    /// `batches` by `make` on so many threads, `prefetch` of them ahead.
    pub(crate) fn start(
        batches: usize,
        (threads, prefetch): (usize, usize),
        remote: bool,
        scratches: Arc<Scratches>,
        make: impl Fn(usize, &mut HeteroScratch) -> Result<Batch> + Send + Sync + 'static,
    ) -> Self {
        let ahead = (threads + prefetch).min(batches);
        // As many as are ever asked for at once: taking from it needs no memory.
        let (wanted, to_make) = bounded(ahead.max(1));
        let (done, made) = unbounded();
        let make: Arc<Make> = Arc::new(make);
        for number in 0..ahead {
            // The receiver is here.
            _ = wanted.send(number);
        }
        let mut epoch = Self {
            wanted: Some(wanted),
            made,
            early: BTreeMap::new(),
            next: 0,
            asked: ahead,
            batches,
            threads: Vec::new(),
            remote,
            failed: None,
        };
        for _ in 0..threads.min(batches) {
            let to_make = to_make.clone();
            let done = done.clone();
            let make = make.clone();
            let scratches = scratches.clone();
            let work = move || {
                let mut scratch = scratches.take();
                for number in to_make {
                    let _inside = Inside::enter();
                    // A batch that is never sent would be waited for without end.
                    let batch = catch_unwind(AssertUnwindSafe(|| make(number, &mut scratch)));
                    if done.send((number, batch.unwrap_or_else(|_| Err(died())))).is_err() {
                        break;
                    }
                }
                scratches.give_back(scratch);
            };
            match Builder::new().name("loader".into()).spawn(work) {
                Ok(thread) => epoch.threads.push(thread),
                Err(error) if epoch.threads.is_empty() => {
                    let message = format!("cannot start a thread for batches: {error}");
                    epoch.failed = Some(Error::new(Kind::Limit, message));
                }
                // Fewer threads make the same batches.
                Err(error) => tracing::warn!("one thread fewer makes batches: {error}"),
            }
        }
        epoch
    }

    /// Number of batches that are still to come.
    pub fn left(&self) -> usize {
        self.batches - self.next
    }

    /// The next batch if it is ready within `wait`.
    ///
    /// # Errors
    /// Those of making the batch; [`Kind::Limit`] if a thread died.
    pub fn next_within(&mut self, wait: Duration) -> Option<Result<Option<Batch>>> {
        if self.left() == 0 {
            return Some(Ok(None));
        }
        if let Some(error) = self.failed.take() {
            self.next = self.batches;
            return Some(Err(error));
        }
        loop {
            if let Some(batch) = self.early.remove(&self.next) {
                self.next += 1;
                self.ask();
                return Some(batch.map(Some));
            }
            match self.made.recv_timeout(wait) {
                Ok((number, batch)) => drop(self.early.insert(number, batch)),
                Err(RecvTimeoutError::Timeout) => return None,
                Err(RecvTimeoutError::Disconnected) => {
                    self.next = self.batches;
                    return Some(Err(died()));
                }
            }
        }
    }

    /// Asks for one more batch.
    fn ask(&mut self) {
        if self.asked == self.batches {
            self.wanted = None;
        } else if let Some(wanted) = &self.wanted {
            _ = wanted.send(self.asked);
            self.asked += 1;
        }
    }
}

fn died() -> Error {
    Error::new(Kind::Limit, "a thread that makes batches died")
}

impl Iterator for Epoch {
    type Item = Result<Batch>;

    fn next(&mut self) -> Option<Result<Batch>> {
        loop {
            if let Some(found) = self.next_within(Duration::from_secs(1)) {
                return found.transpose();
            }
        }
    }
}

impl Drop for Epoch {
    fn drop(&mut self) {
        self.wanted = None;
        // Nobody takes what is made from now on.
        self.made = crossbeam_channel::never();
        for thread in self.threads.drain(..).filter(|_| !self.remote) {
            _ = thread.join();
        }
    }
}
