//! Cost of sampled mini-batches, for the strategies that train on them.

use gnarl_common::{Error, Result};
use gnarl_config::{Method, RunConfig};
use gnarl_partition::Batches;

use super::facts::Facts;
use super::layers::{Row, layers};
use super::work::{PER_WEIGHT, TOUCHES, Work};

/// Multiply-adds of a product that take as long as one of a gathered row, as estimated by layers.
const PRODUCT_SPEEDUP: f64 = 32.0;
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
pub(super) fn work(facts: &Facts<'_>, config: &RunConfig, batches: &Batches) -> Result<Work> {
    let (model, hops) = (facts.model(config), batches.edges.len());
    let steps = batches.steps as f64;
    // Input and output rows of layer `i`, and its edges; hops count from the seeds.
    let block = |i: usize| {
        let hop = hops - 1 - i;
        (batches.nodes[hop + 1], batches.nodes[hop], batches.edges[hop])
    };
    let maps_first = |i: usize, input: usize, output: usize| {
        let (sources, targets, edges) = block(i);
        let (input, output) = (input as f64, output as f64);
        let saved = (input - output) * edges * PRODUCT_SPEEDUP;
        i == 0 && facts.nonzeros.is_some()
            || input > output && (sources - targets) * input * output <= saved
    };
    let layers = layers(&model, facts.nonzeros, &maps_first);
    let mut work = Work { steps: batches.steps, ..Work::default() };
    let mut values = 0.0;
    for (i, layer) in layers.iter().enumerate() {
        let (sources, targets, edges) = block(i);
        let rows = |of: fn(&Row) -> f64| sources * of(&layer.source) + targets * of(&layer.target);
        work.flops += rows(|row| row.flops) + edges * layer.edge_flops;
        work.nonzeros += rows(|row| row.nonzeros);
        work.weight_bytes += rows(|row| row.weights);
        work.gathered_bytes += edges * layer.moved(layer.columns);
        values += rows(|row| row.values as f64);
    }
    let input = batches.nodes.last().copied().unwrap_or(0.0) * facts.counts.row_bytes;
    let edges: f64 = batches.edges.iter().sum();
    let parameters = facts.parameters(config)?;
    let touched = TOUCHES * 4.0 * values + 4.0 * PER_WEIGHT * parameters;
    // Evaluation is layer by layer over all nodes.
    let widest = model.hidden.max(facts.outputs) as f64;
    let evaluation = 2.0 * 4.0 * facts.counts.nodes as f64 * widest;
    let graph = 4.0 * facts.counts.edges as f64 + 8.0 * facts.counts.nodes as f64;
    let ahead = 1.0 + STAGES * config.train.prefetch as f64;
    Ok(Work {
        sampled_edges: steps * edges,
        fetched_bytes: steps * input,
        flops: steps * work.flops,
        nonzeros: steps * work.nonzeros,
        weight_bytes: steps * work.weight_bytes,
        gathered_bytes: steps * work.gathered_bytes,
        streamed_bytes: steps * touched,
        memory_bytes: graph
            + evaluation
            + ahead.min(steps) * (input + 8.0 * edges)
            // Values and their gradients, and as much in buffers that other batches used.
            + 4.0 * 4.0 * values
            + 4.0 * PER_WEIGHT * parameters,
        ..work
    })
}

/// Bytes that a rank sends for an all-reduce over `ranks` of as many values: its shares to the
/// others, and the sums of its own share to the others.
pub(super) fn summed(values: f64, ranks: usize) -> f64 {
    2.0 * 4.0 * values * (ranks - 1) as f64 / ranks as f64
}
