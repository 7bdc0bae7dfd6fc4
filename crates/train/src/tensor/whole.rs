//! What strategy `tensor` asks of a model over a whole graph, whatever its types.

use std::sync::Arc;

use gnarl_graph::Result;
use gnarl_nn::{Exchange, Tape, Tensor, Var};

use super::counted::Counted;
use crate::messages::TypedEdges;
use crate::pipeline::Input;

/// A model over a whole graph, as one of several ranks that have the rows of some nodes each.
pub(crate) trait WholeModel: Send + Sync {
    /// The graph, perhaps without some edges.
    type Graph: Send + Sync;

    /// How ranks exchange rows and columns.
    fn exchange(&self) -> &dyn Exchange;

    /// What is counted of exchanges.
    fn counted(&self) -> &Counted;

    /// The graph with all edges.
    fn graph(&self) -> Arc<Self::Graph>;

    /// The graph without some edges.
    ///
    /// # Errors
    /// If it is too large for a block.
    fn without(&self, edges: &TypedEdges) -> Result<Arc<Self::Graph>>;

    /// Prepares what backward needs too.
    fn prepare(&self, graph: &Self::Graph);

    /// Edges that messages pass over in a step.
    fn num_edges(&self, graph: &Self::Graph) -> usize;

    /// The features of the own nodes, for each type.
    ///
    /// # Errors
    /// If they cannot be read.
    fn features(&self) -> Result<Vec<Option<Input>>>;

    /// Ids of the learnt rows of the own nodes, for each table.
    fn learnt(&self) -> Arc<[Vec<u64>]>;

    /// Which of those rows messages bring to `rows`, numbered among the rows of all ranks: places in each of
    /// the lists of ids, ascending. The others are not part of a batch that is about `rows`.
    fn reached(&self, _rows: &[u32]) -> Vec<Vec<u32>> {
        Vec::new()
    }

    /// Numbers, among the rows of all ranks, of some nodes of each type that ends of edges have.
    fn rows(&self, nodes: &[Vec<u32>]) -> Vec<u32>;

    /// The rows put out for the own nodes, and the leaves of the `learnt` rows that they are of.
    ///
    /// # Errors
    /// If shapes disagree, a rank fails, or the model does not train by columns.
    fn forward<'t>(
        &'t self,
        tape: &mut Tape<'t>,
        graph: &'t Self::Graph,
        features: &[Option<Input>],
        learnt: Vec<Tensor>,
    ) -> Result<(Var, Vec<Var>)>;
}
