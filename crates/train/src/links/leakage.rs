//! Whether what is to be found could be seen.

use std::collections::HashSet;

use gnarl_graph::{Error, Result};
use gnarl_sample::negatives::Triples;
use serde::{Deserialize, Serialize};

use super::Links;
use crate::config;
use crate::messages::{Seen, both_ways};

/// What the self-check of a run found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeakageReport {
    /// Target edges of training batches, in the blocks their rows are computed from.
    pub train: Seen,
    /// Validation edges, among those that are trained on.
    pub valid: Seen,
    /// Test edges, likewise.
    pub test: Seen,
    /// What the figures mean, in words.
    pub verdict: String,
}

/// Counts what could be seen. Without an encoder no edge passes messages, and what counts is whether a
/// held-out triple is trained on.
pub(super) fn check(links: &Links) -> Result<LeakageReport> {
    let [valid, test] = held_out(links);
    let train = match &links.encoder {
        Some(encoder) => encoder.seen(links)?,
        None => Seen { edges: links.edges.train.len(), seen: 0 },
    };
    let verdict = match (train.seen, valid.seen + test.seen) {
        (0, 0) => "no edge that is to be found can be seen".to_string(),
        (0, seen) => format!("{seen} held-out edges are trained on: scores are too good"),
        (seen, _) => format!(
            "task.leakage = 'keep': {seen} of {} target edges are in the message graph of their own \
             batch: a model learns to see edges that new ones do not have",
            train.edges
        ),
    };
    Ok(LeakageReport { train, valid, test, verdict })
}

/// Refuses held-out edges that could be seen, unless the run file says so.
pub(super) fn refuse(links: &Links) -> Result<()> {
    let [valid, test] = held_out(links);
    let seen = valid.seen + test.seen;
    if seen == 0 || links.encoder.is_none() || links.config.task.leakage == config::Leakage::Keep {
        return Ok(());
    }
    let text = format!(
        "{seen} of {} held-out edges, or their reverses, are in the message graph",
        valid.edges + test.edges
    );
    Err(Error::invalid(text)
        .hint("hold out each edge with its reverse; task.leakage = 'keep' trains all the same"))
}

/// Held-out edges that are trained on: in either direction where edges pass messages, as they are where
/// not.
fn held_out(links: &Links) -> [Seen; 2] {
    let edges = &links.edges;
    let count = |held: &Triples, seen: &dyn Fn(usize) -> bool| Seen {
        edges: held.len(),
        seen: (0..held.len()).filter(|&edge| seen(edge)).count(),
    };
    [&edges.valid, &edges.test].map(|held| match &links.encoder {
        Some(encoder) => {
            let ways = |relation| encoder.ways(relation);
            Seen::of(held, &both_ways(&edges.train, ways), ways)
        }
        None => {
            let triple = |set: &Triples, i: usize| (set.heads[i], set.relations[i], set.tails[i]);
            let trained: HashSet<_> =
                (0..edges.train.len()).map(|i| triple(&edges.train, i)).collect();
            count(held, &|i| trained.contains(&triple(held, i)))
        }
    })
}
