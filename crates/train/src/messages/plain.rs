//! Rows that a model without types puts out, which hears neighbours over edges in both directions,
//! whatever their relation.

use std::sync::Arc;

use gnarl_engine::Communicator;
use gnarl_graph::rng::Key;
use gnarl_graph::{Buf, Csc, Dataset, Labels, Result};
use gnarl_nn::models::{self, Model};
use gnarl_nn::{Params, ParamsBuilder, Tape, Tensor, Var};
use gnarl_sample::negatives::Triples;
use gnarl_sample::{MiniBatch, SampleGraph, Sampler, Scratch};
use gnarl_store::MappedFeatures;

use super::{MessageEdges, MessageModel, TypedEdges, Ways};
use crate::config::RunConfig;
use crate::embeddings::Rows;
use crate::evaluate::logits;
use crate::nodes::{sampler, step};
use crate::pipeline::{Input, rows};
use crate::task::{TaskGraph, Topology, Whole, features_of};
use crate::tensor::PlainColumns;

/// A model and the graph it hears neighbours over.
pub(crate) struct PlainEncoder {
    model: Box<dyn Model>,
    graph: TaskGraph,
}

impl PlainEncoder {
    /// How edges pass messages, whatever their relation.
    pub const WAYS: Ways = Ways { forth: 0, back: Some(0) };

    /// The model of `config`, whose rows are `width` wide, and its parameters added to `params`.
    ///
    /// # Errors
    /// If the model is unknown, or nodes have no features.
    pub fn new(
        config: &RunConfig,
        dataset: &Dataset,
        edges: &MessageEdges<'_>,
        width: usize,
        params: &mut ParamsBuilder,
    ) -> Result<Self> {
        let graph = message_graph(config, dataset, edges)?;
        let mut sizes = config.model.clone();
        (sizes.in_dim, sizes.out_dim) = (graph.width(), width);
        Ok(Self { model: models::add(&sizes, params)?, graph })
    }
}

/// The message graph of a dataset: edges in both directions.
fn message_graph(
    config: &RunConfig,
    dataset: &Dataset,
    edges: &MessageEdges<'_>,
) -> Result<TaskGraph> {
    let Triples { heads, tails, .. } = edges.edges;
    let both = heads.iter().zip(tails).flat_map(|(&h, &t)| [(h, t), (t, h)]);
    let mut pairs: Vec<(u32, u32)> = both.collect();
    pairs.sort_unstable_by_key(|&(source, destination)| (destination, source));
    pairs.dedup();
    let graph = SampleGraph::new(Csc::from_edges(edges.nodes, &pairs))?;
    let none: Buf<i32> = Vec::new().into();
    Ok(TaskGraph {
        topology: Topology::Held(graph),
        features: Box::new(MappedFeatures::new(features_of(dataset)?, config.dataset.normalize)?),
        labels: Labels::Single { classes: none, count: 0 },
        train: Vec::new(),
        valid: Vec::new(),
        test: Vec::new(),
        whole: Whole::default(),
    })
}

/// A batch, and the features of its input nodes.
pub(crate) struct Plain {
    batch: MiniBatch,
    input: Input,
}

impl MessageModel for PlainEncoder {
    type Sampler = Box<dyn Sampler>;
    type Sampled = MiniBatch;
    type Batch = Plain;
    type Columns<'a> = PlainColumns<'a>;

    fn ways(&self, _: u32) -> Ways {
        Self::WAYS
    }

    fn rows(&self, params: &Params, _: &[Rows<'_>]) -> Result<Vec<Tensor>> {
        Ok(vec![logits(self.model.as_ref(), params, &self.graph)?])
    }

    fn sampler(&self, config: &RunConfig) -> Result<Box<dyn Sampler>> {
        sampler(config, &self.graph)
    }

    fn sample(
        &self,
        sampler: &Box<dyn Sampler>,
        nodes: &[Vec<u32>],
        key: Key,
        scratch: &mut Scratch,
    ) -> Result<MiniBatch> {
        sampler.sample(&nodes[0], key, scratch)
    }

    fn remove(&self, batch: &mut MiniBatch, edges: &TypedEdges) {
        for block in &mut batch.blocks {
            *block = Arc::new(block.without(|src, dst| edges.contains(&(0, src, dst))));
        }
    }

    fn edges(&self, batch: &MiniBatch) -> TypedEdges {
        let mut edges = TypedEdges::new();
        for block in &batch.blocks {
            let ids = block.ids();
            for dst in 0..block.num_dst() {
                let sources = block.sources(dst).iter();
                edges.extend(sources.map(|&src| (0, ids[src as usize], ids[dst])));
            }
        }
        edges
    }

    fn fetch(&self, batch: MiniBatch) -> Result<(Plain, Vec<u32>)> {
        let input = rows(self.graph.features.as_ref(), &batch.input_nodes)?;
        // The model puts out the rows of the seeds, in the order of `targets`.
        let places = batch.targets.clone();
        Ok((Plain { batch, input }, places))
    }

    fn prepare(&self, prepared: &Plain) {
        step::turn_round(&prepared.batch);
    }

    fn num_edges(&self, prepared: &Plain) -> usize {
        prepared.batch.num_edges()
    }

    fn forward<'b>(
        &self,
        tape: &mut Tape<'b>,
        prepared: &'b Plain,
        _: Vec<Tensor>,
    ) -> Result<(Var, Vec<Var>)> {
        let x = step::input(tape, &prepared.input);
        Ok((self.model.forward(tape, &prepared.batch.blocks, x)?, Vec::new()))
    }

    fn by_columns<'a>(&'a self, rank: &'a dyn Communicator) -> Result<PlainColumns<'a>> {
        PlainColumns::new(self.model.as_ref(), &self.graph, rank)
    }
}
