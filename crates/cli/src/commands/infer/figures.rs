//! Figures of finished inferences.

use gnarl_infer::Figures;
use serde_json::{Value, json};

/// Figures of each layer, of one pass over the model after the other.
pub(super) fn layers(figures: &[Figures]) -> Vec<Value> {
    let each = figures.iter().flat_map(|figures| &figures.layers);
    each.map(|layer| {
        json!({
            "nodes": layer.nodes,
            "inputs": layer.inputs,
            "ranges": layer.ranges,
            "seconds": layer.seconds,
            "file_bytes": layer.spilled,
        })
    })
    .collect()
}
