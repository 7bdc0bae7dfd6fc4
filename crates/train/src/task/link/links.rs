//! Link prediction: the state of a run's task.

use std::sync::OnceLock;

use gnarl_config::RunConfig;
use gnarl_graph::triples::{FilteredSet, Triples};
use gnarl_nn::decoders::Decoder;
use gnarl_nn::losses::Loss;
use gnarl_sample::negatives::NegativeSampler;

use super::edges::Edges;

/// The link prediction task of a run.
pub(crate) struct LinkPrediction {
    pub(super) config: RunConfig,
    pub(super) metric: String,
    pub(super) edges: Edges,
    /// The filtered set: edges of all splits.
    pub(super) known: FilteredSet,
    pub(super) decoder: Box<dyn Decoder>,
    pub(super) loss: Box<dyn Loss>,
    /// True if a model computes the node embeddings.
    pub(super) encoded: bool,
    /// Part of each node that is a head; empty if the graph was not partitioned.
    pub(super) owner: Vec<u32>,
    /// Training edges of each part, where parts train alone.
    pub(super) by_part: Vec<Vec<u32>>,
    /// Negative sampler, built once the parts are known.
    pub(super) negatives: OnceLock<Box<dyn NegativeSampler>>,
}

impl LinkPrediction {
    /// The validation and the test edges that are scored; `nothing` in place of those that are not.
    pub(super) fn scored<'a>(&'a self, nothing: &'a Triples) -> [&'a Triples; 2] {
        let [valid, test] = self.config.evaluate.scored();
        [
            if valid { &self.edges.valid } else { nothing },
            if test { &self.edges.test } else { nothing },
        ]
    }

    /// The negative sampler.
    pub(super) fn negatives(&self) -> &dyn NegativeSampler {
        self.negatives.get().expect("steps make the task ready").as_ref()
    }
}
