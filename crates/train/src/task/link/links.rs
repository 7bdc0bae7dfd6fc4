//! Link prediction: the state of a run's task.

use std::sync::{Arc, Mutex, OnceLock};

use gnarl_common::Result;
use gnarl_config::RunConfig;
use gnarl_graph::triples::{FilteredSet, Side, Triples};
use gnarl_nn::decoders::Decoder;
use gnarl_nn::losses::Loss;
use gnarl_sample::negatives::NegativeSampler;

use super::edges::Edges;
use super::paired::Paired;
use crate::data::target_edges::{KnownEdges, Query};
use crate::task::buckets::Buckets;

/// The link prediction task of a run.
pub(crate) struct LinkPrediction {
    pub(super) config: RunConfig,
    pub(super) metric: String,
    pub(super) edges: Edges,
    pub(super) known: Box<dyn KnownEdges>,
    pub(super) decoder: Box<dyn Decoder>,
    pub(super) loss: Box<dyn Loss>,
    /// True if a model computes the node embeddings.
    pub(super) encoded: bool,
    /// Negative sampler, built once the parts are known.
    pub(super) negatives: OnceLock<Box<dyn NegativeSampler>>,
    /// The buckets that edges are trained by; none unless `sample.buckets` asks for them.
    pub(super) buckets: OnceLock<Buckets>,
    /// Held while edges are sorted into buckets.
    pub(super) sorting: Mutex<()>,
    /// The filtered set of held-out edges, found by their first ranking.
    pub(super) filtered: OnceLock<Arc<FilteredSet>>,
    /// Validation and test edges with pairs without an edge behind them, drawn for their first scores.
    pub(super) paired: [OnceLock<Paired>; 2],
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

    /// The filtered set that held-out edges are ranked with.
    ///
    /// # Errors
    /// If a part does not reply.
    pub(super) fn filtered(&self) -> Result<&FilteredSet> {
        if let Some(found) = self.filtered.get() {
            return Ok(found);
        }
        let mut queries = Vec::new();
        for edges in [&self.edges.valid, &self.edges.test] {
            Side::BOTH.iter().for_each(|&side| queries.extend(queries_of(edges, side)));
        }
        let found = self.known.of(&queries)?;
        // Another rank of this process may have found an equal one meanwhile.
        Ok(self.filtered.get_or_init(|| found))
    }
}

/// The queries that predict the endpoints of some edges on a side.
pub(super) fn queries_of(edges: &Triples, side: Side) -> impl Iterator<Item = Query> + '_ {
    let given = edges.ends(side.other()).iter().zip(&edges.relations);
    given.map(move |(&given, &relation)| (side, [given, relation]))
}
