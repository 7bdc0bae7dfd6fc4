//! Pairs of nodes without an edge, beside held-out edges.

use std::ops::Range;

use gnarl_common::Result;
use gnarl_common::rng::Key;
use gnarl_graph::triples::{Side, Triples};

use super::links::LinkPrediction;

/// Draws for a pair: graphs so dense that none of them is free are not worth predicting.
const DRAWS: u64 = 100;

/// `edges`, and for each a pair of nodes without an edge of its relation in either direction, as far as one is found. The
/// pairs are a function of `word`, the place of an edge, and the known edges.
///
/// # Errors
/// If a part does not tell of known edges.
pub(super) fn beside(links: &LinkPrediction, edges: &Triples, word: u64) -> Result<Triples> {
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
            let taken = head == tail || back || ends(head).binary_search(&tail).is_ok();
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
    let mut all = edges.clone();
    for (edge, pair) in free.into_iter().enumerate() {
        if let Some([head, tail]) = pair {
            all.push(head, edges.relations[edge], tail);
        }
    }
    Ok(all)
}
