//! The trait of models over a graph, layer by layer.

use gnarl_common::{Error, Result};
use gnarl_nn::Tensor;

use crate::rows::Before;
use crate::sweep::Sweeper;

/// A trained model over a graph, computed one layer at a time.
///
/// Nodes are numbered within their type. The first layer reads features or embeddings, which the implementation has;
/// each further one the output of the layer before.
pub trait Layers: Sync {
    /// The gathered inputs of a range of nodes, independent of the rows of the layer before.
    type Inputs: Send;
    /// Memory that gathering uses again.
    type Scratch: Default + Send;

    /// Number of layers, at least 1.
    fn num_layers(&self) -> usize;

    /// Number of nodes of each type.
    fn num_nodes(&self) -> Vec<usize>;

    /// Visits the nodes (type and number) whose output of the layer before, or whose features, layer `layer` reads for
    /// `nodes`; these themselves are among them. A node may be visited more than once.
    ///
    /// # Errors
    /// If lists cannot be read.
    fn inputs_of(
        &self,
        layer: usize,
        node_type: usize,
        nodes: &[u32],
        visit: &mut dyn FnMut(usize, u32),
    ) -> Result<()>;

    /// Number of inputs that [`Layers::inputs_of`] visits for a node, or an estimate. Orders and the ranges of ranks go by
    /// that of the last layer.
    fn num_inputs(&self, layer: usize, node_type: usize, node: u32) -> usize;

    /// Bytes of memory that one node takes in a range: its gathered inputs, and the layer's values of it. Rows of the layer
    /// before that are copied because they are read by chunks, see [`Before::is_chunked`], are counted beside them.
    fn range_bytes(&self, layer: usize, node_type: usize, node: u32) -> usize;

    /// Gathers the inputs of `nodes`, which are distinct and in the order of the inference, for layer `layer`. `before` has
    /// the output of the layer before; there is none for the first one.
    ///
    /// # Errors
    /// If features cannot be read.
    fn gather(
        &self,
        layer: usize,
        node_type: usize,
        nodes: &[u32],
        before: Option<&Before>,
        scratch: &mut Self::Scratch,
    ) -> Result<Self::Inputs>;

    /// Returns true if layer `layer` reads the inputs of such nodes of a type by row blocks: the more nodes a range has,
    /// the nearer are the rows it reads. False by default.
    fn reads_by_row_blocks(
        &self,
        _layer: usize,
        _node_type: usize,
        _nodes: &[u32],
        _before: Option<&Before>,
    ) -> bool {
        false
    }

    /// The sums that layer `layer` gathers for nodes of a type, as ones that sweeps can make; none by default.
    fn sweeper<'a>(
        &'a self,
        _layer: usize,
        _node_type: usize,
        _before: Option<&'a Before>,
    ) -> Option<Box<dyn Sweeper + 'a>> {
        None
    }

    /// Gathers the inputs of `nodes` as [`Layers::gather`] does beside their `sums`, which the sweeper made.
    ///
    /// # Errors
    /// If features cannot be read, or there is no sweeper.
    fn gather_beside(
        &self,
        layer: usize,
        _node_type: usize,
        _nodes: &[u32],
        _before: Option<&Before>,
        _sums: Tensor,
    ) -> Result<Self::Inputs> {
        Err(Error::invalid(format!("layer {layer} makes no sums by sweeps")))
    }

    /// Computes layer `layer`: one row per node, in their order.
    ///
    /// # Errors
    /// If shapes disagree.
    fn compute(&self, layer: usize, inputs: Self::Inputs) -> Result<Tensor>;
}
