//! Preparation of all batches of some epochs, for those who train on them later.

use std::sync::{Mutex, PoisonError};
use std::thread::scope;

use arrow_array::RecordBatch;
use crossbeam_channel::bounded;
use gnarl_common::threads::pool;
use gnarl_common::{Error, Kind, Result};
use gnarl_sample::Scratch;
use rayon::iter::{IndexedParallelIterator, IntoParallelRefIterator, ParallelIterator};

use super::TrainStep;
use super::batch_graphs::BatchGraphs;
use super::mini_batch::MiniBatch;
use crate::data::batch::BatchSpec;
use crate::data::packed::record_batch;
use crate::encoder::Encoder;
use crate::faults;
use crate::task::Task;

/// A step of the preparation of epochs.
pub(crate) enum Ready<'a> {
    /// The next batch of a rank, none if the rank has no examples in it.
    Batch { rank: usize, spec: &'a BatchSpec, batch: Option<RecordBatch> },
    /// An epoch is complete.
    Epoch(usize),
}

/// Takes what is ready.
pub(crate) type TakeBatch<'a> = dyn FnMut(Ready<'_>) -> Result<()> + Send + 'a;

impl<T: Task, E: Encoder, G: BatchGraphs<E>> MiniBatch<'_, T, E, G> {
    /// Prepares the batches of some epochs for so many ranks, by some threads, and hands them to `take`: those of a rank in
    /// their order, those of all ranks in a step before those of the next one. Two batches a thread are in memory, and one
    /// that is taken.
    ///
    /// # Errors
    /// If the graph cannot be read, or batches have no form in files; those of `take`.
    pub fn prepare_epochs(
        &self,
        (epochs, ranks): (usize, usize),
        threads: usize,
        take: &mut TakeBatch<'_>,
    ) -> Result<()> {
        let threads = threads.max(1);
        let pool = pool(threads)?;
        let scratches = Mutex::new(Vec::new());
        for epoch in 1..=epochs {
            let of_ranks: Vec<Vec<BatchSpec>> =
                (0..ranks).map(|rank| self.epoch(epoch, rank, ranks)).collect();
            let in_turns = in_turns(&of_ranks);
            scope(|scope| {
                let (sender, made) = bounded(threads);
                let take = &mut *take;
                let taker = scope.spawn(move || {
                    made.into_iter().try_for_each(|(rank, spec, batch)| {
                        take(Ready::Batch { rank, spec, batch })
                    })
                });
                for some in in_turns.chunks(threads) {
                    let batches: Vec<Option<RecordBatch>> = pool.install(|| {
                        let each = some.par_iter().with_max_len(1);
                        each.map(|&(_, spec)| self.made(spec, &scratches)).collect::<Result<_>>()
                    })?;
                    for (&(rank, spec), batch) in some.iter().zip(batches) {
                        if sender.send((rank, spec, batch)).is_err() {
                            break;
                        }
                    }
                    if taker.is_finished() {
                        break;
                    }
                }
                drop(sender);
                let died = |_| Err(Error::new(Kind::Limit, "the thread that writes batches died"));
                taker.join().unwrap_or_else(died)
            })?;
            take(Ready::Epoch(epoch))?;
        }
        Ok(())
    }

    /// A batch as a record batch; none without examples.
    fn made(
        &self,
        spec: &BatchSpec,
        scratches: &Mutex<Vec<Scratch>>,
    ) -> Result<Option<RecordBatch>> {
        if spec.share.is_empty() {
            return Ok(None);
        }
        faults::reached("sample");
        let free = || scratches.lock().unwrap_or_else(PoisonError::into_inner);
        let mut scratch = free().pop().unwrap_or_else(Scratch::new);
        let sampled = self.sample(spec, &mut scratch);
        free().push(scratch);
        let batch = self.fetch(spec, sampled?)?;
        record_batch(self.packed(batch, spec.graph)?).map(Some)
    }
}

/// The batches of all ranks, those of a step side by side.
fn in_turns(of_ranks: &[Vec<BatchSpec>]) -> Vec<(usize, &BatchSpec)> {
    let longest = of_ranks.iter().map(Vec::len).max().unwrap_or(0);
    let at = |at: usize| {
        let next = of_ranks.iter().enumerate();
        next.filter_map(move |(rank, specs)| Some((rank, specs.get(at)?)))
    };
    (0..longest).flat_map(at).collect()
}
