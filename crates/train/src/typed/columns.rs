//! Node classification in graphs with types by full-graph steps over shares of rows and columns.

use std::sync::Arc;

use gnarl_engine::Communicator;
use gnarl_graph::Result;
use gnarl_graph::rng::Key;
use gnarl_nn::pool::{Kept, keep_all};
use gnarl_nn::{Mode, Params, Tape};
use gnarl_sample::Scratch;

use super::{TypedNodes, TypedTaskGraph};
use crate::embeddings::{Fetch, Learnt};
use crate::evaluate::Evaluation;
use crate::learner::{BatchLoss, Counts, Exchanges, Gradients, Inputs, Learner};
use crate::nodes::loss::{add_loss, targets_of};
use crate::pipeline::{Input, Job};
use crate::shares::even_share;
use crate::state::TrainState;
use crate::strategy::{Threads, pool};
use crate::tensor::{TypedColumns, WholeModel, judge_shares};

/// The rows of this rank's own nodes.
pub(super) struct Own {
    features: Vec<Option<Input>>,
    /// Ids of the learnt ones, for each table.
    learnt: Arc<[Vec<u64>]>,
}

/// One rank's share of the one batch there is.
pub(super) struct ColumnLearner<'a> {
    graph: &'a TypedTaskGraph,
    metric: &'a str,
    model: TypedColumns<'a>,
    /// Number of this rank, and of all.
    place: (usize, usize),
    /// Every step asks for the same buffers, however large.
    _buffers: Kept,
}

impl<'a> ColumnLearner<'a> {
    /// A learner of `nodes` as `rank`.
    ///
    /// # Errors
    /// If the graph is too large for a block.
    pub fn new(nodes: &'a TypedNodes, rank: &'a dyn Communicator) -> Result<Self> {
        let graph = &*nodes.graph;
        let model = TypedColumns::new(nodes.model.as_ref(), graph, vec![graph.target], rank)?;
        let (place, metric) = ((rank.rank(), rank.size()), &*nodes.metric);
        let _buffers = keep_all();
        Ok(Self { graph, metric, model, place, _buffers })
    }

    /// Those of `nodes`, which ascend, that are this rank's.
    fn mine<'n>(&self, nodes: &'n [u32]) -> &'n [u32] {
        let own = self.model.own(self.graph.target);
        let before = |end: usize| nodes.partition_point(|&v| (v as usize) < end);
        &nodes[before(own.start)..before(own.end)]
    }

    /// The own features; all there is to fetch before a step.
    fn own(&self) -> Result<Own> {
        Ok(Own { features: self.model.features()?, learnt: self.model.learnt() })
    }
}

impl Learner for ColumnLearner<'_> {
    type Sampled = ();
    type Batch = Own;

    fn epoch(&self, epoch: usize, _: usize, _: usize) -> Vec<Job> {
        vec![Job::whole(epoch)]
    }

    fn sample(&self, _: &Job, _: &mut Scratch) -> Result<()> {
        Ok(())
    }

    fn fetch(&self, _: &Job, (): ()) -> Result<Own> {
        self.own()
    }

    fn compact(&self, _: &Own) {
        self.model.prepare(&self.model.graph());
    }

    /// The edges of each rank are its share of the columns of all.
    fn counts(&self, _: &Own) -> Counts {
        let edges = self.model.num_edges(&self.model.graph());
        let edges = even_share(edges, self.place.0, self.place.1).len() as u64;
        Counts { edges, seeds: self.mine(&self.graph.train).len() as u64 }
    }

    fn rows<'b>(&self, own: &'b Own) -> Vec<&'b [u64]> {
        own.learnt.iter().map(Vec::as_slice).collect()
    }

    fn gradient(
        &self,
        params: &Params,
        inputs: Inputs<'_, Own>,
        key: Key,
        gradients: &mut Gradients<'_>,
    ) -> Result<BatchLoss> {
        let (Own { features, learnt }, before) = (inputs.batch, self.model.counted().sent());
        let graph = self.model.graph();
        let mut tape = Tape::new(params, Mode::Train { key });
        let (logits, leaves) = self.model.forward(&mut tape, &graph, features, inputs.rows)?;
        let nodes = self.mine(&self.graph.train);
        let targets = targets_of(&self.graph.labels, nodes);
        let places = self.model.places(self.graph.target, nodes);
        let loss = add_loss(&mut tape, logits, &places, &targets, None);
        let (sum, between) = (f64::from(tape.value(loss).data()[0]), self.model.counted().sent());
        tape.backward(loss, gradients.dense)?;
        gradients.add_rows(&tape, &leaves, learnt);
        let counted = self.model.counted();
        counted.passes([between - before, counted.sent() - between]);
        Ok(BatchLoss { sum, weight: nodes.len() as f64 })
    }

    fn evaluate(
        &self,
        state: &TrainState,
        rank: &dyn Communicator,
        threads: Threads,
    ) -> Result<Evaluation> {
        let Own { features, learnt } = self.own()?;
        let ids: Vec<&[u64]> = learnt.iter().map(Vec::as_slice).collect();
        let learnt = Learnt { tables: &state.tables, rank }.fetch(&ids)?;
        let graph = self.model.graph();
        let logits = pool(threads.each)?.install(|| {
            let mut tape = Tape::new(&state.params, Mode::Eval);
            let (logits, _) = self.model.forward(&mut tape, &graph, &features, learnt)?;
            Ok(tape.take(logits))
        })?;
        let graph = self.graph;
        let nodes = [&graph.valid[..], &graph.test];
        let own = nodes.map(|nodes| {
            let rows = self.model.places(graph.target, self.mine(nodes)).into_iter();
            rows.flat_map(|row| logits.row(row as usize)).copied().collect()
        });
        judge_shares(self.metric, &graph.labels, nodes, rank, own, logits.cols())
    }

    fn exchanges(&self) -> Option<Exchanges> {
        Some(self.model.counted().exchanges())
    }
}
