//! Homogeneous graphs.

use gnarl_common::Result;
use gnarl_common::rng::Key;
use gnarl_config::RunConfig;
use gnarl_graph::splits::features_of;
use gnarl_graph::{Dataset, Features};
use gnarl_nn::models::{self, ModelConfig};
use gnarl_partition::{Counts, Fanouts, Within};

use super::{Batches, BlockSize, InputCost, MessageGraph, Sliced};
use crate::exchange::{exchanged, exchanges, is_kept};
use crate::layers::{KEPT, Layer, layers};

/// Multiply-adds of a product that take as long as one of a gathered row, as estimated by layers.
const PRODUCT_SPEEDUP: f64 = 32.0;
/// Bytes per edge: in its destination's list, and, unless the graph is symmetric, in its
/// source's with the edge's position.
const PER_EDGE: [f64; 2] = [4.0, 12.0];

/// A graph of one node type and one edge type, with features.
pub(crate) struct Homogeneous {
    counts: Counts,
    /// Feature width.
    width: usize,
    /// Non-zero values of a feature row, if rows are sparse.
    nonzeros: Option<f64>,
}

impl Homogeneous {
    /// The only types of a dataset.
    ///
    /// # Errors
    /// If it has several, or nodes have no features.
    pub fn of(dataset: &Dataset, counts: &Counts) -> Result<Self> {
        let features = features_of(dataset)?;
        Ok(Self { counts: counts.clone(), width: features.width(), nonzeros: nonzeros(&features) })
    }
}

/// Mean number of non-zero values of a row, if rows are sparse.
pub(super) fn nonzeros(features: &Features) -> Option<f64> {
    match features {
        Features::Dense(_) => None,
        Features::Csr { indices, indptr, .. } => {
            Some(indices.len() as f64 / (indptr.len() - 1).max(1) as f64)
        }
    }
}

impl MessageGraph for Homogeneous {
    fn model(&self, config: &ModelConfig) -> ModelConfig {
        ModelConfig { in_dim: self.width, ..config.clone() }
    }

    fn parameters(&self, model: &ModelConfig) -> Result<f64> {
        Ok(models::build(model, Key::new(0))?.1.len() as f64)
    }

    fn embedding_values(&self, _: &ModelConfig) -> f64 {
        0.0
    }

    fn can_be_decoupled(&self, model: &ModelConfig) -> bool {
        ["gcn", "gat"].contains(&model.name.as_str())
    }

    fn lists(&self) -> f64 {
        self.counts.nodes as f64
    }

    fn batches(
        &self,
        config: &RunConfig,
        train: u64,
        ranks: usize,
        within: Within,
    ) -> Result<Batches> {
        let counts = Counts { train, ..self.counts.clone() };
        let each: Vec<u32> =
            config.hops().iter().map(|&f| u32::try_from(f).unwrap_or(u32::MAX)).collect();
        let fanouts = Fanouts { each: &each, batch: config.sample.batch_size as u64 };
        let found = gnarl_partition::Batches::expect(&counts, ranks, within, fanouts);
        let block = |hop: usize| BlockSize {
            sources: found.nodes[hop + 1],
            targets: found.nodes[hop],
            edges: found.edges[hop],
            ..BlockSize::default()
        };
        let blocks = (0..found.edges.len()).rev().map(block).collect();
        let inputs = vec![found.nodes.last().copied().unwrap_or(0.0)];
        Ok(Batches { steps: found.steps, blocks, inputs })
    }

    fn whole(&self, _: &ModelConfig) -> (BlockSize, Vec<f64>) {
        let nodes = self.counts.nodes as f64;
        let edges = self.counts.edges as f64;
        let block = BlockSize { sources: nodes, targets: nodes, edges, ..BlockSize::default() };
        (block, vec![nodes])
    }

    fn inputs(&self, _: &ModelConfig, rows: &[f64]) -> InputCost {
        let feature_bytes = rows.iter().sum::<f64>() * self.counts.row_bytes;
        InputCost { feature_bytes, ..InputCost::default() }
    }

    fn layers(&self, model: &ModelConfig, blocks: &[BlockSize]) -> Vec<Layer> {
        let maps_first = |i: usize, input: usize, output: usize| {
            let BlockSize { sources, targets, edges, .. } = blocks[i];
            let (input, output) = (input as f64, output as f64);
            let saved = (input - output) * edges * PRODUCT_SPEEDUP;
            i == 0 && self.nonzeros.is_some()
                || input > output && (sources - targets) * input * output <= saved
        };
        layers(model, self.nonzeros, &maps_first)
    }

    fn check_columns(&self, model: &ModelConfig) -> Result<()> {
        models::check_columns(model)
    }

    /// Each layer exchanges the narrower of its input and its output.
    fn sliced(&self, model: &ModelConfig, ranks: usize) -> Sliced {
        let sparse = self.nonzeros.is_some();
        let narrower = |i: usize, input: usize, output: usize| i == 0 && sparse || output < input;
        let layers = layers(model, self.nonzeros, &narrower);
        let attention = model.name == "gat";
        Sliced {
            sent: exchanged(model, &layers, self.counts.nodes, ranks),
            exchanges: exchanges(model, &layers),
            edge_bytes: PER_EDGE[usize::from(!self.counts.symmetric || attention)],
            // Where messages are plain sums, layers save their rows alone, and gradients reuse their
            // buffers. GAT saves projections and outputs, and decoupled coefficients as well.
            kept: match attention {
                true if model.decoupled => 2.0,
                true => 2.0 / (1 + KEPT) as f64,
                false => 1.0 / KEPT as f64,
            },
            layers: layers
                .into_iter()
                .map(|layer| Layer { cached: is_kept(model, &layer), ..layer })
                .collect(),
        }
    }
}
