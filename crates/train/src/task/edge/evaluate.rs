//! Evaluation: labels of held-out edges from the embeddings of their endpoints.

use gnarl_common::Result;
use gnarl_nn::{Params, Tensor};
use rayon::prelude::*;

use super::labels::EdgePrediction;
use super::splits::Split;
use crate::embeddings::Rows;
use crate::encoder::Encoder;
use crate::evaluation::{Embedded, Evaluation, Forwards, Scores};
use crate::task::edge_scores::{EdgeBatch, EdgeScores};
use crate::task::objective::Targets;

/// Edges predicted together.
const EDGES: usize = 1 << 14;

/// Embeddings of the endpoints of the edges that are scored, by type with endpoints.
///
/// # Errors
/// If shapes disagree.
pub(super) fn embeddings<E: Encoder>(
    task: &EdgePrediction,
    forwards: &Forwards<'_, E>,
    weights: (&Params, &[Rows<'_>]),
) -> Result<Vec<Embedded>> {
    let types = if task.two_types() { 2 } else { 1 };
    let mut nodes = vec![Vec::new(); types];
    let splits =
        [&task.splits.valid, &task.splits.test].into_iter().zip(task.config.evaluate.scored());
    for (split, _) in splits.filter(|(_, scored)| *scored) {
        nodes[0].extend_from_slice(&split.edges.heads);
        nodes[types - 1].extend_from_slice(&split.edges.tails);
    }
    for nodes in &mut nodes {
        nodes.par_sort_unstable();
        nodes.dedup();
    }
    let wanted: Vec<(usize, Vec<u32>)> = nodes.into_iter().enumerate().collect();
    let found = forwards.of_types(weights, &wanted)?;
    let each = wanted.into_iter().zip(found);
    Ok(each.map(|((_, nodes), rows)| Embedded::some(nodes, rows)).collect())
}

/// Scores of embeddings by type with endpoints, on the rayon pool this is called from.
///
/// # Errors
/// If shapes disagree.
pub(super) fn of_embeddings(
    task: &EdgePrediction,
    params: &Params,
    embeddings: &[Embedded],
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
    rows: &[Embedded],
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
    nodes: &[Embedded],
    split: &Split,
    places: &[u32],
) -> Result<Tensor> {
    let edges = split.edges.at(places);
    let heads = nodes[0].of(&edges.heads);
    let tails = nodes[nodes.len() - 1].of(&edges.tails);
    let rows = places.iter().map(|&place| split.rows[place as usize]).collect();
    task.score(params, [heads, tails], &EdgeBatch { edges, rows })
}
