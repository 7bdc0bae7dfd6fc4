//! Bytes of redistributions of rows and feature slices over homogeneous graphs (NeutronTP, section 3.2).

use gnarl_common::threads::even_share;
use gnarl_nn::models::ModelConfig;

use super::layers::Layer;

/// Bytes that all ranks send in redistributions of rows and feature slices.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ExchangeBytes {
    /// Of the forward pass.
    pub forward: u64,
    /// Of the backward pass.
    pub backward: u64,
}

/// Returns whether the layer's aggregate is cached from the first epoch on.
pub(super) fn is_kept(model: &ModelConfig, layer: &Layer) -> bool {
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
    for layer in exchanging(model, layers).iter().filter(|l| l.columns > 0 && !is_kept(model, l)) {
        let scores = 4 * (ranks as u64 - 1) * nodes * layer.scores as u64;
        let once = both(layer.columns as u64) + scores;
        sent.forward += once;
        sent.backward += if layer.constant { 0 } else { once };
    }
    sent
}

/// Number of exchanges.
pub(super) fn exchanges(model: &ModelConfig, layers: &[Layer]) -> f64 {
    let each = |layer: &Layer| match (layer.columns, is_kept(model, layer)) {
        (0, _) | (_, true) => 0.0,
        _ => {
            let forward = if layer.scores > 0 { 3.0 } else { 2.0 };
            if layer.constant { forward } else { 2.0 * forward }
        }
    };
    exchanging(model, layers).iter().map(each).sum()
}
