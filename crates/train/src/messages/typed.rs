//! Rows that a model with types puts out. Nodes without features have learnt rows.

use std::sync::{Mutex, PoisonError};

use gnarl_engine::Communicator;
use gnarl_graph::Result;
use gnarl_graph::rng::Key;
use gnarl_nn::models::ModelConfig;
use gnarl_nn::models::typed::{self, TypedModel};
use gnarl_nn::{Params, ParamsBuilder, RelBlock, Tape, Tensor, Var};
use gnarl_sample::{Scratch, TypedBatch, TypedFanouts, TypedSampler, TypedScratch};

use super::{MessageModel, TypedEdges, Ways};
use crate::config::RunConfig;
use crate::embeddings::{Rows, TableSpec};
use crate::pipeline::Input;
use crate::tensor::TypedColumns;
use crate::typed::{TypedTaskGraph, fanouts, rows, table};

/// A model and the graph it hears neighbours over.
pub(crate) struct TypedEncoder {
    model: Box<dyn TypedModel>,
    graph: TypedTaskGraph,
    fanouts: TypedFanouts,
    /// Numbers of the node types that ends of edges have, each once.
    ends: Vec<usize>,
    /// How edges of each relation pass messages.
    ways: Vec<Ways>,
}

impl TypedEncoder {
    /// The model of `config` over `graph`, whose rows are `width` wide, and its parameters added to
    /// `params`.
    ///
    /// # Errors
    /// If the model is unknown, or sizes are impossible.
    pub fn new(
        config: &RunConfig,
        graph: TypedTaskGraph,
        (ends, ways): (Vec<usize>, Vec<Ways>),
        width: usize,
        params: &mut ParamsBuilder,
    ) -> Result<Self> {
        let sizes = ModelConfig { out_dim: width, ..config.model.clone() };
        let model = typed::add(&sizes, graph.graph.schema(), &graph.sources(), params)?;
        let (fanouts, _) = fanouts(config)?;
        Ok(Self { model, graph, fanouts, ends, ways })
    }

    /// The learnt rows of nodes that have no features.
    pub fn tables(&self, config: &RunConfig) -> Result<Vec<TableSpec>> {
        let of = |(number, name)| table(config, name, self.graph.graph.num_nodes(number) as u64);
        self.graph.learnt().map(of).collect()
    }
}

/// Draws neighbours over each edge type.
pub(crate) struct Draw {
    sampler: TypedSampler,
    scratch: Mutex<TypedScratch>,
}

/// A batch, and what its input nodes have.
pub(crate) struct Typed {
    blocks: Vec<RelBlock>,
    features: Vec<Option<Input>>,
    /// Ids of the input nodes of each type whose rows are learnt.
    learnt: Vec<Vec<u64>>,
    edges: usize,
}

impl MessageModel for TypedEncoder {
    type Sampler = Draw;
    type Sampled = TypedBatch;
    type Batch = Typed;
    type Columns<'a> = TypedColumns<'a>;

    fn ways(&self, relation: u32) -> Ways {
        self.ways[relation as usize]
    }

    fn rows(&self, params: &Params, tables: &[Rows<'_>]) -> Result<Vec<Tensor>> {
        let all = |&node_type: &usize| {
            (node_type, (0..self.graph.graph.num_nodes(node_type) as u32).collect())
        };
        let wanted: Vec<(usize, Vec<u32>)> = self.ends.iter().map(all).collect();
        let graph = (&self.graph, &self.fanouts);
        rows(self.model.as_ref(), params, tables, graph, &wanted)
    }

    fn sampler(&self, config: &RunConfig) -> Result<Draw> {
        let (fanouts, rule) = fanouts(config)?;
        let sampler = TypedSampler::new(&self.graph.graph, &fanouts, rule)?;
        Ok(Draw { sampler, scratch: Mutex::default() })
    }

    fn sample(
        &self,
        draw: &Draw,
        nodes: &[Vec<u32>],
        key: Key,
        _: &mut Scratch,
    ) -> Result<TypedBatch> {
        let mut scratch = draw.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        let seeds = self.ends.iter().copied().zip(nodes.iter().map(Vec::as_slice));
        draw.sampler.sample_types(&seeds.collect::<Vec<_>>(), key, &mut scratch)
    }

    fn remove(&self, batch: &mut TypedBatch, edges: &TypedEdges) {
        batch.remove(|edge_type, src, dst| edges.contains(&(edge_type, src, dst)));
    }

    fn edges(&self, batch: &TypedBatch) -> TypedEdges {
        let mut edges = TypedEdges::new();
        for block in &batch.blocks {
            for (number, relation) in block.relations().iter().enumerate() {
                let (src, dst) = batch.schema.ends(number);
                let (sources, destinations) = (&batch.ids[src], &batch.ids[dst]);
                for (row, &dst) in destinations.iter().enumerate().take(relation.num_dst()) {
                    let heard = relation.sources(row).iter();
                    edges.extend(heard.map(|&src| (number, sources[src as usize], dst)));
                }
            }
        }
        edges
    }

    fn fetch(&self, mut batch: TypedBatch) -> Result<(Typed, Vec<u32>)> {
        let graph = &self.graph;
        let fused = batch.fuse(&graph.graph)?;
        let blocks = RelBlock::all(&fused, graph.graph.schema())?;
        let features = graph.features(&batch.input_nodes)?;
        let edges = batch.num_edges();
        let learnt = graph.learnt().map(|(number, _)| std::mem::take(&mut batch.ids[number]));
        Ok((Typed { blocks, features, learnt: learnt.collect(), edges }, fused.targets))
    }

    fn prepare(&self, batch: &Typed) {
        batch.blocks.iter().for_each(RelBlock::prepare);
    }

    fn num_edges(&self, batch: &Typed) -> usize {
        batch.edges
    }

    fn learnt<'b>(&self, batch: &'b Typed) -> &'b [Vec<u64>] {
        &batch.learnt
    }

    fn forward<'b>(
        &self,
        tape: &mut Tape<'b>,
        batch: &'b Typed,
        rows: Vec<Tensor>,
    ) -> Result<(Var, Vec<Var>)> {
        let (rows, leaves) = self.graph.leaves(tape, &batch.features, rows);
        Ok((self.model.forward(tape, &batch.blocks, &rows)?, leaves))
    }

    fn by_columns<'a>(&'a self, rank: &'a dyn Communicator) -> Result<TypedColumns<'a>> {
        TypedColumns::new(self.model.as_ref(), &self.graph, self.ends.clone(), rank)
    }
}
