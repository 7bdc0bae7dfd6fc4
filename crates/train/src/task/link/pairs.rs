//! Held-out edges and pairs of nodes without an edge, told apart.

use std::ops::Range;

use gnarl_common::Result;
use gnarl_common::rng::Key;
use gnarl_graph::triples::{Side, Triples};
use gnarl_nn::metrics::{self, Targets};

use super::links::LinkPrediction;
use super::paired::Paired;
use crate::evaluation::Scores;

/// Draws for a pair: graphs so dense that none of them is free are not worth predicting.
const DRAWS: u64 = 100;

/// Metrics against as many pairs without an edge; the first is the default of a run with an encoder.
pub(super) const PAIRED: [&str; 2] = ["roc_auc", "average_precision"];

/// Scores of the edges of split number `split`, 0 for validation, by the scores that `score` gives them and pairs without
/// an edge of the relation; the pairs are the same in every evaluation.
///
/// # Errors
/// If a part does not tell of known edges; those of `score`.
pub(super) fn scores(
    links: &LinkPrediction,
    (edges, split): (&Triples, usize),
    score: impl FnOnce(&Paired) -> Result<Vec<f32>>,
) -> Result<Scores> {
    if edges.is_empty() {
        return Ok(Scores::new());
    }
    let paired = match links.paired[split].get() {
        Some(paired) => paired,
        None => {
            let drawn = beside(links, edges, split)?;
            links.paired[split].get_or_init(|| drawn)
        }
    };
    if paired.of.is_empty() {
        return Ok(Scores::new());
    }
    let count = paired.all.len();
    let labels: Vec<u8> = (0..count).map(|i| u8::from(i < edges.len())).collect();
    let scores = score(paired)?;
    let rows: Vec<u32> = (0..count as u32).collect();
    let named = |name: &&str| -> Result<(String, f64)> {
        let mut metric = metrics::build(&name.replace('_', "-"))?;
        metric.update(&scores, 1, &rows, Targets::Multi(&labels));
        Ok((name.to_string(), metric.value()))
    };
    PAIRED.iter().map(named).collect()
}

/// `edges`, and for each a pair of nodes without an edge of its relation in either direction, as far as one is found. The
/// pairs are a function of `split`, the place of an edge, and the known edges. Their nodes are there at the time of the
/// edge, if edges and nodes have times.
fn beside(links: &LinkPrediction, edges: &Triples, split: usize) -> Result<Paired> {
    let word = split as u64;
    let key = Key::new(0x6c1).with(word);
    let ends = Side::BOTH.map(|side| links.edges.endpoints.range(side));
    let pair = |edge: usize, draw: u64| {
        [0, 1].map(|end: usize| {
            let Range { start, end: last } = ends[end].clone();
            let place = 2 * draw + end as u64;
            start + key.with(edge as u64).below(place, (last - start).into()) as u32
        })
    };
    let mut free = vec![None; edges.len()];
    let mut open: Vec<usize> = (0..edges.len()).collect();
    for draw in 0..DRAWS {
        let ends_of = |&edge: &usize| {
            let [head, tail] = pair(edge, draw);
            let relation = edges.relations[edge];
            [head, tail].map(|given| (Side::Tail, [given, relation]))
        };
        let known = links.known.of(&open.iter().flat_map(ends_of).collect::<Vec<_>>())?;
        open.retain(|&edge| {
            let [head, tail] = pair(edge, draw);
            let ends = |given| known.ends(Side::Tail, given, edges.relations[edge]);
            let back = ends(tail).binary_search(&head).is_ok();
            let known = back || ends(head).binary_search(&tail).is_ok();
            let taken = head == tail || known || !links.edges.are_there(split, edge, [head, tail]);
            if !taken {
                free[edge] = Some([head, tail]);
            }
            taken
        });
        if open.is_empty() {
            break;
        }
    }
    if !open.is_empty() {
        tracing::warn!(
            "{} of {} edges of a split are scored without a pair beside them that has no edge: the graph is \
             too dense to draw one",
            open.len(),
            edges.len()
        );
    }
    let (mut all, mut of) = (edges.clone(), Vec::with_capacity(edges.len()));
    for (edge, pair) in free.into_iter().enumerate() {
        if let Some([head, tail]) = pair {
            all.push(head, edges.relations[edge], tail);
            of.push(edge as u32);
        }
    }
    Ok(Paired { all, of })
}
