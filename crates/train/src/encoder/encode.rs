//! The trait of encoders.

use gnarl_common::Result;
use gnarl_common::rng::Key;
use gnarl_config::RunConfig;
use gnarl_engine::Communicator;
use gnarl_graph::Dataset;
use gnarl_nn::models::Model;
use gnarl_nn::{Params, Tape, Tensor, Var};
use gnarl_sample::Scratch;

use crate::data::edge_set::{EdgeSet, Ways};
use crate::data::graph::Graph;
use crate::embeddings::{Rows, Table};
use crate::step::tensor_parallel::WholeModel;

/// A model over a message graph, and how its batches are made.
pub(crate) trait Encoder: Send + Sync + Sized {
    /// Draws neighborhoods.
    type Sampler: Send + Sync;
    /// A batch as it was drawn.
    type Sampled: Send;
    /// A batch ready for compute. It borrows nothing of the graph.
    type Batch: Send + Sync;
    /// The model over the whole graph, as one of several ranks.
    type Columns<'a>: WholeModel
    where
        Self: 'a;

    /// The encoder over a part of the graph, with the same model.
    ///
    /// # Errors
    /// If the part is damaged, or parts cannot be trained alone.
    fn on_part(&self, config: &RunConfig, part: &Dataset) -> Result<Self>;

    /// Dataset ids of the nodes that seeds may be, those of the first type with endpoints; nodes whose lists are
    /// complete only.
    fn seed_ids(&self) -> Vec<u64>;

    /// Edge types over which edges of this relation pass messages.
    fn ways(&self, relation: u32) -> Ways;

    /// The sampler that `config` asks for, which draws batches about some of `seeds`.
    ///
    /// # Errors
    /// If it does not fit the message graph.
    fn sampler(&self, config: &RunConfig, seeds: &[u32]) -> Result<Self::Sampler>;

    /// Batches of an epoch over `seeds`, of so many each; units, if the sampler draws subgraphs.
    fn batches(
        &self,
        sampler: &Self::Sampler,
        seeds: &[u32],
        size: usize,
        order: Key,
    ) -> Vec<Vec<u32>>;

    /// The neighborhoods of some nodes of each type that has endpoints.
    ///
    /// # Errors
    /// If a part of the graph does not answer.
    fn sample(
        &self,
        sampler: &Self::Sampler,
        seeds: &[Vec<u32>],
        key: Key,
        scratch: &mut Scratch,
    ) -> Result<Self::Sampled>;

    /// Takes edges out of a batch.
    fn remove(&self, sampled: &mut Self::Sampled, edges: &EdgeSet);

    /// The edges of all blocks of a batch.
    fn edges(&self, sampled: &Self::Sampled) -> EdgeSet;

    /// Gathers what a batch needs.
    ///
    /// # Errors
    /// If features cannot be had.
    fn fetch(&self, sampled: Self::Sampled) -> Result<(Self::Batch, Outputs)>;

    /// Prepares what the backward pass needs too.
    fn prepare(&self, batch: &Self::Batch);

    /// Edges of all blocks.
    fn num_edges(&self, batch: &Self::Batch) -> usize;

    /// Ids of the embeddings that a batch reads, distinct, one list per table.
    fn embedding_ids<'b>(&self, _batch: &'b Self::Batch) -> &'b [Vec<u64>] {
        &[]
    }

    /// Ids of the embeddings of all nodes of the graph, HALO included, one list per table.
    fn all_embedding_ids(&self) -> Vec<Vec<u64>> {
        Vec::new()
    }

    /// The node embeddings of a batch, and the leaves of the `embeddings` that they are of.
    ///
    /// # Errors
    /// If shapes disagree.
    fn forward<'b>(
        &self,
        tape: &mut Tape<'b>,
        batch: &'b Self::Batch,
        embeddings: Vec<Tensor>,
    ) -> Result<(Var, Vec<Var>)>;

    /// Embeddings of all nodes by full neighbors, one tensor per type that has endpoints.
    ///
    /// # Errors
    /// If shapes disagree.
    fn all(&self, params: &Params, tables: &[Rows<'_>]) -> Result<Vec<Tensor>>;

    /// Embeddings of some nodes of the first type with endpoints, and the row of each.
    ///
    /// # Errors
    /// If shapes disagree.
    fn some(
        &self,
        params: &Params,
        tables: &[Rows<'_>],
        nodes: &[u32],
    ) -> Result<(Tensor, Vec<u32>)>;

    /// Embeddings of each list of nodes, `width` wide, computed by all ranks together; none where one rank can do it
    /// alone.
    ///
    /// # Errors
    /// If a part does not answer or a rank fails.
    fn by_all_ranks(
        &self,
        _params: &Params,
        _nodes: [&[u32]; 2],
        _width: usize,
        _comm: &dyn Communicator,
        _threads: usize,
    ) -> Result<Option<[Tensor; 2]>> {
        Ok(None)
    }

    /// Embeddings of all nodes on every rank, where they are nothing but a table's rows.
    ///
    /// # Errors
    /// If a rank fails.
    fn gathered<'t>(
        &self,
        _tables: &'t [Table],
        _comm: &dyn Communicator,
    ) -> Result<Option<Rows<'t>>> {
        Ok(None)
    }

    /// The model as one of the ranks that share out feature slices has it.
    ///
    /// # Errors
    /// If the graph is too large for a block, or the model is not one of such ranks.
    fn by_columns<'a>(&'a self, comm: &'a dyn Communicator) -> Result<Self::Columns<'a>>;

    /// The model and its graph, where its stages can run one by one.
    fn staged(&self) -> Option<Source<'_>> {
        None
    }

    /// Features of other machines that a cache had, and had not, so far.
    fn cached(&self) -> [u64; 2] {
        [0; 2]
    }
}

/// A homogeneous model and its graph.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub model: &'a dyn Model,
    pub graph: &'a Graph,
}

/// The rows that a model puts out for a batch.
pub(crate) struct Outputs {
    /// Of each node that was sampled for, of one type after the other, its row.
    pub rows: Vec<u32>,
    /// Those nodes, by local id: the seeds, or those that a subgraph sampler took.
    pub nodes: Vec<u32>,
    /// Weights of their losses, where a subgraph sampler took some nodes more often than others.
    pub weights: Option<Vec<f32>>,
}
