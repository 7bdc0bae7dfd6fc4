//! Features of the input nodes of batches, asked for apart from these: each once for all ranks of the process in a step
//! (mini-batch grouping, Armada §5), and none that is in the cache.
//!
//! Armada's batch workers know what compute workers have cached, by plans that are acknowledged. Here those who have the
//! cache ask for what they lack as soon as the batch has come: one more round trip, which is hidden as batches are asked for
//! ahead, and no numbers that depend on what the two sides know of each other when messages are lost or a process starts again.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};

use gnarl_common::Result;
use gnarl_common::rng::mix;
use gnarl_common::threads::even_share;
use gnarl_config::{Engine, RunConfig};
use gnarl_nn::Tensor;
use gnarl_store::cache::{FetchRows, RowCache, SharedRows};

use crate::data::batch::BatchSpec;

/// The features of a process' batches.
pub(crate) struct Features {
    width: usize,
    /// Ranks of this process, which share the examples of a step.
    ranks: usize,
    shared: SharedRows,
    cache: Option<RowCache>,
}

impl Features {
    /// Features of `width` values for the batches of `config`; none where batches bring their own: there is neither a cache
    /// nor a second rank in this process.
    pub fn of(config: &RunConfig, width: usize) -> Option<Self> {
        let ranks = match config.train.engine {
            Engine::Local => config.train.workers,
            Engine::Mpi => 1,
        };
        let policy = config.cache.policy;
        let bytes = config.cache.memory.as_u64();
        let slots = NonZeroUsize::new(policy.capacity(bytes, width));
        if bytes > 0 && slots.is_none() {
            tracing::warn!(
                "cache.memory = '{}' has no room for a single node",
                config.cache.memory
            );
        }
        if slots.is_none() && ranks == 1 {
            return None;
        }
        Some(Self {
            width,
            ranks,
            shared: SharedRows::default(),
            cache: slots.map(|slots| RowCache::new(width, policy.slots(slots))),
        })
    }

    /// The features of `nodes`, the input nodes of a batch of `step`; `source` is asked for those that are nowhere here. Beside
    /// them, the numbers of those that were here and of those that were asked for.
    ///
    /// # Errors
    /// Those of `source`.
    pub fn fetch(
        &self,
        step: Step,
        nodes: &[u64],
        source: FetchRows<'_>,
    ) -> Result<(Tensor, [u64; 2])> {
        let mut rows = Tensor::scratch(nodes.len(), self.width);
        let asked = AtomicU64::new(0);
        let count = |ids: &[u64], out: &mut [f32]| {
            asked.fetch_add(ids.len() as u64, Ordering::Relaxed);
            source(ids, out)
        };
        let cached = |ids: &[u64], out: &mut [f32]| match &self.cache {
            Some(cache) => cache.fetch(ids, out, &count),
            None => count(ids, out),
        };
        let of = (step.id, step.callers);
        self.shared.fetch(of, (nodes, self.width), rows.data_mut(), &cached)?;
        let asked = asked.into_inner();
        let here = (nodes.len() as u64).saturating_sub(asked);
        Ok((rows, [here, asked]))
    }

    /// The step of a batch.
    pub fn step(&self, spec: &BatchSpec) -> Step {
        let examples = &spec.batch[..];
        let first = examples.first().copied().unwrap_or_default();
        let names = [spec.graph as u64, spec.key.bits(), first.into(), examples.len() as u64];
        let takes_part = |rank: &usize| !even_share(examples.len(), *rank, self.ranks).is_empty();
        Step {
            id: names.into_iter().fold(0, |id, name| mix(id ^ name)),
            callers: (0..self.ranks).filter(takes_part).count(),
        }
    }
}

/// A step of the ranks of a process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    /// A name of its own among the steps under way.
    id: u64,
    /// Ranks of the process that have a batch in it.
    callers: usize,
}
