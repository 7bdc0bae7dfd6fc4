//! Scores of predicted labels of nodes.

use std::ops::Range;

use gnarl_common::{Error, Kind, Result};
use gnarl_engine::Communicator;
use gnarl_nn::Tensor;

use super::found::{Evaluation, scorers};
use crate::data::node_targets::NodeTargets;
use crate::task::objective::Objective;

/// Scoring of the validation and test nodes of a graph, and of training nodes if they are asked for.
#[derive(Clone, Copy)]
pub(crate) struct NodeScores<'a> {
    pub targets: &'a NodeTargets,
    pub objective: &'a dyn Objective,
}

impl NodeScores<'_> {
    /// Scores of the predictions for validation, test and training nodes, in their order.
    pub fn of(self, logits: [Tensor; 3]) -> Evaluation {
        let NodeTargets { labels, .. } = self.targets;
        let [_, test, _] = self.targets.scored();
        let mut splits = scorers(self.objective, !test.is_empty());
        for ((split, nodes), logits) in splits.iter_mut().zip(self.targets.scored()).zip(&logits) {
            let rows: Vec<u32> = (0..nodes.len() as u32).collect();
            split.add(logits, &rows, &labels.of(nodes));
        }
        Evaluation::of(&splits)
    }

    /// Scores of logits of `cols` columns, of which each rank has those of its own validation, test and
    /// training nodes, in order.
    ///
    /// # Errors
    /// If a rank fails.
    pub fn of_shares(
        self,
        comm: &dyn Communicator,
        own: [Vec<f32>; 3],
        cols: usize,
    ) -> Result<Evaluation> {
        let gather = |nodes: &[u32], own: &[f32]| -> Result<Tensor> {
            if nodes.is_empty() {
                return Ok(Tensor::from_vec(0, cols, Vec::new()));
            }
            let all = comm.all_gather("evaluation", bytemuck::cast_slice(own))?.concat();
            let values: Vec<f32> = bytemuck::pod_collect_to_vec(&all);
            if values.len() != nodes.len() * cols {
                let found = values.len();
                let message =
                    format!("evaluation: unexpected {found} values for {} nodes", nodes.len());
                return Err(Error::new(Kind::Rank, message));
            }
            Ok(Tensor::from_vec(nodes.len(), cols, values))
        };
        let [valid, test, train] = self.targets.scored();
        let logits = [gather(valid, &own[0])?, gather(test, &own[1])?, gather(train, &own[2])?];
        Ok(self.of(logits))
    }
}

/// The `nodes`, which ascend, within `range`.
pub(crate) fn within<'n>(nodes: &'n [u32], range: &Range<usize>) -> &'n [u32] {
    let before = |end: usize| nodes.partition_point(|&node| (node as usize) < end);
    &nodes[before(range.start)..before(range.end)]
}
