//! The trait of samplers.

use gnarl_common::rng::Key;
use gnarl_common::{Error, Result};
use gnarl_graph::blocks::MiniBatch;

use crate::Scratch;

/// Samples mini-batches of one graph.
///
/// A batch is a pure function of the graph, the seeds and the key: never of the thread, of the
/// scratch memory's history, or of what was sampled before.
pub trait Sampler: Send + Sync {
    /// The name used in configurations.
    fn name(&self) -> &'static str;

    /// The seeds of every batch of an epoch. Neighbor samplers shuffle the training nodes and split
    /// them into batches of `batch_size`, the last one smaller; subgraph samplers document their
    /// own units.
    fn epoch(&self, train: &[u32], batch_size: usize, key: Key) -> Vec<Vec<u32>> {
        shuffled_batches(train, batch_size, key)
    }

    /// The batch for `seeds`: local ids of core nodes for neighbor samplers. `key` stands for the
    /// run's seed and the epoch.
    ///
    /// # Errors
    /// If a seed is not a core node, a list is not inside the graph, or a block would exceed 32-bit
    /// offsets.
    fn sample(&self, seeds: &[u32], key: Key, scratch: &mut Scratch) -> Result<MiniBatch>;

    /// The batch for `seeds`, each as of its own of `times`. Seeds that agree in both share a row.
    ///
    /// # Errors
    /// As [`Sampler::sample`], and unless this is a [`TemporalSampler`](crate::TemporalSampler).
    fn sample_as_of(
        &self,
        _seeds: &[u32],
        _times: &[i64],
        _key: Key,
        _scratch: &mut Scratch,
    ) -> Result<MiniBatch> {
        Err(Error::usage(format!("sampler '{}' reads no times", self.name()))
            .hint("sample with a temporal sampler"))
    }
}

/// The nodes in an order chosen by `key`, split into batches of `batch_size`.
pub fn shuffled_batches(train: &[u32], batch_size: usize, key: Key) -> Vec<Vec<u32>> {
    let mut order = train.to_vec();
    key.shuffle(&mut order);
    order.chunks(batch_size.max(1)).map(<[u32]>::to_vec).collect()
}
