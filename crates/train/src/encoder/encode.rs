//! The trait of encoders.

use gnarl_common::rng::Key;
use gnarl_common::{Error, Result};
use gnarl_config::RunConfig;
use gnarl_engine::Communicator;
use gnarl_graph::Dataset;
use gnarl_infer::Figures;
use gnarl_nn::models::Model;
use gnarl_nn::{Params, Tape, Tensor, Var};
use gnarl_sample::Scratch;
use serde::{Deserialize, Serialize};

use crate::data::edge_set::{EdgeSet, Ways};
use crate::data::graph::Graph;
use crate::data::packed::Columns;
use crate::data::resident::Resident;
use crate::data::seeds::Seeds;
use crate::embeddings::{Rows, Table};
use crate::encoder::course::Course;
use crate::step::tensor_parallel::WholeModel;

/// An output of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Output {
    /// The output of the last layer: logits where nodes are predicted, else embeddings.
    Last,
    /// The input of the last layer: embeddings where nodes are predicted.
    Hidden,
}

impl Output {
    /// Its name in files.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Last => "last",
            Self::Hidden => "hidden",
        }
    }

    /// Number of layers that compute it, of a model with `layers`.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] if there is no hidden layer.
    pub(super) fn layers(self, layers: usize) -> Result<usize> {
        match self {
            Self::Last => Ok(layers),
            Self::Hidden if layers > 1 => Ok(layers - 1),
            Self::Hidden => {
                Err(Error::usage("the model has one layer, and so no hidden embeddings")
                    .hint("ask for its logits"))
            }
        }
    }
}

/// Receives embeddings: the index of a type with endpoints, ascending nodes, and a row for each.
pub type Keep<'k> = dyn FnMut(usize, &[u32], &Tensor) -> Result<()> + Send + 'k;

/// A model over a message graph, with its batch construction.
pub(crate) trait Encoder: Send + Sync + Sized {
    /// The sampler of neighborhoods.
    type Sampler: Send + Sync;
    /// A sampled batch.
    type Sampled: Send;
    /// A batch ready for compute, independent of the graph.
    type Batch: Send + Sync;
    /// The model over the whole graph in tensor parallelism.
    type Columns<'a>: WholeModel
    where
        Self: 'a;

    /// The encoder over a part of the graph, with the same model.
    ///
    /// # Errors
    /// If the part is damaged, or parts cannot be trained alone.
    fn on_part(&self, config: &RunConfig, part: &Dataset) -> Result<Self>;

    /// The encoder over parts in memory, with the same model.
    ///
    /// # Errors
    /// If there is no such form, parts have other types than the graph, or features and lists disagree.
    fn on_resident(&self, _: &Resident) -> Result<Self> {
        Err(Error::usage("parts in memory are for models over a graph, not for embeddings alone"))
    }

    /// Dataset ids of possible seeds, those of the first type with endpoints; only nodes with
    /// complete lists.
    fn seed_ids(&self) -> Vec<u64>;

    /// Edge types over which edges of this relation pass messages.
    fn ways(&self, relation: u32) -> Ways;

    /// The sampler of `config`, for batches around some of `seeds`.
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

    /// Samples the neighborhoods of some nodes of each type with endpoints.
    ///
    /// # Errors
    /// If a part of the graph does not reply, or seeds have times that the sampler does not read.
    fn sample(
        &self,
        sampler: &Self::Sampler,
        seeds: &Seeds,
        key: Key,
        scratch: &mut Scratch,
    ) -> Result<Self::Sampled>;

    /// Removes edges from a batch.
    fn remove(&self, sampled: &mut Self::Sampled, edges: &EdgeSet);

    /// The edges of all blocks of a batch.
    fn edges(&self, sampled: &Self::Sampled) -> EdgeSet;

    /// Gathers the features of a batch.
    ///
    /// # Errors
    /// If features cannot be read.
    fn fetch(&self, sampled: Self::Sampled) -> Result<(Self::Batch, Outputs)>;

    /// Width of the features of input nodes, where another process can be asked for them apart from batches.
    #[cfg(feature = "serve")]
    fn features_apart(&self) -> Option<usize> {
        None
    }

    /// A batch without the features of its input nodes, for another process that asks for them by
    /// [`Encoder::pack_features`].
    ///
    /// # Errors
    /// If batches have no such form.
    #[cfg(feature = "serve")]
    fn without_features(&self, _sampled: Self::Sampled) -> Result<(Self::Batch, Outputs)> {
        Err(Error::usage("batches of heterogeneous graphs bring their features"))
    }

    /// Adds the features of nodes, by local id, to the columns that are sent to another process.
    ///
    /// # Errors
    /// As [`Encoder::without_features`]; if features cannot be read.
    #[cfg(feature = "serve")]
    fn pack_features(&self, _nodes: &[u32], _out: &mut Columns) -> Result<()> {
        Err(Error::usage("batches of heterogeneous graphs bring their features"))
    }

    /// Adds a batch to the columns that are sent to another process.
    ///
    /// # Errors
    /// If batches have no such form.
    fn pack(&self, _batch: Self::Batch, _out: &mut Columns) -> Result<()> {
        Err(Error::usage("batches without a model are not sent to other processes"))
    }

    /// Takes a batch from the columns of another process.
    ///
    /// # Errors
    /// If they are missing or disagree.
    fn unpack(&self, _columns: &mut Columns) -> Result<Self::Batch> {
        Err(Error::usage("batches without a model are not sent to other processes"))
    }

    /// Builds the transposes for the backward pass.
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

    /// The node embeddings of a batch, and the leaves of its `embeddings`.
    ///
    /// # Errors
    /// If shapes disagree.
    fn forward<'b>(
        &self,
        tape: &mut Tape<'b>,
        batch: &'b Self::Batch,
        embeddings: Vec<Tensor>,
    ) -> Result<(Var, Vec<Var>)>;

    /// Number of nodes of each type with endpoints.
    fn num_nodes(&self) -> Vec<usize>;

    /// Computes embeddings by full neighborhoods, layer by layer, of the nodes `wanted` of types with endpoints, and hands
    /// them to `keep`, on the first rank of `course`: a type, ascending nodes, and a row for each.
    ///
    /// # Errors
    /// If shapes disagree, a rank fails, or those of `keep`.
    fn infer(
        &self,
        weights: (&Params, &[Rows<'_>]),
        wanted: (Output, &[(usize, Vec<u32>)]),
        course: &Course<'_>,
        keep: &mut Keep<'_>,
    ) -> Result<Figures>;

    /// Names of the types with endpoints; none if the graph has one type.
    fn type_names(&self) -> Option<Vec<String>> {
        None
    }

    /// The rows of the first table, where they are the embeddings of all nodes; none where a model computes these.
    fn only_rows<'r, 'v>(&self, _tables: &'r [Rows<'v>]) -> Option<&'r Rows<'v>> {
        None
    }

    /// The first table, likewise.
    fn only_table<'t>(&self, _tables: &'t [Table]) -> Option<&'t Table> {
        None
    }

    /// Returns whether no rank has the graph as a whole, so that all of them compute its embeddings together.
    fn is_partitioned(&self) -> bool {
        false
    }

    /// The model in tensor parallelism, on one of the ranks.
    ///
    /// # Errors
    /// If the graph is too large for a block, or the model has no such form.
    fn by_columns<'a>(&'a self, comm: &'a dyn Communicator) -> Result<Self::Columns<'a>>;

    /// The model and its graph, if it has stages.
    fn staged(&self) -> Option<Source<'_>> {
        None
    }

    /// Remote features that were cached, and that were not, so far.
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

/// The output rows of a batch.
pub(crate) struct Outputs {
    /// Output row of each sampled seed, of one type after the other.
    pub rows: Vec<u32>,
    /// The seeds by local id, one list per type with endpoints, or the nodes of the sampled subgraph.
    pub nodes: Vec<Vec<u32>>,
    /// Loss weights, where a subgraph sampler draws some nodes more often than others.
    pub weights: Option<Vec<f32>>,
}
