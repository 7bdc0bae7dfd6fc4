//! Predictions for `tensor`: the whole graph in each step, in tensor parallelism (NeutronTP,
//! section 3.2 and 4.1).

use gnarl_common::Result;
use gnarl_common::threads::even_share;
use gnarl_config::{RunConfig, Strategy};
use gnarl_nn::models::{ModelConfig, check_columns};

use super::facts::Facts;
use super::layers::{KEPT, Layer, Row, layers};
use super::predict::Predict;
use super::sampled;
use super::work::{PER_WEIGHT, TOUCHES, Work};

/// Bytes per edge: in its destination's list, and, unless the graph is symmetric, in its
/// source's with the edge's position.
const PER_EDGE: [f64; 2] = [4.0, 12.0];
/// Bytes per node: offsets of both lists, its id and its degree.
const PER_NODE: f64 = 20.0;

/// Tensor parallelism.
pub(super) struct Tensor;

impl Predict for Tensor {
    fn strategy(&self) -> Strategy {
        Strategy::Tensor
    }

    fn check(&self, facts: &Facts<'_>, config: &RunConfig) -> Result<()> {
        check_columns(&facts.model(config))
    }

    fn work(&self, facts: &Facts<'_>, config: &RunConfig) -> Result<Work> {
        let (model, ranks) = (facts.model(config), config.train.workers);
        let layers = shared(&model, facts);
        let nodes = facts.counts.nodes as f64;
        let (rows, edges) = ((nodes / ranks as f64).ceil(), facts.counts.edges as f64);
        let (mut work, mut values) = (Work { steps: 1, ..Work::default() }, 0.0);
        let mut widest: f64 = 0.0;
        for layer in &layers {
            let both = [layer.source, layer.target];
            let sum = |of: fn(&Row) -> f64| both.iter().map(of).sum::<f64>();
            work.flops += rows * sum(|row| row.flops);
            let columns = layer.columns.div_ceil(ranks);
            work.nonzeros += rows * sum(|row| row.nonzeros);
            work.weight_bytes += rows * sum(|row| row.weights);
            if !kept(&model, layer) {
                work.gathered_bytes += edges * layer.moved(columns);
            }
            values += rows * sum(|row| row.values as f64) + nodes * columns as f64;
            widest = widest.max(nodes * columns as f64);
        }
        let parameters = facts.parameters(config)?;
        let sent = exchanged(&model, &layers, facts.counts.nodes, ranks);
        let summed = sampled::summed(parameters + 2.0, ranks);
        work.sent_bytes = (sent.forward + sent.backward) as f64 / ranks as f64 + summed;
        work.messages = (exchanges(&model, &layers) + 2.0) * (ranks - 1) as f64;
        work.streamed_bytes = TOUCHES * 4.0 * values + 4.0 * PER_WEIGHT * parameters;
        let per_edge = PER_EDGE[usize::from(!facts.counts.symmetric || model.name == "gat")];
        // Where messages are plain sums, layers save their rows alone, and gradients reuse their
        // buffers.
        let held = if model.name == "gat" { 2.0 * values } else { values / KEPT as f64 };
        work.memory_bytes = per_edge * edges
            + PER_NODE * nodes
            + rows * facts.counts.row_bytes
            // An exchange holds its send and receive buffers in addition.
            + 4.0 * (held + 2.0 * widest)
            + 4.0 * PER_WEIGHT * parameters;
        if let Some(limit) = config.tensor.memory {
            work.memory_bytes = work.memory_bytes.min(limit.as_u64() as f64 / ranks as f64);
        }
        Ok(work)
    }
}

/// The layers in tensor parallelism: each exchanges the narrower of its input and its output.
fn shared(model: &ModelConfig, facts: &Facts<'_>) -> Vec<Layer> {
    let sparse = facts.nonzeros.is_some();
    layers(model, facts.nonzeros, &|i, input, output| i == 0 && sparse || output < input)
}

/// Returns whether the layer's aggregate is cached from the first epoch on.
fn kept(model: &ModelConfig, layer: &Layer) -> bool {
    let paper = if ["gcn", "gat"].contains(&model.name.as_str()) { model.dropout } else { 0.0 };
    let dropped = if model.name == "sgc" { 0.0 } else { model.input_dropout.unwrap_or(paper) };
    layer.constant && dropped == 0.0
}

/// Layers between whose messages rows and columns are redistributed: where nothing is computed on
/// rows between messages the first stands for all.
fn exchanging<'l>(model: &ModelConfig, layers: &'l [Layer]) -> &'l [Layer] {
    let once = model.decoupled || model.name == "sgc";
    if once { &layers[..layers.len().min(1)] } else { layers }
}

/// Bytes that all ranks send in redistributions of rows and feature slices.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ExchangeBytes {
    /// Of the forward pass.
    pub forward: u64,
    /// Of the backward pass.
    pub backward: u64,
}

/// Bytes of redistribution in an epoch over all ranks, from the second epoch on.
pub(super) fn exchanged(
    model: &ModelConfig,
    layers: &[Layer],
    nodes: u64,
    ranks: usize,
) -> ExchangeBytes {
    let share = |of: u64, rank: usize| even_share(of as usize, rank, ranks).len() as u64;
    let stays = |columns: u64| (0..ranks).map(|r| share(nodes, r) * share(columns, r)).sum::<u64>();
    // A split and a gather, of all values but those that stay where they are.
    let both = |columns: u64| 2 * 4 * (nodes * columns - stays(columns));
    let mut sent = ExchangeBytes::default();
    for layer in exchanging(model, layers).iter().filter(|l| l.columns > 0 && !kept(model, l)) {
        let scores = 4 * (ranks as u64 - 1) * nodes * layer.scores as u64;
        let once = both(layer.columns as u64) + scores;
        sent.forward += once;
        sent.backward += if layer.constant { 0 } else { once };
    }
    sent
}

/// Number of exchanges.
fn exchanges(model: &ModelConfig, layers: &[Layer]) -> f64 {
    let each = |layer: &Layer| match (layer.columns, kept(model, layer)) {
        (0, _) | (_, true) => 0.0,
        _ => {
            let forward = if layer.scores > 0 { 3.0 } else { 2.0 };
            if layer.constant { forward } else { 2.0 * forward }
        }
    };
    exchanging(model, layers).iter().map(each).sum()
}
