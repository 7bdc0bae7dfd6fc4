//! Leakage of held-out and target edges into the message graph or the training edges.

use std::collections::HashSet;

use gnarl_common::Result;
use gnarl_graph::triples::Triples;

use super::links::LinkPrediction;
use crate::data::edge_set::{LeakageCount, both_ways};
use crate::encoder::Encoder;
use crate::evaluation::LeakageReport;

/// The counts of a run, of which `train` gives those of its first batches. Without a model no edge passes messages, and what counts
/// is whether a held-out triple is trained on.
///
/// # Errors
/// Those of `train`.
pub(super) fn report<E: Encoder>(
    links: &LinkPrediction,
    encoder: &E,
    train: &dyn Fn() -> Result<LeakageCount>,
) -> Result<LeakageReport> {
    let [valid, test] = held_out(links, encoder);
    let train = match links.encoded {
        true => train()?,
        false => LeakageCount { edges: links.edges.train.len(), seen: 0 },
    };
    let verdict = match (train.seen, valid.seen + test.seen) {
        (0, 0) => "no leakage: no target or held-out edge is in the message graph".to_string(),
        (0, seen) => {
            format!("leakage: {seen} held-out edges are training edges, so scores are too high")
        }
        (seen, _) => format!(
            "task.leakage = 'keep': {seen} of {} target edges are in the message graph of their own \
             batch: a model learns to see edges that new ones do not have",
            train.edges
        ),
    };
    Ok(LeakageReport { train, valid, test, verdict })
}

/// Counts held-out edges among the training edges: in either direction where edges pass messages,
/// else as they are.
pub(super) fn held_out<E: Encoder>(links: &LinkPrediction, encoder: &E) -> [LeakageCount; 2] {
    let edges = &links.edges;
    [&edges.valid, &edges.test].map(|held| {
        if links.encoded {
            let ways = |relation| encoder.ways(relation);
            return LeakageCount::of(held, &both_ways(&edges.train, ways), ways);
        }
        let triple = |set: &Triples, i: usize| (set.heads[i], set.relations[i], set.tails[i]);
        let trained: HashSet<_> = (0..edges.train.len()).map(|i| triple(&edges.train, i)).collect();
        let seen = (0..held.len()).filter(|&edge| trained.contains(&triple(held, edge))).count();
        LeakageCount { edges: held.len(), seen }
    })
}
