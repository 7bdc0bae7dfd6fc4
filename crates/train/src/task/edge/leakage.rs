//! Leakage of labeled edges into the message graph.

use gnarl_common::Result;
use gnarl_common::rng::Key;
use gnarl_config::Method;
use gnarl_graph::triples::Triples;
use gnarl_sample::Scratch;

use super::labels::EdgePrediction;
use crate::data::edge_set::LeakageCount;
use crate::encoder::Encoder;
use crate::evaluation::LeakageReport;
use crate::task::ends::ends;

/// Held-out edges of a split that are checked in the message graph.
const LOOKED_FOR: usize = 1024;

/// The leakage report of a run, with the count `train` of its first batches.
///
/// # Errors
/// If the message graph cannot be sampled.
pub(super) fn report<E: Encoder>(
    task: &EdgePrediction,
    encoder: &E,
    train: LeakageCount,
) -> Result<LeakageReport> {
    let valid = in_messages(task, encoder, &task.splits.valid.edges)?;
    let test = in_messages(task, encoder, &task.splits.test.edges)?;
    let verdict = match (train.seen, valid.seen + test.seen) {
        (0, 0) => "no leakage: no target or held-out edge is in the message graph".to_string(),
        (0, seen) => format!(
            "task.messages = 'all': {seen} held-out edges pass messages while they are asked about, \
             which those that were trained on did not"
        ),
        (seen, _) => format!(
            "task.leakage = 'keep': {seen} of {} target edges are in the message graph of their own \
             batch",
            train.edges
        ),
    };
    Ok(LeakageReport { train, valid, test, verdict })
}

/// Checks the first of some edges among all edges that reach their endpoints.
fn in_messages<E: Encoder>(
    task: &EdgePrediction,
    encoder: &E,
    edges: &Triples,
) -> Result<LeakageCount> {
    let some: Vec<u32> = (0..edges.len().min(LOOKED_FOR) as u32).collect();
    let edges = edges.at(&some);
    let mut config = task.config.clone();
    config.sample.method = Method::Full;
    config.sample.edge_fanouts.clear();
    config.sample.meta_path.clear();
    config.model.layers = 1;
    let sampler = encoder.sampler(&config, &[])?;
    let seeds = ends(&edges, &[], task.two_types()).seeds;
    let sampled = encoder.sample(&sampler, &seeds, Key::new(0), &mut Scratch::new())?;
    Ok(LeakageCount::of(&edges, &encoder.edges(&sampled), |relation| encoder.ways(relation)))
}
