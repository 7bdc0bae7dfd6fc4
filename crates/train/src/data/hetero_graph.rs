//! A heterogeneous graph and its features.

use gnarl_common::Result;
use gnarl_graph::Dataset;
use gnarl_nn::models::heterogeneous::Source;
use gnarl_nn::{Tape, Tensor, Var};
use gnarl_sample::HeteroSampleGraph;
use gnarl_store::{FeatureStore, MappedFeatures, Normalize};

use super::batch::{Input, gather};

/// A heterogeneous graph, or a part of one. Features are by local id.
pub(crate) struct HeteroGraph {
    /// In-neighbor lists of each edge type.
    pub graph: HeteroSampleGraph,
    /// Features of each node type that has any.
    features: Vec<Option<MappedFeatures>>,
}

impl HeteroGraph {
    /// A graph with the features of each of its node types.
    pub fn new(graph: HeteroSampleGraph, features: Vec<Option<MappedFeatures>>) -> Self {
        Self { graph, features }
    }

    /// Opens a dataset, or a part of one.
    ///
    /// # Errors
    /// If a file is damaged.
    pub fn open(dataset: &Dataset, normalize: Normalize) -> Result<Self> {
        let graph = HeteroSampleGraph::open(dataset)?;
        Ok(Self::new(graph, features_of_types(dataset, normalize)?))
    }

    /// The input of each node type: features or embeddings.
    pub fn sources(&self) -> Vec<Source> {
        let source = |features: &Option<MappedFeatures>| {
            features.as_ref().map_or(Source::Embeddings, |found| Source::Features(found.width()))
        };
        self.features.iter().map(source).collect()
    }

    /// Indices and names of the node types with embeddings, in the order of the state's tables.
    pub fn embedding_types(&self) -> impl Iterator<Item = (usize, &str)> {
        let types = self.graph.schema().node_types().iter().enumerate();
        types.filter(|(number, _)| self.features[*number].is_none()).map(|(n, name)| (n, &**name))
    }

    /// Features of some nodes of each type; none for types without.
    ///
    /// # Errors
    /// If an id has no features.
    pub fn features(&self, nodes: &[Vec<u32>]) -> Result<Vec<Option<Input>>> {
        let of = |(features, nodes): (&Option<MappedFeatures>, &Vec<u32>)| match features {
            Some(features) => gather(features, nodes).map(Some),
            None => Ok(None),
        };
        self.features.iter().zip(nodes).map(of).collect()
    }

    /// Puts the features and `learnt` embeddings of each node type on a tape. The second result are
    /// the leaves of the embeddings.
    pub fn leaves(
        &self,
        tape: &mut Tape<'_>,
        features: &[Option<Input>],
        embeddings: impl IntoIterator<Item = Tensor>,
    ) -> (Vec<Option<Var>>, Vec<Var>) {
        let (mut embeddings, mut leaves) = (embeddings.into_iter(), Vec::new());
        let rows = features.iter().map(|features| match features {
            Some(Input::Dense(rows)) => Some(tape.dense(rows.clone())),
            Some(Input::Sparse(rows)) => Some(tape.sparse(rows.clone())),
            None => embeddings.next().map(|rows| {
                let leaf = tape.leaf(rows);
                leaves.push(leaf);
                leaf
            }),
        });
        (rows.collect(), leaves)
    }
}

/// The features of each node type of a dataset that has any.
///
/// # Errors
/// If a file is damaged.
pub(crate) fn features_of_types(
    dataset: &Dataset,
    normalize: Normalize,
) -> Result<Vec<Option<MappedFeatures>>> {
    let of = |name: &str| {
        let found = dataset.features(name)?;
        found.map(|found| MappedFeatures::new(found, normalize)).transpose()
    };
    dataset.manifest().node_types.iter().map(|t| of(&t.name)).collect()
}
