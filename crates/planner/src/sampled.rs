//! Cost of sampled mini-batches, for the strategies that train on them.

use gnarl_common::{Error, Result};
use gnarl_config::{Method, RunConfig};

use super::facts::Facts;
use super::graph::{Batches, BlockSize};
use super::layers::Row;
use super::work::{PER_WEIGHT, TOUCHES, Work, preparation_threads};

/// Number of pipeline stages that hold batches.
const STAGES: f64 = 3.0;

/// Rejects sampling methods that are not predicted.
pub(super) fn check(config: &RunConfig) -> Result<()> {
    let method = config.sample.method;
    match method.has_fanouts() && !method.is_by_walks() || method == Method::Full {
        true => Ok(()),
        false => Err(Error::usage("predictions do not support subgraphs and neighborhoods by walks")
            .hint("set train.strategy to 'gradient' or 'average', or sample.method to 'neighbor', 'labor', 'exact', 'weighted' or 'full'")),
    }
}

/// The work of a rank on `batches`, one a step.
///
/// # Errors
/// If the model's sizes are invalid.
pub(super) fn work(facts: &Facts<'_>, config: &RunConfig, batches: &Batches) -> Result<Work> {
    let model = facts.model(config);
    let steps = batches.steps as f64;
    let mut work = Work { steps: batches.steps, ..Work::default() };
    let input = facts.graph.inputs(&model, &batches.inputs);
    let mut rows = input.projected;
    for (layer, block) in facts.graph.layers(&model, &batches.blocks).iter().zip(&batches.blocks) {
        let BlockSize { sources, targets, groups, senders, edges } = *block;
        let by_rows = [
            layer.source.times(sources),
            layer.target.times(targets),
            layer.group.times(groups),
            layer.sender.times(senders),
        ];
        rows = by_rows.into_iter().fold(rows, Row::and);
        work.flops += edges * layer.edge_flops + layer.step_flops;
        work.gathered_bytes += edges * layer.moved(layer.columns);
    }
    work.flops += rows.flops;
    let fetched = input.feature_bytes + input.embedding_bytes;
    let edges: f64 = batches.blocks.iter().map(|block| block.edges).sum();
    let parameters = facts.parameters(config)?;
    let touched = TOUCHES * 4.0 * rows.values
        + 4.0 * PER_WEIGHT * parameters
        // Embeddings that a step reads are updated by it.
        + PER_WEIGHT * input.embedding_bytes;
    // Evaluation is layer by layer over all nodes.
    let widest = model.hidden.max(model.out_dim) as f64;
    let evaluation = 2.0 * 4.0 * facts.counts.nodes as f64 * widest;
    let graph = 4.0 * facts.counts.edges as f64 + 8.0 * facts.counts.nodes as f64;
    let beside = preparation_threads(config) - 1.0;
    let ahead = 1.0 + STAGES * (config.train.prefetch as f64 + beside);
    Ok(Work {
        sampled_edges: steps * edges,
        fetched_bytes: steps * fetched,
        flops: steps * work.flops,
        nonzeros: steps * rows.nonzeros,
        weight_bytes: steps * rows.weights,
        gathered_bytes: steps * work.gathered_bytes,
        streamed_bytes: steps * touched,
        memory_bytes: graph
            + evaluation
            + ahead.min(steps) * (fetched + 8.0 * edges)
            // Values and their gradients, and as much in buffers that other batches used.
            + 4.0 * 4.0 * rows.values
            + 4.0 * PER_WEIGHT * (parameters + facts.graph.embedding_values(&model)),
        ..work
    })
}

/// Adds the exchange of embeddings on `batches`: they come from the ranks that own them, and their gradients go back.
pub(super) fn exchange(
    facts: &Facts<'_>,
    (config, ranks): (&RunConfig, usize),
    batches: &Batches,
    work: &mut Work,
) {
    let steps = work.steps as f64;
    let others = (ranks - 1) as f64;
    let embeddings = facts.graph.inputs(&facts.model(config), &batches.inputs).embedding_bytes;
    if embeddings > 0.0 {
        work.sent_bytes += 2.0 * steps * embeddings * others / ranks as f64;
        work.messages += 3.0 * steps * others;
    }
}

/// Bytes that a rank sends for an all-reduce over `ranks` of as many values: its shares to the
/// others, and the sums of its own share to the others.
pub(super) fn summed(values: f64, ranks: usize) -> f64 {
    2.0 * 4.0 * values * (ranks - 1) as f64 / ranks as f64
}
