//! Tensor-parallel models over a whole graph.

use std::ops::Range;
use std::sync::Arc;

use gnarl_common::Result;
use gnarl_nn::{Exchange, Tape, Tensor, Var};

use super::counted::Counted;
use crate::data::edge_set::EdgeSet;

/// The use of outputs for some nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The loss.
    Train,
    /// Scores.
    Evaluate,
}

/// Outputs for own nodes.
pub(crate) struct OwnOutputs {
    /// A row for each of the nodes.
    pub rows: Tensor,
    /// The nodes, which ascend; `None` for all own ones.
    pub of: Option<Vec<u32>>,
}

impl OwnOutputs {
    /// The rows of some of the nodes, one after the other.
    pub fn of_nodes<W: WholeModel>(&self, model: &W, nodes: &[u32]) -> Vec<f32> {
        let rows = match &self.of {
            None => model.own_rows(nodes),
            Some(of) => {
                nodes.iter().map(|n| of.partition_point(|other| other < n) as u32).collect()
            }
        };
        rows.into_iter().flat_map(|row| self.rows.row(row as usize)).copied().collect()
    }
}

/// A model over a whole graph, on one of several ranks with a node range each.
pub(crate) trait WholeModel: Send + Sync {
    /// The graph, perhaps without some edges.
    type Graph: Send + Sync;

    /// The exchange between node ranges and feature slices.
    fn exchange(&self) -> &dyn Exchange;

    /// The counters of exchanges.
    fn counted(&self) -> &Counted;

    /// The graph with all edges, and an output for each of the own nodes: one to evaluate, once the loss is about a part.
    fn graph(&self) -> Arc<Self::Graph>;

    /// The part of the graph that the output for some own nodes depends on, which has a row for each of them, in their order;
    /// the same one as long as they stay, made by so many threads. `None` if it is not much smaller than the graph, or if
    /// scores are asked for and the loss is about all of the graph, whose input serves both. The nodes ascend.
    ///
    /// # Errors
    /// If threads cannot be started.
    fn part_for(
        &self,
        _nodes: &[u32],
        _purpose: Purpose,
        _threads: usize,
    ) -> Result<Option<Arc<Self::Graph>>> {
        Ok(None)
    }

    /// The graph without some edges.
    ///
    /// # Errors
    /// If it is too large for a block.
    fn without(&self, edges: &EdgeSet) -> Result<Arc<Self::Graph>>;

    /// Builds the transposes for the backward pass.
    fn prepare(&self, graph: &Self::Graph);

    /// Edges that messages pass over in a step.
    fn num_edges(&self, graph: &Self::Graph) -> usize;

    /// Ids of the embeddings of the own nodes, one list per table.
    fn embedding_ids(&self) -> Arc<[Vec<u64>]>;

    /// Own nodes of the first type with endpoints or targets.
    fn own_nodes(&self) -> Range<usize>;

    /// Positions among the own rows of some own nodes of that type.
    fn own_rows(&self, nodes: &[u32]) -> Vec<u32>;

    /// The embeddings whose messages reach `rows`, numbered among the rows of all ranks: positions
    /// in each of the lists of ids, ascending. The others are not part of a batch about `rows`.
    fn reached(&self, _rows: &[u32]) -> Vec<Vec<u32>> {
        Vec::new()
    }

    /// Row numbers, among those of all ranks, of some nodes of each type with endpoints.
    fn rows(&self, nodes: &[Vec<u32>]) -> Vec<u32>;

    /// The output for the own nodes of `graph`, and the leaves of the `embeddings` in it.
    ///
    /// # Errors
    /// If shapes disagree, a rank fails, or the model has no form over feature slices.
    fn forward<'t>(
        &'t self,
        tape: &mut Tape<'t>,
        graph: &'t Self::Graph,
        embeddings: Vec<Tensor>,
    ) -> Result<(Var, Vec<Var>)>;
}

/// Distinct numbers in ascending order, and the position of each in that order.
pub(crate) fn ascending(numbers: Vec<u32>) -> (Vec<u32>, Vec<u32>) {
    let mut order: Vec<u32> = (0..numbers.len() as u32).collect();
    order.sort_unstable_by_key(|&i| numbers[i as usize]);
    let mut places = vec![0; numbers.len()];
    order.iter().enumerate().for_each(|(place, &i)| places[i as usize] = place as u32);
    (order.iter().map(|&i| numbers[i as usize]).collect(), places)
}

/// Gathers embeddings of some nodes of each type with endpoints, of one type after the other, from
/// their owners. A collective of all ranks.
///
/// # Errors
/// If a rank fails.
pub(crate) fn gather_nodes<W: WholeModel>(
    model: &W,
    own: &Tensor,
    nodes: &[Vec<u32>],
) -> Result<Tensor> {
    let (wanted, order) = ascending(model.rows(nodes));
    let exchange = model.exchange();
    let came = exchange.fetch(own, &exchange.route(&wanted)?)?;
    let mut rows = Tensor::scratch(came.rows(), came.cols());
    for (row, &place) in rows.data_mut().chunks_exact_mut(came.cols().max(1)).zip(&order) {
        row.copy_from_slice(came.row(place as usize));
    }
    Ok(rows)
}
