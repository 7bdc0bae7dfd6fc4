//! Leakage of held-out and target edges into the message graph or the training edges.

use gnarl_common::{Error, Result};
use gnarl_graph::triples::Triples;
use hashbrown::HashMap;

use super::links::LinkPrediction;
use crate::data::edge_set::{LeakageCount, Ways};
use crate::encoder::Encoder;
use crate::evaluation::LeakageReport;

/// The counts of a run, of which `train` gives those of its first batches. Without a model no edge passes messages, and what counts
/// is whether a held-out triple is trained on.
///
/// # Errors
/// Those of `train`, or if a part does not reply.
pub(super) fn report<E: Encoder>(
    links: &LinkPrediction,
    encoder: &E,
    train: &dyn Fn() -> Result<LeakageCount>,
) -> Result<LeakageReport> {
    let [valid, test] = held_out(links, encoder)?;
    let train = match links.encoded {
        true => train()?,
        false => LeakageCount { edges: links.edges.train.count(), seen: 0 },
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
/// else as they are. Memory is bounded by the held-out edges.
///
/// # Errors
/// If a part does not reply.
pub(super) fn held_out<E: Encoder>(
    links: &LinkPrediction,
    encoder: &E,
) -> Result<[LeakageCount; 2]> {
    let ways = |relation: u32| match links.encoded {
        true => encoder.ways(relation),
        false => Ways { forth: relation as usize, back: None },
    };
    let held = [&links.edges.valid, &links.edges.test];
    seen_in(held, &ways, &mut |each| links.edges.train.scan(&mut |_, edges| each(edges)))
}

/// Hands training edges to its argument, some at a time.
pub(super) type Scan<'a> = dyn FnMut(&mut dyn FnMut(&Triples) -> Result<()>) -> Result<()> + 'a;

/// Counts validation and test edges, or their reverses, among those of `scan`.
///
/// # Errors
/// Those of `scan`.
pub(super) fn seen_in(
    held: [&Triples; 2],
    ways: &dyn Fn(u32) -> Ways,
    scan: &mut Scan<'_>,
) -> Result<[LeakageCount; 2]> {
    // Places of held-out edges, by the directed edges of the message graph that they are.
    let mut directed: HashMap<(usize, u32, u32), Vec<(usize, usize)>> = HashMap::new();
    for (split, edges) in held.iter().enumerate() {
        for edge in 0..edges.len() {
            for there in both(edges, edge, ways(edges.relations[edge])) {
                directed.entry(there).or_default().push((split, edge));
            }
        }
    }
    let mut seen = held.map(|edges| vec![false; edges.len()]);
    scan(&mut |edges| {
        for edge in 0..edges.len() {
            for there in both(edges, edge, ways(edges.relations[edge])) {
                for &(split, edge) in directed.get(&there).into_iter().flatten() {
                    seen[split][edge] = true;
                }
            }
        }
        Ok(())
    })?;
    let count = |seen: &Vec<bool>| LeakageCount {
        edges: seen.len(),
        seen: seen.iter().filter(|&&seen| seen).count(),
    };
    Ok(seen.each_ref().map(count))
}

/// Rejects held-out edges in the message graph.
///
/// # Errors
/// [`gnarl_common::Kind::Invalid`] if there are some.
pub(super) fn reject([valid, test]: &[LeakageCount; 2]) -> Result<()> {
    let seen = valid.seen + test.seen;
    if seen == 0 {
        return Ok(());
    }
    let text = format!(
        "{seen} of {} held-out edges, or their reverses, are in the message graph",
        valid.edges + test.edges
    );
    Err(Error::invalid(text)
        .hint("hold out each edge with its reverse, or set task.leakage to 'keep' to train anyway"))
}

/// An edge as those of the message graph, in both directions if it has a reverse.
fn both(
    edges: &Triples,
    edge: usize,
    Ways { forth, back }: Ways,
) -> impl Iterator<Item = (usize, u32, u32)> {
    let (head, tail) = (edges.heads[edge], edges.tails[edge]);
    std::iter::once((forth, head, tail)).chain(back.map(|back| (back, tail, head)))
}
