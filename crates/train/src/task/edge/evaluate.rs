//! Evaluation: labels of held-out edges from the embeddings of all nodes.

use gnarl_common::Result;
use gnarl_nn::{Params, Tensor};

use super::labels::EdgePrediction;
use super::splits::Split;
use crate::evaluation::{Evaluation, Scores};
use crate::task::edge_scores::{EdgeBatch, EdgeScores};
use crate::task::objective::Targets;

/// Edges predicted together.
const EDGES: usize = 1 << 14;

/// Scores of embeddings, one tensor per type with endpoints, on the rayon pool this is called from.
///
/// # Errors
/// If shapes disagree.
pub(super) fn of_embeddings(
    task: &EdgePrediction,
    params: &Params,
    embeddings: &[Tensor],
) -> Result<Evaluation> {
    let of = |scored: bool, split: &Split| match scored {
        true => score(task, params, embeddings, split),
        false => Ok((Scores::new(), 0.0)),
    };
    let scored = task.config.evaluate.scored();
    let (valid, valid_loss) = of(scored[0], &task.splits.valid)?;
    let (test, _) = of(scored[1], &task.splits.test)?;
    Ok(Evaluation { valid, valid_loss, test, ..Evaluation::default() })
}

/// The scores of a split, and its mean loss.
fn score(
    task: &EdgePrediction,
    params: &Params,
    rows: &[Tensor],
    split: &Split,
) -> Result<(Scores, f64)> {
    let places: Vec<u32> = (0..split.edges.len() as u32).collect();
    let mut scorer = task.objective.scorer();
    for places in places.chunks(EDGES) {
        let logits = logits(task, params, rows, split, places)?;
        let each: Vec<u32> = (0..places.len() as u32).collect();
        scorer.add(&logits, &each, &Targets::of(&split.labels, places));
    }
    Ok((scorer.scores(), scorer.loss()))
}

/// Predictions for some edges of a split.
fn logits(
    task: &EdgePrediction,
    params: &Params,
    nodes: &[Tensor],
    split: &Split,
    places: &[u32],
) -> Result<Tensor> {
    let edges = split.edges.at(places);
    let end = |of: &Tensor, nodes: &[u32]| {
        let mut rows = Tensor::scratch(nodes.len(), of.cols());
        let each = rows.data_mut().chunks_exact_mut(of.cols().max(1)).zip(nodes);
        each.for_each(|(row, &node)| row.copy_from_slice(of.row(node as usize)));
        rows
    };
    let heads = end(&nodes[0], &edges.heads);
    let tails = end(&nodes[nodes.len() - 1], &edges.tails);
    let rows = places.iter().map(|&place| split.rows[place as usize]).collect();
    task.score(params, [heads, tails], &EdgeBatch { edges, rows })
}
