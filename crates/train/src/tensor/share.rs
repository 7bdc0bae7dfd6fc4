//! One rank's share of node classification by full-graph steps.

use std::ops::Range;

use gnarl_engine::Communicator;
use gnarl_graph::{Error, Kind, Labels, Result};
use gnarl_nn::{Exchange, Tensor};

use super::columns::Columns;
use crate::evaluate::{Evaluation, Judge};
use crate::learner::Counts;
use crate::task::TaskGraph;

/// The rows and columns that are this rank's.
pub(crate) struct Share<'a> {
    pub task: &'a TaskGraph,
    metric: &'a str,
    pub columns: Columns<'a>,
}

impl<'a> Share<'a> {
    pub fn new(
        task: &'a TaskGraph,
        metric: &'a str,
        rank: &'a dyn Communicator,
        nodes: usize,
    ) -> Self {
        Self { task, metric, columns: Columns::new(rank, nodes) }
    }

    /// Those of `nodes`, which ascend, that are within `rows`.
    pub fn within<'n>(&self, nodes: &'n [u32], rows: &Range<usize>) -> &'n [u32] {
        let before = |end: usize| nodes.partition_point(|&v| (v as usize) < end);
        &nodes[before(rows.start)..before(rows.end)]
    }

    /// The training nodes that are this rank's.
    pub fn training(&self) -> &[u32] {
        self.within(&self.task.train, &self.columns.rows())
    }

    /// The edges of each rank are its share of the columns of all, which pass `edges` in all layers.
    pub fn counts(&self, edges: usize) -> Counts {
        let edges = self.columns.columns(edges).len();
        Counts { edges: edges as u64, seeds: self.training().len() as u64 }
    }

    /// Judges the logits of validation and test nodes, of which each rank has those of its own nodes, in
    /// order, `cols` wide.
    ///
    /// # Errors
    /// If a rank fails.
    pub fn evaluation(
        &self,
        rank: &dyn Communicator,
        logits: [Vec<f32>; 2],
        cols: usize,
    ) -> Result<Evaluation> {
        let (task, nodes) = (self.task, [&self.task.valid[..], &self.task.test]);
        judge_shares(self.metric, &task.labels, nodes, rank, logits, cols)
    }
}

/// Judges logits of validation and of test `nodes`, `cols` wide, of which each rank has those of its own
/// nodes, in order.
///
/// # Errors
/// If a rank fails, or the metric is unknown.
pub(crate) fn judge_shares(
    metric: &str,
    labels: &Labels,
    nodes: [&[u32]; 2],
    rank: &dyn Communicator,
    logits: [Vec<f32>; 2],
    cols: usize,
) -> Result<Evaluation> {
    let mut judges = [Judge::new(metric)?, Judge::new(metric)?];
    for ((judge, nodes), own) in judges.iter_mut().zip(nodes).zip(logits) {
        let all = rank.all_gather("evaluation", bytemuck::cast_slice(&own))?.concat();
        let values: Vec<f32> = bytemuck::pod_collect_to_vec(&all);
        if values.len() != nodes.len() * cols {
            let message = format!("evaluation: {} values of {} nodes", values.len(), nodes.len());
            return Err(Error::new(Kind::Rank, message));
        }
        let logits = Tensor::from_vec(nodes.len(), cols, values);
        let rows: Vec<u32> = (0..nodes.len() as u32).collect();
        judge.add(labels, &logits, &rows, nodes);
    }
    Ok(Evaluation::of(&judges[0], &judges[1]))
}
