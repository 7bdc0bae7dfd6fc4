//! Encoders of homogeneous graphs.

use std::sync::Arc;

use gnarl_common::rng::Key;
use gnarl_common::{Error, Result};
use gnarl_config::{Method, RunConfig};
use gnarl_engine::Communicator;
use gnarl_graph::Dataset;
use gnarl_graph::blocks::{Block, MiniBatch};
use gnarl_infer::{Budget, Figures};
use gnarl_nn::models::{Model, ModelConfig};
use gnarl_nn::{Params, ParamsBuilder, Tape, Tensor, Var};
use gnarl_sample::{Sampler, Scratch};

use super::budget::budget;
use super::course::Course;
use super::layers;
use super::samplers::sampler;
use super::{Encoder, Keep, Output, Outputs, Source};
use crate::data::batch::Input;
use crate::data::edge_set::{EdgeSet, Ways};
use crate::data::graph::{Graph, Topology};
use crate::data::packed::rows::OF_NODES;
use crate::data::packed::{self, Columns};
use crate::data::resident::Resident;
use crate::data::seeds::Seeds;
use crate::embeddings::Rows;
use crate::registry::{BuildSampler, Registry};
use crate::step::tensor_parallel::HomoColumns;

/// A homogeneous model and its message graph, with edges in both directions whatever their
/// relation.
pub(crate) struct Homogeneous {
    model: Arc<dyn Model>,
    graph: Arc<Graph>,
    /// The program's own sampler, if the run names one.
    sampler: Option<Arc<BuildSampler>>,
    /// Memory of inference.
    budget: Budget,
    /// Most values of a row in any layer.
    width: usize,
}

impl Homogeneous {
    /// Edge types of edges and of their reverses, whatever their relation.
    pub const WAYS: Ways = Ways { forth: 0, back: Some(0) };

    /// The model of `config` over `graph`, whose embeddings are `width` wide, and its parameters added to
    /// `params`.
    ///
    /// # Errors
    /// If the model is unknown, or sizes are impossible.
    pub fn new(
        (config, registry): (&RunConfig, &Registry),
        graph: Arc<Graph>,
        width: usize,
        params: &mut ParamsBuilder,
    ) -> Result<Self> {
        let sizes = ModelConfig {
            in_dim: graph.width(),
            edge_dim: graph.edge_width(),
            out_dim: width,
            ..config.model.clone()
        };
        let own = registry.sampler(config)?;
        if matches!(graph.topology, Topology::Partitioned(_)) {
            sampler(config, &graph, &[])?;
        }
        let (budget, width) = (budget(config), sizes.in_dim.max(sizes.hidden).max(width));
        let model = registry.model(&sizes, params)?.into();
        Ok(Self { model, graph, sampler: own, budget, width })
    }
}

/// Blocks, and the features of their input nodes.
pub(crate) struct Prepared {
    blocks: MiniBatch,
    /// None on the way to a process that asks for them by itself.
    input: Option<Input>,
}

/// The outputs of sampled blocks.
fn outputs(blocks: &mut MiniBatch) -> Outputs {
    let rows = std::mem::take(&mut blocks.targets);
    let nodes = rows.iter().map(|&row| blocks.input_nodes[row as usize]).collect();
    Outputs { rows, nodes: vec![nodes], weights: blocks.target_weights.take() }
}

impl Encoder for Homogeneous {
    type Sampler = Box<dyn Sampler>;
    type Sampled = MiniBatch;
    type Batch = Prepared;
    type Columns<'a> = HomoColumns<'a>;

    fn on_part(&self, config: &RunConfig, part: &Dataset) -> Result<Self> {
        let graph = Arc::new(Graph::open(part, config)?);
        let (model, sampler) = (self.model.clone(), self.sampler.clone());
        Ok(Self { model, graph, sampler, budget: self.budget.clone(), width: self.width })
    }

    fn on_resident(&self, resident: &Resident) -> Result<Self> {
        let lists = resident.graph.sample_graph()?;
        let features = resident.features[0].clone();
        let features = features.ok_or_else(|| Error::invalid("nodes of parts have no features"))?;
        let graph = Arc::new(Graph::local(lists, Box::new(features)));
        let (model, sampler) = (self.model.clone(), self.sampler.clone());
        Ok(Self { model, graph, sampler, budget: self.budget.clone(), width: self.width })
    }

    fn seed_ids(&self) -> Vec<u64> {
        let nodes = 0..self.graph.core() as u32;
        match &self.graph.topology {
            Topology::Local(graph) => nodes.map(|node| graph.id(node)).collect(),
            Topology::Partitioned(_) => nodes.map(u64::from).collect(),
        }
    }

    fn ways(&self, _: u32) -> Ways {
        Self::WAYS
    }

    fn sampler(&self, config: &RunConfig, seeds: &[u32]) -> Result<Box<dyn Sampler>> {
        match (&self.sampler, &self.graph.topology) {
            // Leakage checks take all neighbors.
            (Some(build), Topology::Local(graph)) if config.sample.method == Method::Custom => {
                build(config, graph, seeds)
            }
            _ => sampler(config, &self.graph, seeds),
        }
    }

    fn batches(
        &self,
        sampler: &Box<dyn Sampler>,
        seeds: &[u32],
        size: usize,
        order: Key,
    ) -> Vec<Vec<u32>> {
        sampler.epoch(seeds, size, order)
    }

    fn sample(
        &self,
        sampler: &Box<dyn Sampler>,
        seeds: &Seeds,
        key: Key,
        scratch: &mut Scratch,
    ) -> Result<MiniBatch> {
        let nodes = &seeds.nodes[0];
        let batch = match seeds.times.first() {
            Some(times) => sampler.sample_as_of(nodes, times, key, scratch)?,
            None => sampler.sample(nodes, key, scratch)?,
        };
        let width = self.graph.edge_width();
        let lacks = |block: &Block| block.edge_features().is_none_or(|rows| rows.width != width);
        match width > 0 && batch.blocks.iter().any(|block| lacks(block)) {
            false => Ok(batch),
            true => Err(Error::usage(format!(
                "sampler '{}' makes blocks without the features of edges, which the model reads",
                sampler.name()
            ))
            .hint("add them by Block::with_edge_features, or leave out model.edge_features")),
        }
    }

    fn remove(&self, batch: &mut MiniBatch, edges: &EdgeSet) {
        for block in &mut batch.blocks {
            *block = Arc::new(block.without(|src, dst| edges.contains(&(0, src, dst))));
        }
    }

    fn edges(&self, batch: &MiniBatch) -> EdgeSet {
        let mut edges = EdgeSet::new();
        for block in &batch.blocks {
            let ids = block.ids();
            for dst in 0..block.num_dst() {
                let sources = block.sources(dst).iter();
                edges.extend(sources.map(|&src| (0, ids[src as usize], ids[dst])));
            }
        }
        edges
    }

    fn fetch(&self, mut blocks: MiniBatch) -> Result<(Prepared, Outputs)> {
        let input = Some(self.graph.features_of_batch(&blocks.input_nodes)?);
        let outputs = outputs(&mut blocks);
        Ok((Prepared { blocks, input }, outputs))
    }

    #[cfg(feature = "serve")]
    fn features_apart(&self) -> Option<usize> {
        // Sparse features are neither cached nor shared.
        (!self.graph.features.is_sparse()).then(|| self.graph.width())
    }

    #[cfg(feature = "serve")]
    fn without_features(&self, mut blocks: MiniBatch) -> Result<(Prepared, Outputs)> {
        let outputs = outputs(&mut blocks);
        Ok((Prepared { blocks, input: None }, outputs))
    }

    #[cfg(feature = "serve")]
    fn pack_features(&self, nodes: &[u32], out: &mut Columns) -> Result<()> {
        let input = self.graph.features_of_batch(nodes)?;
        packed::rows::pack((input, OF_NODES), self.graph.features.exact_type(), out);
        Ok(())
    }

    fn pack(&self, Prepared { blocks, input }: Prepared, out: &mut Columns) -> Result<()> {
        packed::blocks::pack(&blocks.blocks, out);
        if let Some(input) = input {
            packed::rows::pack((input, OF_NODES), self.graph.features.exact_type(), out);
        }
        Ok(())
    }

    fn unpack(&self, columns: &mut Columns) -> Result<Prepared> {
        let blocks = packed::blocks::unpack(columns)?;
        let nodes = blocks.first().map_or(0, |block| block.num_src());
        let input = packed::rows::unpack(columns, (OF_NODES, nodes))?;
        if input.width() != self.graph.width() {
            return Err(Error::invalid(format!(
                "features of the batch are {} wide, those of the dataset {}",
                input.width(),
                self.graph.width()
            )));
        }
        let width = self.graph.edge_width();
        let of_edges = |block: &Arc<Block>| block.edge_features().map_or(0, |rows| rows.width);
        if let Some(found) = blocks.iter().map(of_edges).find(|&found| found != width) {
            return Err(Error::invalid(format!(
                "features of edges of the batch are {found} wide, those of the model's messages {width}"
            )));
        }
        let blocks = MiniBatch {
            blocks,
            input_nodes: Vec::new(),
            targets: Vec::new(),
            target_weights: None,
        };
        Ok(Prepared { blocks, input: Some(input) })
    }

    /// Few models need the input layer's transpose; they build it on first use.
    fn prepare(&self, batch: &Prepared) {
        batch.blocks.blocks.iter().skip(1).for_each(|block| {
            block.transpose();
        });
    }

    fn num_edges(&self, batch: &Prepared) -> usize {
        batch.blocks.num_edges()
    }

    fn forward<'b>(
        &self,
        tape: &mut Tape<'b>,
        batch: &'b Prepared,
        _: Vec<Tensor>,
    ) -> Result<(Var, Vec<Var>)> {
        let input = batch.input.as_ref();
        let x = input.ok_or_else(|| Error::invalid("a batch without features"))?.on(tape);
        Ok((self.model.forward(tape, &batch.blocks.blocks, x)?, Vec::new()))
    }

    fn num_nodes(&self) -> Vec<usize> {
        vec![self.graph.core()]
    }

    fn infer(
        &self,
        (params, _): (&Params, &[Rows<'_>]),
        (output, wanted): (Output, &[(usize, Vec<u32>)]),
        course: &Course<'_>,
        keep: &mut Keep<'_>,
    ) -> Result<Figures> {
        let nodes = wanted.iter().flat_map(|(_, nodes)| nodes).copied().collect();
        let model = (self.model.as_ref(), params);
        let wanted = (nodes, output, self.width);
        layers::infer(model, &self.graph, wanted, (course, &self.budget), |nodes, rows| {
            keep(0, nodes, rows)
        })
    }

    fn is_partitioned(&self) -> bool {
        matches!(self.graph.topology, Topology::Partitioned(_))
    }

    fn by_columns<'a>(&'a self, comm: &'a dyn Communicator) -> Result<HomoColumns<'a>> {
        HomoColumns::new(self.model.as_ref(), &self.graph, comm)
    }

    fn staged(&self) -> Option<Source<'_>> {
        Some(Source { model: self.model.as_ref(), graph: &self.graph })
    }

    fn cached(&self) -> [u64; 2] {
        let stats = self.graph.features.cache_stats().unwrap_or_default();
        [stats.hits, stats.misses]
    }
}
