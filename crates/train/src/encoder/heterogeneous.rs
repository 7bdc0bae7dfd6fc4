//! Encoders of heterogeneous graphs. Nodes without features have embeddings.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use gnarl_common::rng::Key;
use gnarl_common::{Error, Result};
use gnarl_config::RunConfig;
use gnarl_engine::Communicator;
use gnarl_graph::blocks::{FusedBatch, Schema};
use gnarl_graph::{Dataset, Triple};
use gnarl_infer::{Budget, Figures};
use gnarl_nn::models::ModelConfig;
use gnarl_nn::models::heterogeneous::{HeteroModel, Source};
use gnarl_nn::{Params, ParamsBuilder, RelBlock, Tape, Tensor, Var};
use gnarl_sample::{HeteroBatch, HeteroFanouts, HeteroScratch, Scratch};
use gnarl_store::FeatureStore;

use super::budget::budget;
use super::course::Course;
use super::layers::{HeteroLayers, SharesByType};
use super::samplers::fanouts;
use super::{Encoder, Keep, Output, Outputs};
use crate::data::batch::Input;
use crate::data::edge_set::{EdgeSet, Ways};
use crate::data::hetero_graph::{HeteroGraph, HeteroNeighbors};
use crate::data::packed::{self, Columns};
use crate::data::resident::Resident;
use crate::data::seeds::Seeds;
use crate::embeddings::{Rows, TableSpec};
use crate::registry::Registry;
use crate::step::tensor_parallel::HeteroColumns;

/// A heterogeneous model and its message graph.
pub(crate) struct Heterogeneous {
    model: Arc<dyn HeteroModel>,
    graph: HeteroGraph,
    fanouts: HeteroFanouts,
    /// Indices of the node types with endpoints or targets, each once.
    endpoints: Vec<usize>,
    /// Edge types of each relation in the message graph.
    ways: Vec<Ways>,
    /// Memory of inference.
    budget: Budget,
    /// Most values of a row in any layer.
    width: usize,
}

impl Heterogeneous {
    /// The model of `config` over `graph`, with embeddings of width `width` for nodes of the types
    /// `endpoints`, and its parameters added to `params`.
    ///
    /// # Errors
    /// If the model is unknown, or sizes are impossible.
    pub fn new(
        (config, registry): (&RunConfig, &Registry),
        graph: HeteroGraph,
        (endpoints, ways): (Vec<usize>, Vec<Ways>),
        width: usize,
        params: &mut ParamsBuilder,
    ) -> Result<Self> {
        let sizes = ModelConfig { out_dim: width, ..config.model.clone() };
        let types = (&**graph.schema(), &*graph.sources());
        let model = registry.hetero_model(&sizes, types, params)?.into();
        let (fanouts, rule) = fanouts(config)?;
        graph.sampler(&fanouts, rule)?;
        reaches(config, &graph, &endpoints)?;
        let widest = sizes.hidden.max(sizes.input_width()).max(width);
        Ok(Self { model, graph, fanouts, endpoints, ways, budget: budget(config), width: widest })
    }

    /// The embedding tables of node types without features.
    pub fn tables(&self, config: &RunConfig) -> Result<Vec<TableSpec>> {
        let nodes = |number| self.graph.num_nodes(number) as u64;
        let of = |(number, name)| TableSpec::of_type(config, name, nodes(number));
        self.graph.embedding_types().map(of).collect()
    }
}

/// Rejects a meta-path that brings no messages to some endpoints of edges.
fn reaches(config: &RunConfig, graph: &HeteroGraph, endpoints: &[usize]) -> Result<()> {
    let Some(path) = config.sample.meta_path.first() else { return Ok(()) };
    let path: Triple = path.parse().map_err(|e: Error| e.context("sample.meta_path"))?;
    let types = graph.schema().node_types();
    match endpoints.iter().map(|&number| &types[number]).find(|name| **name != path.dst) {
        None => Ok(()),
        Some(name) => Err(Error::usage(format!(
            "sample.meta_path: '{path}' brings messages to '{}', and none to '{name}', whose embeddings are asked for",
            path.dst
        ))
        .hint("leave out sample.meta_path, and limit edge types by sample.edge_fanouts")),
    }
}

/// The sampler of neighbors over each edge type.
pub(crate) struct Draw {
    sampler: HeteroNeighbors,
    /// Memory of threads that do not sample at the moment.
    scratch: Mutex<Vec<HeteroScratch>>,
}

impl Draw {
    fn pool(&self) -> MutexGuard<'_, Vec<HeteroScratch>> {
        self.scratch.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A sampled batch, and its blocks over all edge types.
pub(crate) struct Sampled {
    batch: HeteroBatch,
    /// Those of each type with endpoints.
    seeds: Vec<Vec<u32>>,
}

/// Blocks, and the features and embeddings of their input nodes.
pub(crate) struct Prepared {
    fused: FusedBatch,
    /// The blocks by relations, once they are arranged: a batch for another process never is.
    arranged: OnceLock<Result<Vec<RelBlock>>>,
    /// Features of each node type that has any.
    features: Vec<Option<Input>>,
    /// Ids of the input nodes of each type with embeddings.
    embedding_ids: Vec<Vec<u64>>,
}

impl Prepared {
    /// The blocks of a graph with the types of `schema`.
    fn arranged(&self, schema: &Arc<Schema>) -> Result<&[RelBlock]> {
        let arranged = self.arranged.get_or_init(|| RelBlock::all(&self.fused, schema));
        arranged.as_deref().map_err(Error::clone)
    }
}

/// The column of the features of nodes of type number `node_type`.
fn features_of(node_type: usize) -> String {
    format!("features.{node_type}")
}

/// The column of the ids of the rows of embedding table number `table`.
fn embeddings_of(table: usize) -> String {
    format!("embeddings.{table}")
}

impl Encoder for Heterogeneous {
    type Sampler = Draw;
    type Sampled = Sampled;
    type Batch = Prepared;
    type Columns<'a> = HeteroColumns<'a>;

    fn on_part(&self, config: &RunConfig, part: &Dataset) -> Result<Self> {
        Ok(Self {
            budget: self.budget.clone(),
            width: self.width,
            model: self.model.clone(),
            graph: HeteroGraph::open(part, config)?,
            fanouts: self.fanouts.clone(),
            endpoints: self.endpoints.clone(),
            ways: self.ways.clone(),
        })
    }

    fn on_resident(&self, resident: &Resident) -> Result<Self> {
        let features = resident
            .features
            .iter()
            .map(|features| features.clone().map(|found| Box::new(found) as Box<dyn FeatureStore>));
        let graph = HeteroGraph::of_resident(&resident.graph, features.collect())?;
        if graph.schema() != self.graph.schema() || graph.sources() != self.graph.sources() {
            return Err(Error::invalid(
                "parts have other types or features than the graph of the run",
            )
            .hint("partition the dataset of this run, by gnarl partition"));
        }
        Ok(Self {
            budget: self.budget.clone(),
            width: self.width,
            model: self.model.clone(),
            graph,
            fanouts: self.fanouts.clone(),
            endpoints: self.endpoints.clone(),
            ways: self.ways.clone(),
        })
    }

    fn seed_ids(&self) -> Vec<u64> {
        let first = self.endpoints[0];
        self.graph.ids(first, self.graph.core(first))
    }

    fn ways(&self, relation: u32) -> Ways {
        self.ways[relation as usize]
    }

    fn sampler(&self, config: &RunConfig, _: &[u32]) -> Result<Draw> {
        let (fanouts, rule) = fanouts(config)?;
        let sampler = self.graph.sampler(&fanouts, rule)?;
        Ok(Draw { sampler, scratch: Mutex::default() })
    }

    fn batches(&self, draw: &Draw, seeds: &[u32], size: usize, order: Key) -> Vec<Vec<u32>> {
        draw.sampler.epoch(seeds, size, order)
    }

    fn sample(&self, draw: &Draw, seeds: &Seeds, key: Key, _: &mut Scratch) -> Result<Sampled> {
        let mut scratch = draw.pool().pop().unwrap_or_default();
        let by_type: Vec<(usize, &[u32])> =
            self.endpoints.iter().copied().zip(seeds.nodes.iter().map(Vec::as_slice)).collect();
        let batch = draw.sampler.sample(&by_type, &seeds.times, key, &mut scratch)?;
        draw.pool().push(scratch);
        Ok(Sampled { batch, seeds: seeds.nodes.clone() })
    }

    fn remove(&self, sampled: &mut Sampled, edges: &EdgeSet) {
        sampled.batch.remove(|edge_type, src, dst| edges.contains(&(edge_type, src, dst)));
    }

    fn edges(&self, Sampled { batch, .. }: &Sampled) -> EdgeSet {
        let mut edges = EdgeSet::new();
        for block in &batch.blocks {
            for (number, relation) in block.relations().iter().enumerate() {
                let (src, dst) = batch.schema.ends(number);
                let (sources, destinations) = (&batch.ids[src], &batch.ids[dst]);
                for (row, &dst) in destinations.iter().enumerate().take(relation.num_dst()) {
                    let from = relation.sources(row).iter();
                    edges.extend(from.map(|&src| (number, sources[src as usize], dst)));
                }
            }
        }
        edges
    }

    fn fetch(&self, sampled: Sampled) -> Result<(Prepared, Outputs)> {
        let Sampled { mut batch, seeds } = sampled;
        let graph = &self.graph;
        let mut fused = batch.fuse_alone()?;
        let features = graph.features_of_batch(&batch.input_nodes)?;
        let ids = graph.embedding_types().map(|(number, _)| std::mem::take(&mut batch.ids[number]));
        let embedding_ids = ids.collect();
        let rows = std::mem::take(&mut fused.targets);
        let prepared = Prepared { fused, arranged: OnceLock::new(), features, embedding_ids };
        Ok((prepared, Outputs { rows, nodes: seeds, weights: None }))
    }

    fn pack(&self, batch: Prepared, out: &mut Columns) -> Result<()> {
        let edge_types = self.graph.schema().edge_types().len();
        packed::heterogeneous::pack(batch.fused, edge_types, out);
        for (number, features) in batch.features.into_iter().enumerate() {
            if let Some(features) = features {
                let name = features_of(number);
                packed::rows::pack((features, &name), self.graph.exact_type(number), out);
            }
        }
        for (table, ids) in batch.embedding_ids.into_iter().enumerate() {
            out.add(embeddings_of(table), ids);
        }
        Ok(())
    }

    fn unpack(&self, columns: &mut Columns) -> Result<Prepared> {
        let schema = self.graph.schema();
        let fused = packed::heterogeneous::unpack(columns, schema)?;
        let rows = packed::heterogeneous::rows_of_types(&fused.segments, schema.node_types().len());
        let mut features = Vec::with_capacity(rows.len());
        for (number, source) in self.graph.sources().into_iter().enumerate() {
            let Source::Features(width) = source else {
                features.push(None);
                continue;
            };
            let input = packed::rows::unpack(columns, (&features_of(number), rows[number]))?;
            if input.width() != width {
                let name = &schema.node_types()[number];
                let found = input.width();
                return Err(Error::invalid(format!(
                    "features of nodes of type '{name}' of the batch are {found} wide, those of the dataset {width}"
                )));
            }
            features.push(Some(input));
        }
        let mut embedding_ids = Vec::new();
        for (table, (number, name)) in self.graph.embedding_types().enumerate() {
            let ids: Vec<u64> = columns.take(&embeddings_of(table))?;
            let known = self.graph.num_nodes(number) as u64;
            if ids.len() != rows[number] || ids.iter().any(|&id| id >= known) {
                return Err(Error::invalid(format!(
                    "ids of nodes of type '{name}' of the batch: not {} of {known} nodes",
                    rows[number]
                )));
            }
            embedding_ids.push(ids);
        }
        Ok(Prepared { fused, arranged: OnceLock::new(), features, embedding_ids })
    }

    fn prepare(&self, batch: &Prepared) {
        // What is wrong with a batch is told when it is computed.
        let arranged = batch.arranged(self.graph.schema()).unwrap_or_default();
        arranged.iter().for_each(RelBlock::prepare);
    }

    fn num_edges(&self, batch: &Prepared) -> usize {
        batch.fused.blocks.iter().map(|layer| layer.block.num_edges()).sum()
    }

    fn embedding_ids<'b>(&self, batch: &'b Prepared) -> &'b [Vec<u64>] {
        &batch.embedding_ids
    }

    fn all_embedding_ids(&self) -> Vec<Vec<u64>> {
        let ids = |number: usize| self.graph.ids(number, self.graph.num_nodes(number));
        self.graph.embedding_types().map(|(number, _)| ids(number)).collect()
    }

    fn forward<'b>(
        &self,
        tape: &mut Tape<'b>,
        batch: &'b Prepared,
        embeddings: Vec<Tensor>,
    ) -> Result<(Var, Vec<Var>)> {
        let (rows, leaves) = self.graph.leaves(tape, &batch.features, embeddings);
        let blocks = batch.arranged(self.graph.schema())?;
        Ok((self.model.forward(tape, blocks, &rows)?, leaves))
    }

    fn type_names(&self) -> Option<Vec<String>> {
        let names = self.graph.schema().node_types();
        Some(self.endpoints.iter().map(|&number| names[number].clone()).collect())
    }

    fn num_nodes(&self) -> Vec<usize> {
        self.endpoints.iter().map(|&number| self.graph.num_nodes(number)).collect()
    }

    fn infer(
        &self,
        (params, tables): (&Params, &[Rows<'_>]),
        (output, wanted): (Output, &[(usize, Vec<u32>)]),
        course: &Course<'_>,
        keep: &mut Keep<'_>,
    ) -> Result<Figures> {
        let model = (self.model.as_ref(), params);
        let depth = output.layers(self.model.num_layers())?;
        let graph = (&self.graph, &self.fanouts);
        let layers = HeteroLayers::new(model, tables, graph, (depth, self.width))?;
        let wanted: Vec<(usize, Vec<u32>)> =
            wanted.iter().map(|(of, nodes)| (self.endpoints[*of], nodes.clone())).collect();
        let keep = |node_type: usize, nodes: &[u32], rows: &Tensor| match self
            .endpoints
            .iter()
            .position(|&number| number == node_type)
        {
            Some(of) => keep(of, nodes, rows),
            None => Ok(()),
        };
        let Some(parts) = self.graph.parts() else {
            let names = self.graph.schema().node_types();
            return course.run((&layers, names), &wanted, &self.budget, keep);
        };
        course.check_of_parts()?;
        let owners = SharesByType::new(&parts.nodes, course.comm.map_or(1, Communicator::size));
        course.run_owned((&layers, &owners), &wanted, &self.budget, keep)
    }

    fn is_partitioned(&self) -> bool {
        self.graph.parts().is_some()
    }

    fn cached(&self) -> [u64; 2] {
        self.graph.cached()
    }

    fn by_columns<'a>(&'a self, comm: &'a dyn Communicator) -> Result<HeteroColumns<'a>> {
        HeteroColumns::new(self.model.as_ref(), &self.graph, self.endpoints.clone(), comm)
    }
}
