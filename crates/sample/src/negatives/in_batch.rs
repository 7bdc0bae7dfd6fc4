//! The ends of the batch's other edges: no row is read that is not needed anyway.

use gnarl_common::rng::Key;
use gnarl_graph::triples::Side;

use super::{Drawn, NegativeSampler, Positives};

/// All ends at that side of the batch, of all ranks together.
pub struct InBatch;

impl NegativeSampler for InBatch {
    fn name(&self) -> &'static str {
        "in-batch"
    }

    fn choose(&self, batch: &Positives<'_>, side: Side, _: Key) -> Drawn {
        Drawn::shared(batch.triples.ends(side).to_vec(), batch.share.len())
    }
}
