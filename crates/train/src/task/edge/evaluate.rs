//! Evaluation: labels of held-out edges from the embeddings of their endpoints.

use gnarl_common::Result;
use gnarl_engine::Communicator;
use gnarl_nn::{Params, Tensor};
use rayon::prelude::*;

use super::labels::EdgePrediction;
use super::splits::Split;
use crate::embeddings::Rows;
use crate::encoder::Encoder;
use crate::evaluation::{ClassScores, Embedded, Evaluation, Forwards, Scores, by_shares, classes};
use crate::task::edge_scores::{EdgeBatch, EdgeScores};
use crate::task::ends::embeddings_before;
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
    evaluation(task, |split| {
        score(task, split, counted(task, split), |places| {
            logits(task, params, embeddings, split, places)
        })
    })
}

/// Scores of held-out edges, each as of its time, on the rayon pool this is called from: by this rank, or by all of `comm`
/// together.
///
/// # Errors
/// If shapes disagree, features cannot be read, or a rank fails.
pub(super) fn in_time<E: Encoder>(
    task: &EdgePrediction,
    forwards: &Forwards<'_, E>,
    weights: (&Params, &[Rows<'_>]),
    comm: Option<&dyn Communicator>,
) -> Result<Evaluation> {
    let logits = |split: &Split, places: &[u32]| {
        let edges = split.edges.at(places);
        let times: Vec<i64> = places.iter().map(|&place| split.times[place as usize]).collect();
        let ends = embeddings_before(forwards, weights, (&edges, &times), task.two_types())?;
        let rows = places.iter().map(|&place| split.rows[place as usize]).collect();
        task.score(weights.0, ends, &EdgeBatch { edges, rows, ..EdgeBatch::default() })
    };
    evaluation(task, |split| {
        score(task, split, counted(task, split), |places| {
            by_shares(comm, places.len(), |own| logits(split, &places[own]))
        })
    })
}

/// The evaluation of `score`, which gives those of a split.
fn evaluation(
    task: &EdgePrediction,
    score: impl Fn(&Split) -> Result<Found>,
) -> Result<Evaluation> {
    let [validated, tested] = task.config.evaluate.scored();
    let of = |scored: bool, split| if scored { score(split) } else { Ok(Found::default()) };
    let valid = of(validated, &task.splits.valid)?;
    let test = of(tested, &task.splits.test)?;
    Ok(Evaluation {
        valid: valid.scores,
        valid_loss: valid.loss,
        test: test.scores,
        classes: classes(valid.classes, test.classes),
        ..Evaluation::default()
    })
}

/// The scores of a split, and its mean loss.
#[derive(Default)]
struct Found {
    scores: Scores,
    loss: f64,
    classes: Option<ClassScores>,
}

/// True if classes are counted in a split: in the one that is reported.
fn counted(task: &EdgePrediction, split: &Split) -> bool {
    let [_, tested] = task.config.evaluate.scored();
    let tested = tested && !task.splits.test.edges.is_empty();
    std::ptr::eq(split, if tested { &task.splits.test } else { &task.splits.valid })
}

/// Scores a split, and counts its classes if they are `counted`.
fn score(
    task: &EdgePrediction,
    split: &Split,
    counted: bool,
    logits: impl Fn(&[u32]) -> Result<Tensor>,
) -> Result<Found> {
    let places: Vec<u32> = (0..split.edges.len() as u32).collect();
    let mut scorer = task.objective.scorer();
    if counted {
        scorer.count_classes();
    }
    for places in places.chunks(EDGES) {
        let logits = logits(places)?;
        let each: Vec<u32> = (0..places.len() as u32).collect();
        scorer.add(&logits, &each, &Targets::of(&split.labels, places));
    }
    Ok(Found { scores: scorer.scores(), loss: scorer.loss(), classes: scorer.classes() })
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
    task.score(params, [heads, tails], &EdgeBatch { edges, rows, ..EdgeBatch::default() })
}
