//! Rows that a model with types puts out: every relation is an edge type of the message graph, and so is
//! every relation turned round (Schlichtkrull et al., "Modeling Relational Data with Graph
//! Convolutional Networks", 2018, section 4). Nodes without features have learnt rows.

use std::sync::{Mutex, PoisonError};

use gnarl_graph::rng::Key;
use gnarl_graph::{Csc, Dataset, Result, Triple};
use gnarl_nn::models::ModelConfig;
use gnarl_nn::models::typed::{self, TypedModel};
use gnarl_nn::{Params, ParamsBuilder, RelBlock, Tape, Tensor, Var};
use gnarl_sample::{Scratch, TypedBatch, TypedFanouts, TypedGraph, TypedSampler, TypedScratch};
use gnarl_store::MappedFeatures;

use super::data::Edges;
use super::encoder::{MessageModel, TypedEdges};
use crate::config::RunConfig;
use crate::embeddings::{Rows, TableSpec};
use crate::pipeline::Input;
use crate::typed::{TypedTaskGraph, fanouts, rows, table};

/// The models that are encoders of this kind.
pub(super) const MODELS: [&str; 4] = ["rgcn", "rgat", "hgt", "hetero"];

/// A model and the graph it hears neighbours over.
pub(super) struct RelationalEncoder {
    model: Box<dyn TypedModel>,
    graph: TypedTaskGraph,
    fanouts: TypedFanouts,
    relations: usize,
}

impl RelationalEncoder {
    /// The model of `config`, whose rows are `width` wide, and its parameters added to `params`.
    ///
    /// # Errors
    /// If sizes are impossible, or features damaged.
    pub fn new(
        config: &RunConfig,
        dataset: &Dataset,
        edges: &Edges,
        width: usize,
        params: &mut ParamsBuilder,
    ) -> Result<Self> {
        let features = dataset.features(&edges.node_type)?;
        let features = features.map(|found| MappedFeatures::new(found, config.dataset.normalize));
        let graph = TypedTaskGraph::of_messages(message_graph(edges)?, features.transpose()?);
        let sizes = ModelConfig { out_dim: width, ..config.model.clone() };
        let model = typed::add(&sizes, graph.graph.schema(), &graph.sources(), params)?;
        let (fanouts, _) = fanouts(config)?;
        Ok(Self { model, graph, fanouts, relations: edges.relations })
    }

    /// The learnt rows of nodes, if they have no features.
    pub fn table(&self, config: &RunConfig, nodes: usize) -> Result<Option<TableSpec>> {
        let mut learnt = self.graph.learnt();
        learnt.next().map(|(_, name)| table(config, name, nodes as u64)).transpose()
    }
}

/// The training edges, an edge type for each relation and one for its reverse.
fn message_graph(edges: &Edges) -> Result<TypedGraph> {
    let (name, train) = (&edges.node_type, &edges.train);
    let mut of = vec![Vec::new(); 2 * edges.relations];
    for i in 0..train.len() {
        let relation = train.relations[i] as usize;
        of[relation].push((train.heads[i], train.tails[i]));
        of[relation + edges.relations].push((train.tails[i], train.heads[i]));
    }
    let mut graph = TypedGraph::new().with_nodes(name, edges.nodes)?;
    for (number, mut pairs) in of.into_iter().enumerate() {
        pairs.sort_unstable_by_key(|&(source, destination)| (destination, source));
        pairs.dedup();
        let relation = match number.checked_sub(edges.relations) {
            None => format!("relation-{number}"),
            Some(number) => format!("reverse-{number}"),
        };
        let triple = Triple { src: name.clone(), rel: relation, dst: name.clone() };
        graph = graph.with_edges(&triple, Csc::from_edges(edges.nodes, &pairs))?;
    }
    Ok(graph)
}

/// Draws neighbours over each edge type.
pub(super) struct Draw {
    sampler: TypedSampler,
    scratch: Mutex<TypedScratch>,
}

/// A batch, and what its input nodes have.
pub(super) struct Relational {
    blocks: Vec<RelBlock>,
    features: Vec<Option<Input>>,
    /// Ids of the input nodes whose rows are learnt: all or none.
    learnt: Vec<Vec<u64>>,
    edges: usize,
}

impl MessageModel for RelationalEncoder {
    type Sampler = Draw;
    type Sampled = TypedBatch;
    type Batch = Relational;

    fn edge_types(&self, relation: u32) -> [usize; 2] {
        [relation as usize, relation as usize + self.relations]
    }

    fn rows(&self, params: &Params, tables: &[Rows<'_>]) -> Result<Tensor> {
        let all: Vec<u32> = (0..self.graph.graph.num_nodes(0) as u32).collect();
        let graph = (&self.graph, &self.fanouts);
        rows(self.model.as_ref(), params, tables, graph, &all)
    }

    fn sampler(&self, config: &RunConfig) -> Result<Draw> {
        let (fanouts, rule) = fanouts(config)?;
        let sampler = TypedSampler::new(&self.graph.graph, &fanouts, rule)?;
        Ok(Draw { sampler, scratch: Mutex::default() })
    }

    fn sample(&self, draw: &Draw, nodes: &[u32], key: Key, _: &mut Scratch) -> Result<TypedBatch> {
        let mut scratch = draw.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        draw.sampler.sample(self.graph.node_type(), nodes, key, &mut scratch)
    }

    fn remove(&self, batch: &mut TypedBatch, edges: &TypedEdges) {
        batch.remove(|edge_type, src, dst| edges.contains(&(edge_type, src, dst)));
    }

    fn edges(&self, batch: &TypedBatch) -> TypedEdges {
        let (mut edges, ids) = (TypedEdges::new(), &batch.ids[0]);
        for block in &batch.blocks {
            for (number, relation) in block.relations().iter().enumerate() {
                for dst in 0..relation.num_dst() {
                    let sources = relation.sources(dst).iter();
                    edges.extend(sources.map(|&src| (number, ids[src as usize], ids[dst])));
                }
            }
        }
        edges
    }

    fn fetch(&self, batch: TypedBatch) -> Result<(Relational, Vec<u32>)> {
        let graph = &self.graph;
        let fused = batch.fuse(&graph.graph)?;
        let blocks = RelBlock::all(&fused, graph.graph.schema())?;
        let features = graph.features(&batch.input_nodes)?;
        let edges = batch.num_edges();
        let learnt = match graph.learnt().next() {
            Some(_) => batch.ids,
            None => Vec::new(),
        };
        Ok((Relational { blocks, features, learnt, edges }, fused.targets))
    }

    fn prepare(&self, batch: &Relational) {
        batch.blocks.iter().for_each(RelBlock::prepare);
    }

    fn num_edges(&self, batch: &Relational) -> usize {
        batch.edges
    }

    fn learnt<'b>(&self, batch: &'b Relational) -> &'b [Vec<u64>] {
        &batch.learnt
    }

    fn forward<'b>(
        &self,
        tape: &mut Tape<'b>,
        batch: &'b Relational,
        rows: Vec<Tensor>,
    ) -> Result<(Var, Vec<Var>)> {
        let (rows, leaves) = self.graph.leaves(tape, &batch.features, rows);
        Ok((self.model.forward(tape, &batch.blocks, &rows)?, leaves))
    }
}
