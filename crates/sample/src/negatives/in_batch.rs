//! `in-batch`: endpoints of the batch's other edges, which need no further embeddings.

use gnarl_common::rng::Key;
use gnarl_graph::triples::Side;

use super::{Drawn, NegativeSampler, Positives};

/// All endpoints on that side of the batch, over all ranks.
pub struct InBatch;

impl NegativeSampler for InBatch {
    fn name(&self) -> &'static str {
        "in-batch"
    }

    fn choose(&self, batch: &Positives<'_>, side: Side, _: Key) -> Drawn {
        Drawn::shared(batch.triples.ends(side).to_vec(), batch.share.len())
    }
}
