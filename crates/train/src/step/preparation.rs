//! Preparation of all batches of some epochs, for those who train on them later.

use arrow_array::RecordBatch;
use gnarl_common::Result;
use gnarl_common::threads::pool;
use gnarl_sample::Scratch;
use rayon::iter::{IndexedParallelIterator, IntoParallelRefIterator, ParallelIterator};

use super::TrainStep;
use super::batch_graphs::BatchGraphs;
use super::mini_batch::MiniBatch;
use crate::data::batch::BatchSpec;
use crate::data::packed::record_batch;
use crate::encoder::Encoder;
use crate::task::Task;

/// Batches prepared together, for each thread.
const EACH: usize = 4;

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
    /// their order, those of all ranks in a step before those of the next one.
    ///
    /// # Errors
    /// If the graph cannot be read, or batches have no form in files; those of `take`.
    pub fn prepare_epochs(
        &self,
        (epochs, ranks): (usize, usize),
        threads: usize,
        take: &mut TakeBatch<'_>,
    ) -> Result<()> {
        let pool = pool(threads)?;
        for epoch in 1..=epochs {
            let of_ranks: Vec<Vec<BatchSpec>> =
                (0..ranks).map(|rank| self.epoch(epoch, rank, ranks)).collect();
            let longest = of_ranks.iter().map(Vec::len).max().unwrap_or(0);
            let in_turns: Vec<(usize, &BatchSpec)> = (0..longest)
                .flat_map(|at| {
                    let next = of_ranks.iter().enumerate();
                    next.filter_map(move |(rank, specs)| Some((rank, specs.get(at)?)))
                })
                .collect();
            for some in in_turns.chunks(EACH * threads.max(1)) {
                let made: Vec<Option<RecordBatch>> = pool.install(|| {
                    let each = some.par_iter().with_max_len(1);
                    let make = |scratch: &mut Scratch, &(_, spec): &(usize, &BatchSpec)| {
                        self.made(spec, scratch)
                    };
                    each.map_init(Scratch::new, make).collect::<Result<_>>()
                })?;
                for (&(rank, spec), batch) in some.iter().zip(made) {
                    take(Ready::Batch { rank, spec, batch })?;
                }
            }
            take(Ready::Epoch(epoch))?;
        }
        Ok(())
    }

    /// A batch as a record batch; none without examples.
    fn made(&self, spec: &BatchSpec, scratch: &mut Scratch) -> Result<Option<RecordBatch>> {
        if spec.share.is_empty() {
            return Ok(None);
        }
        let sampled = self.sample(spec, scratch)?;
        let batch = self.fetch(spec, sampled)?;
        record_batch(self.packed(batch, spec.graph)?).map(Some)
    }
}
