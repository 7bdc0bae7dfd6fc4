//! The trait of tasks.

use std::ops::Range;
use std::sync::Arc;

use gnarl_common::threads::even_share;
use gnarl_common::{Home, IdMap, Result};
use gnarl_engine::Communicator;
use gnarl_graph::Dataset;
use gnarl_graph::triples::Triples;
use gnarl_nn::metrics::smaller_is_better;
use gnarl_nn::{Params, Tape, Var};

use super::edge_scores::EdgeScores;
use super::schedule::{DrawBatches, Sharing};
use crate::data::batch::BatchSpec;
use crate::data::edge_set::LeakageCount;
use crate::data::packed::Columns;
use crate::data::resident::{Examples, NodesInMemory};
use crate::data::seeds::Seeds;
use crate::embeddings::Rows;
use crate::encoder::{Encoder, Outputs};
use crate::evaluation::{Evaluation, LeakageReport, NodeScores};
use crate::session::Threads;
use crate::state::TrainState;
use crate::step::BatchLoss;
use crate::step::tensor_parallel::{OwnOutputs, WholeModel};

/// A prediction task on node embeddings, independent of the encoder.
pub(crate) trait Task: Send + Sync {
    /// Examples whose endpoints index seeds.
    type Drawn: Send;
    /// Examples whose endpoints index rows of the embeddings, with all inputs of the loss.
    type Examples: Send + Sync;

    /// True if the examples of a rank need embeddings of its own nodes only, where nodes are split
    /// among ranks.
    const LOCAL: bool;
    /// True if a part trains on its own graph where parts train alone; else all parts see the whole
    /// graph.
    const GRAPH_PER_PART: bool;

    /// The metric that selects the best weights, as a key of scores.
    fn metric(&self) -> String;

    /// True if the smaller of two values of that score is the better one.
    fn smaller_is_better(&self) -> bool {
        smaller_is_better(&self.metric())
    }

    /// Counts of the examples and outputs.
    fn sizes(&self) -> Sizes;

    /// The type of the nodes whose parts assign examples to ranks.
    fn node_type(&self) -> &str;

    /// Sets the part of each node of that type.
    fn set_parts(&mut self, parts: usize, owner: Arc<IdMap>);

    /// Adds a part to train alone, and the dataset ids of its seeds; none for a part that another rank trains.
    ///
    /// # Errors
    /// If the part has no labels.
    fn add_part(&mut self, _part: Option<(&Dataset, &[u64])>) -> Result<()> {
        Ok(())
    }

    /// Completes the setup after the parts are set.
    ///
    /// # Errors
    /// If the run file requires parts, and there are none.
    fn ready(&self) -> Result<()> {
        Ok(())
    }

    /// Prepares for training, with large arrays in `home`.
    ///
    /// # Errors
    /// If a part does not reply, or the disk has no room.
    fn begin(&self, _home: &Home) -> Result<()> {
        Ok(())
    }

    /// Number of graphs that train alone.
    fn graphs(&self) -> usize;

    /// Number of training examples of a graph.
    fn training(&self, graph: usize) -> usize;

    /// Training nodes of a graph, for samplers that draw around them.
    fn seeds(&self, _graph: usize) -> &[u32] {
        &[]
    }

    /// The training examples by the parts that they need in memory, where `owners` has the part of each node of each type
    /// with endpoints.
    ///
    /// # Errors
    /// If a part does not reply.
    fn by_parts(&self, owners: &[Arc<IdMap>]) -> Result<Examples>;

    /// The batch schedule of an epoch (from 1) over a graph. The number of steps is equal on every
    /// rank, and the joint result of a step does not depend on the number of ranks. `batches` draws
    /// nodes into batches.
    fn schedule(
        &self,
        graph: usize,
        epoch: usize,
        sharing: Sharing,
        batches: DrawBatches<'_>,
    ) -> Vec<BatchSpec>;

    /// As [`Task::schedule`] among some training examples, in the epoch and order of `order`.
    fn schedule_of(
        &self,
        among: &[u32],
        order: (usize, usize),
        sharing: Sharing,
        batches: DrawBatches<'_>,
    ) -> Vec<BatchSpec>;

    /// This rank's examples of a batch. All nodes they need are among those in memory, of `there`, where not all are.
    ///
    /// # Errors
    /// If a part does not reply.
    fn draw(
        &self,
        spec: &BatchSpec,
        there: Option<&NodesInMemory>,
    ) -> Result<DrawnBatch<Self::Drawn>>;

    /// Returns whether target edges are removed from the message graph for their batch.
    fn removes_asked(&self) -> bool {
        false
    }

    /// Joins examples with the rows of their embeddings, their labels and their features.
    ///
    /// # Errors
    /// If features cannot be read.
    fn examples(
        &self,
        spec: &BatchSpec,
        drawn: Self::Drawn,
        outputs: Outputs,
    ) -> Result<Self::Examples>;

    /// Adds examples to the columns that are sent to another process.
    ///
    /// # Errors
    /// Those of the task.
    fn pack(&self, examples: Self::Examples, out: &mut Columns) -> Result<()>;

    /// Takes examples from the columns of another process.
    ///
    /// # Errors
    /// If they are missing or disagree.
    fn unpack(&self, columns: &mut Columns) -> Result<Self::Examples>;

    /// Number of examples.
    fn count(&self, examples: &Self::Examples) -> usize;

    /// The summed loss of examples. Dividing by the weight of the whole step is left to the caller, so that the batches
    /// of all ranks add up.
    ///
    /// # Errors
    /// If shapes disagree.
    fn loss<'b>(
        &self,
        tape: &mut Tape<'b>,
        embeddings: Var,
        examples: &'b Self::Examples,
    ) -> Result<(Var, BatchLoss)>;

    /// Scores of the state's weights. A collective of all ranks, which return the same.
    ///
    /// # Errors
    /// If shapes disagree or a rank fails.
    fn evaluate<E: Encoder>(
        &self,
        encoders: Encoders<'_, E>,
        state: &TrainState,
        comm: &dyn Communicator,
        threads: Threads,
    ) -> Result<Evaluation>;

    /// Scores of weights and of all embeddings, on one machine.
    ///
    /// # Errors
    /// If they do not fit the graph.
    fn evaluate_alone<E: Encoder>(
        &self,
        encoders: Encoders<'_, E>,
        params: &Params,
        tables: &[Rows<'_>],
    ) -> Result<Evaluation>;

    /// Leakage of target edges, of which `train` counts those of the first batches; none for tasks
    /// without target edges.
    ///
    /// # Errors
    /// If the message graph cannot be sampled.
    fn leakage<E: Encoder>(
        &self,
        _: &E,
        _train: &dyn Fn() -> Result<LeakageCount>,
    ) -> Result<Option<LeakageReport>> {
        Ok(None)
    }

    /// The batch schedule of an epoch of full-graph steps: every rank has all batches.
    fn whole_schedule(&self, epoch: usize) -> Vec<BatchSpec> {
        self.schedule(0, epoch, Sharing::Ranks { rank: 0, size: 1 }, &|_, _, _| Vec::new())
    }

    /// A batch's examples on one of some ranks, which has the nodes `own`: an even share of edges.
    fn own(
        &self,
        spec: &BatchSpec,
        _own: Range<usize>,
        (rank, ranks): (usize, usize),
    ) -> BatchSpec {
        BatchSpec { share: even_share(spec.batch.len(), rank, ranks), ..spec.clone() }
    }

    /// The nodes whose outputs are all that scores depend on, ascending; `None` where any node may be one.
    fn scored_nodes(&self) -> Option<Vec<u32>> {
        None
    }

    /// Scores of embeddings that each rank has for its own nodes.
    ///
    /// # Errors
    /// If a rank fails.
    fn evaluate_shares<W: WholeModel>(
        &self,
        model: &W,
        own: OwnOutputs,
        params: &Params,
        comm: &dyn Communicator,
        threads: Threads,
    ) -> Result<Evaluation>;

    /// The nodes of a split, ascending; none unless nodes are predicted.
    fn split(&self, _name: &str) -> Option<&[u32]> {
        None
    }

    /// The scoring of edges, for tasks of edges.
    fn edge_scores(&self) -> Option<&dyn EdgeScores> {
        None
    }

    /// The scoring of nodes, for node tasks.
    fn node_scores(&self) -> Option<NodeScores<'_>> {
        None
    }
}

/// One rank's examples of a batch, and what they need of the graph.
pub(crate) struct DrawnBatch<D> {
    pub examples: D,
    pub seeds: Seeds,
    /// Target edges of all ranks, in dataset ids; none where nodes are predicted.
    pub asked: Option<Triples>,
}

/// The encoders of a run, with one model.
pub(crate) struct Encoders<'a, E> {
    /// Encoder of the whole graph.
    pub whole: &'a E,
    /// Encoders of the parts that train alone; none for those of other ranks.
    pub parts: &'a [Option<E>],
}

impl<E> Clone for Encoders<'_, E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E> Copy for Encoders<'_, E> {}

/// Counts of a task.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    /// Members of the splits: `"nodes"` or `"edges"`.
    pub of: &'static str,
    /// Number of classes, tasks or values predicted; 0 if none.
    pub outputs: usize,
    /// Sizes of the splits train, valid and test.
    pub splits: [usize; 3],
}
