//! Heterogeneous graphs.

use std::collections::BTreeMap;

use gnarl_common::rng::Key;
use gnarl_common::{Context, Result};
use gnarl_config::{Method, RunConfig};
use gnarl_graph::blocks::Schema;
use gnarl_graph::{Dataset, Features, Triple};
use gnarl_nn::models::ModelConfig;
use gnarl_nn::models::heterogeneous::{self, Source};
use gnarl_partition::Within;

use super::degrees::Degrees;
use super::homogeneous::nonzeros;
use super::{Batches, BlockSize, InputCost, MessageGraph, Sliced};
use crate::layers::heterogeneous::{Pairs, layers, sliced};
use crate::layers::{Layer, product_of_input};

/// Bytes per edge over the whole graph: in lists by node and by group, and their transposes.
const EDGE_BYTES: f64 = 24.0;

/// A graph of several types; nodes without features have embeddings.
pub(crate) struct Heterogeneous {
    schema: Schema,
    degrees: Degrees,
    inputs: Vec<Input>,
}

/// The input of a node type.
struct Input {
    source: Source,
    /// Bytes of a node's features.
    bytes: f64,
    /// Non-zero values of a feature row, if rows are sparse.
    nonzeros: Option<f64>,
}

/// Mean bytes of a row of features.
fn row_bytes(features: &Features) -> f64 {
    let value = features.dtype().size() as f64;
    match nonzeros(features) {
        None => value * features.width() as f64,
        // Columns of 4 bytes beside the values.
        Some(nonzeros) => (value + 4.0) * nonzeros,
    }
}

impl Heterogeneous {
    /// The types of a dataset, with the training nodes `train` of a node type.
    ///
    /// # Errors
    /// If a file cannot be read, or there is no such type.
    pub fn of(dataset: &Dataset, target: &str, train: &[u32]) -> Result<Self> {
        let schema = Schema::of(dataset.manifest())?;
        let input = |name: &String| {
            Ok(match dataset.features(name)? {
                None => Input { source: Source::Embeddings, bytes: 0.0, nonzeros: None },
                Some(features) => Input {
                    source: Source::Features(features.width()),
                    bytes: row_bytes(&features),
                    nonzeros: nonzeros(&features),
                },
            })
        };
        let inputs = schema.node_types().iter().map(input).collect::<Result<_>>()?;
        let degrees = Degrees::of(dataset, schema.node_type(target)?, train)?;
        Ok(Self { degrees, inputs, schema })
    }

    fn sources(&self) -> Vec<Source> {
        self.inputs.iter().map(|input| input.source).collect()
    }

    /// The largest number of neighbors of a node over each edge type at each hop.
    fn fanouts(&self, config: &RunConfig) -> Result<Vec<Vec<f64>>> {
        let sample = &config.sample;
        let bound = |fanout: i64| if fanout < 0 { f64::INFINITY } else { fanout as f64 };
        let parsed = |key: &'static str, name: &String| -> Result<Triple> {
            name.parse::<Triple>().while_doing(|| key)
        };
        let mut own = BTreeMap::new();
        for (name, of_type) in &sample.edge_fanouts {
            own.insert(parsed("sample.edge_fanouts", name)?, of_type);
        }
        let path = sample.meta_path.iter().map(|name| parsed("sample.meta_path", name));
        let path = path.collect::<Result<Vec<_>>>()?;
        let hops = config.hops();
        let of = |triple: &Triple| -> Vec<f64> {
            if !path.is_empty() {
                let along = path.iter().zip(&hops);
                return along.map(|(at, &f)| if at == triple { bound(f) } else { 0.0 }).collect();
            }
            let each = own.get(triple).map_or(&hops, |of_type| *of_type);
            let all = |fanout: i64| {
                if sample.method == Method::Full && fanout != 0 { -1 } else { fanout }
            };
            each.iter().map(|&fanout| bound(all(fanout))).collect()
        };
        Ok(self.schema.edge_types().iter().map(of).collect())
    }

    /// Rows of the layer of each edge type in `hetero`, whose destinations are all nodes of their type; groups and
    /// senders of a block otherwise. `targets` are the block's by type.
    fn by_relation(&self, model: &ModelConfig, targets: &[f64], block: BlockSize) -> BlockSize {
        if model.name != "hetero" {
            return block;
        }
        let ends = (0..self.schema.edge_types().len()).map(|e| targets[self.schema.ends(e).1]);
        let groups = ends.sum();
        BlockSize { groups, senders: block.senders + groups, ..block }
    }
}

impl MessageGraph for Heterogeneous {
    fn model(&self, config: &ModelConfig) -> ModelConfig {
        ModelConfig { in_dim: config.input_width(), ..config.clone() }
    }

    fn parameters(&self, model: &ModelConfig) -> Result<f64> {
        let built = heterogeneous::build(model, &self.schema, &self.sources(), Key::new(0))?;
        Ok(built.1.len() as f64)
    }

    fn embedding_values(&self, model: &ModelConfig) -> f64 {
        let types = self.degrees.types.iter().zip(&self.inputs);
        let without = types.filter(|(_, input)| input.source == Source::Embeddings);
        without.map(|(t, _)| t.nodes).sum::<f64>() * model.input_width() as f64
    }

    fn lists(&self) -> f64 {
        self.degrees.types.iter().map(|t| t.nodes * t.into.len() as f64).sum()
    }

    fn can_be_decoupled(&self, model: &ModelConfig) -> bool {
        model.name == "rgcn"
    }

    fn batches(
        &self,
        config: &RunConfig,
        train: u64,
        ranks: usize,
        within: Within,
    ) -> Result<Batches> {
        if train == 0 {
            return Ok(Batches::default());
        }
        let Within { nodes: share, neighbors: near } = within;
        let batch = config.sample.batch_size as u64;
        let steps = if batch == 0 { 1 } else { train.div_ceil(batch) };
        let seeds = train as f64 / steps as f64 / ranks as f64;
        let fanouts = self.fanouts(config)?;
        let relations = self.degrees.edges.len();
        let mut reached = vec![0.0; relations];
        let mut nodes = self.degrees.nodes(seeds, (&reached, share));
        let mut blocks = Vec::new();
        for hop in 0..config.hops().len() {
            let fanout = |relation: usize| fanouts[relation][hop];
            let drawn = self.degrees.draw(seeds, (&reached, share, near), &fanout);
            reached.iter_mut().zip(&drawn.edges).for_each(|(all, more)| *all += more);
            let targets =
                std::mem::replace(&mut nodes, self.degrees.nodes(seeds, (&reached, share)));
            let block = BlockSize {
                sources: nodes.iter().sum(),
                targets: targets.iter().sum(),
                groups: drawn.groups,
                senders: self.degrees.senders(&drawn.edges, share),
                edges: drawn.edges.iter().sum(),
            };
            blocks.push(self.by_relation(&config.model, &targets, block));
        }
        blocks.reverse();
        Ok(Batches { steps, blocks, inputs: nodes })
    }

    fn whole(&self, model: &ModelConfig) -> (BlockSize, Vec<f64>) {
        let nodes: Vec<f64> = self.degrees.types.iter().map(|t| t.nodes).collect();
        let all = nodes.iter().sum();
        let (groups, senders) = self.degrees.pairs();
        let edges = self.degrees.edges.iter().sum();
        let block = BlockSize { sources: all, targets: all, groups, senders, edges };
        (self.by_relation(model, &nodes, block), nodes)
    }

    fn inputs(&self, model: &ModelConfig, rows: &[f64]) -> InputCost {
        let width = model.input_width();
        let mut cost = InputCost::default();
        for (input, &rows) in self.inputs.iter().zip(rows) {
            match input.source {
                Source::Embeddings => cost.embedding_bytes += rows * (4 * width) as f64,
                Source::Features(from) => {
                    cost.feature_bytes += rows * input.bytes;
                    let projected = product_of_input(input.nonzeros, from, width);
                    cost.projected = cost.projected.and(projected.times(rows));
                }
            }
        }
        cost
    }

    fn layers(&self, model: &ModelConfig, _: &[BlockSize]) -> Vec<Layer> {
        layers(model, self.degrees.edges.len())
    }

    fn check_columns(&self, model: &ModelConfig) -> Result<()> {
        heterogeneous::check_columns(model)
    }

    fn sliced(&self, model: &ModelConfig, ranks: usize) -> Sliced {
        let degrees = &self.degrees;
        let (groups, senders) = degrees.pairs();
        let nodes = degrees.types.iter().map(|t| t.nodes).sum();
        let pairs = Pairs { nodes, groups, senders, edges: degrees.edges.iter().sum() };
        let (layers, sent, exchanges) = sliced(model, degrees.edges.len(), &pairs, ranks);
        Sliced { layers, sent, exchanges, edge_bytes: EDGE_BYTES, kept: 1.0 }
    }
}
