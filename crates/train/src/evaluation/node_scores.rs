//! Scores of predicted labels of nodes.

use std::ops::Range;

use gnarl_common::{Error, Kind, Result};
use gnarl_engine::Communicator;
use gnarl_nn::Tensor;

use super::found::{Evaluation, scorers};
use crate::data::node_targets::NodeTargets;
use crate::task::objective::{Objective, Scorer};

/// Logits that ranks exchange at a time.
const EXCHANGED: usize = 1 << 21;

/// Scoring of the validation and test nodes of a graph, and of training nodes if they are asked for.
#[derive(Clone, Copy)]
pub(crate) struct NodeScores<'a> {
    pub targets: &'a NodeTargets,
    pub objective: &'a dyn Objective,
}

impl<'a> NodeScores<'a> {
    /// Scores that row blocks are added to.
    pub fn begin(self) -> Scoring<'a> {
        let [_, test, _] = self.targets.scored();
        Scoring { splits: scorers(self.objective, !test.is_empty()), targets: self.targets }
    }

    /// The most bytes of memory for the scores of logits of `cols` columns, of a rank that has so many rows.
    pub fn bytes(self, (rows, cols): (usize, usize), ranks: usize) -> usize {
        let evaluated: usize = self.targets.scored().iter().map(|nodes| nodes.len()).sum();
        let state = evaluated * cols * self.objective.scorer().bytes_per_value();
        // One rank scores row blocks as they are there; several collect their own logits first.
        let own = evaluated.min(3 * rows) * cols;
        let exchanged = 4 * EXCHANGED.min(evaluated * cols);
        state + if ranks > 1 { size_of::<f32>() * (own + exchanged) } else { 0 }
    }

    /// Scores of logits of `cols` columns, of which each rank has those of its own validation, test and
    /// training nodes, in order. Ranks exchange some at a time.
    ///
    /// # Errors
    /// If a rank fails.
    pub fn of_shares(
        self,
        comm: &dyn Communicator,
        own: [Vec<f32>; 3],
        cols: usize,
    ) -> Result<Evaluation> {
        let mut scoring = self.begin();
        for (split, (nodes, own)) in self.targets.scored().into_iter().zip(own).enumerate() {
            if !nodes.is_empty() {
                exchanged(comm, nodes, (own, cols), EXCHANGED, |nodes, logits| {
                    scoring.add_to(split, nodes, logits);
                })?;
            }
        }
        Ok(scoring.finish())
    }
}

/// Scores of validation, test and training nodes while logits are added.
pub(crate) struct Scoring<'a> {
    splits: [Box<dyn Scorer + 'a>; 3],
    targets: &'a NodeTargets,
}

impl Scoring<'_> {
    /// Adds the nodes of `range` that are scored; `logits` has a row for each node of it.
    pub fn add(&mut self, range: &Range<usize>, logits: &Tensor) {
        for (scorer, nodes) in self.splits.iter_mut().zip(self.targets.scored()) {
            let nodes = within(nodes, range);
            let rows: Vec<u32> = nodes.iter().map(|node| node - range.start as u32).collect();
            if !rows.is_empty() {
                scorer.add(logits, &rows, &self.targets.labels.of(nodes));
            }
        }
    }

    /// Adds nodes of a split, for each of which `logits` has a row.
    fn add_to(&mut self, split: usize, nodes: &[u32], logits: &Tensor) {
        let rows: Vec<u32> = (0..nodes.len() as u32).collect();
        self.splits[split].add(logits, &rows, &self.targets.labels.of(nodes));
    }

    /// The evaluation.
    pub fn finish(self) -> Evaluation {
        Evaluation::of(&self.splits)
    }
}

/// Calls `add` with the logits of all `nodes`, of which this rank has those of its own in rows of `cols`. So many values are
/// exchanged at a time.
fn exchanged(
    comm: &dyn Communicator,
    nodes: &[u32],
    (own, cols): (Vec<f32>, usize),
    at_a_time: usize,
    mut add: impl FnMut(&[u32], &Tensor),
) -> Result<()> {
    let lengths = comm.all_gather("evaluation", bytemuck::bytes_of(&(own.len() as u64)))?.concat();
    let lengths: Vec<u64> = bytemuck::pod_collect_to_vec(&lengths);
    let total = lengths.iter().sum::<u64>() as usize;
    let rows = |&length: &u64| (length as usize).is_multiple_of(cols.max(1));
    if total != nodes.len() * cols || !lengths.iter().all(rows) {
        return Err(unexpected(total, nodes));
    }
    let before = lengths[..comm.rank()].iter().sum::<u64>() as usize / cols.max(1);
    let count = own.len() / cols.max(1);
    let most = (at_a_time / cols.max(1)).max(1);
    for (window, nodes) in nodes.chunks(most).enumerate() {
        // The nodes of ranks follow one another: of a window each has some, or none.
        let place = |node: usize| (window * most + node).saturating_sub(before).min(count) * cols;
        let values = &own[place(0)..place(nodes.len())];
        let all = comm.all_gather("evaluation", bytemuck::cast_slice(values))?.concat();
        let values: Vec<f32> = bytemuck::pod_collect_to_vec(&all);
        if values.len() != nodes.len() * cols {
            return Err(unexpected(values.len(), nodes));
        }
        add(nodes, &Tensor::from_vec(nodes.len(), cols, values));
    }
    Ok(())
}

fn unexpected(values: usize, nodes: &[u32]) -> Error {
    let message = format!("evaluation: unexpected {values} values for {} nodes", nodes.len());
    Error::new(Kind::Rank, message)
}

/// The `nodes`, which ascend, within `range`.
pub(crate) fn within<'n>(nodes: &'n [u32], range: &Range<usize>) -> &'n [u32] {
    let before = |end: usize| nodes.partition_point(|&node| (node as usize) < end);
    &nodes[before(range.start)..before(range.end)]
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use gnarl_engine::local;

    use super::*;

    /// Three ranks with 1, 0 and 4 of the nodes, which exchange all, or two rows or one, at a time.
    #[test]
    fn rows_are_exchanged_some_at_a_time() {
        let nodes = [3, 5, 6, 8, 9];
        let own = [vec![3.0, 3.5], vec![], vec![5.0, 5.5, 6.0, 6.5, 8.0, 8.5, 9.0, 9.5]];
        for (at_a_time, calls) in [(1 << 10, 1), (4, 3), (0, 5)] {
            let found = local::run(3, Duration::from_secs(60), |comm| {
                let mut added = Vec::new();
                let own = (own[comm.rank()].clone(), 2);
                exchanged(comm, &nodes, own, at_a_time, |nodes, logits| {
                    let rows = nodes.iter().zip(logits.data().chunks(2));
                    added.push(rows.map(|(&node, row)| (node, row.to_vec())).collect::<Vec<_>>());
                })?;
                Ok(added)
            });
            for added in found.unwrap() {
                assert_eq!(added.len(), calls);
                let all = added.concat();
                assert!(all.iter().map(|(node, _)| *node).eq(nodes));
                assert!(
                    all.iter().all(|(node, row)| row[..] == [*node as f32, *node as f32 + 0.5])
                );
            }
        }
    }

    #[test]
    fn rows_that_are_missing_are_told_on_all_ranks() {
        let found = local::run(2, Duration::from_secs(60), |comm| {
            let own = (vec![0.5; 2 * comm.rank()], 2);
            Ok(exchanged(comm, &[1, 2], own, 1 << 10, |_, _| ()).unwrap_err().to_string())
        });
        let text = "evaluation: unexpected 2 values for 2 nodes";
        assert_eq!(found.unwrap(), [text, text]);
    }
}
