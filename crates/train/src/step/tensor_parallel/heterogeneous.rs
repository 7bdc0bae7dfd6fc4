//! Heterogeneous models over whole graphs.
//!
//! Each rank has an even share of the nodes of every type, so that the dense work is balanced. Rows
//! are in the order of ranks, then of types, then of nodes. Embeddings are distributed alike, and
//! so are on the rank that reads them.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use gnarl_common::rng::Key;
use gnarl_common::threads::even_share;
use gnarl_common::{Error, Result};
use gnarl_engine::Communicator;
use gnarl_graph::blocks::{Block, FusedBlock, NodeInfo, Segment};
use gnarl_nn::models::heterogeneous::{HeteroModel, HeteroSlices, WholeRelations};
use gnarl_nn::{Exchange, RelBlock, Tape, Tensor, Var};
use gnarl_sample::parts::Rule;
use gnarl_sample::{HeteroBatch, HeteroFanouts, HeteroSampler, HeteroScratch};

use super::columns::Columns;
use super::counted::Counted;
use super::whole::WholeModel;
use crate::data::batch::Input;
use crate::data::edge_set::EdgeSet;
use crate::data::hetero_graph::HeteroGraph;

/// A model, the graph, and this rank's share of the nodes of each type.
pub(crate) struct HeteroColumns<'a> {
    model: &'a dyn HeteroModel,
    task: &'a HeteroGraph,
    comm: &'a dyn Communicator,
    /// Indices of the node types with endpoints of edges, or with targets.
    ends: Vec<usize>,
    order: Order,
    nodes: Columns<'a>,
    whole: Arc<HeteroWhole<'a>>,
    ids: Vec<u64>,
    embeddings: Arc<[Vec<u64>]>,
    /// The features of the own nodes, once read.
    input: Mutex<Option<Vec<Option<Input>>>>,
    counted: Arc<Counted>,
}

/// The graph, perhaps without some edges, and the owners of its rows.
pub(crate) struct HeteroWhole<'a> {
    relations: WholeRelations,
    groups: Columns<'a>,
    senders: Columns<'a>,
}

/// The order of all nodes.
struct Order {
    /// Row of each node of each type.
    rows: Vec<Vec<u32>>,
    /// Successive rows of one type.
    segments: Vec<Segment>,
    /// First row of each rank, and the number of rows.
    bounds: Vec<usize>,
    info: Arc<NodeInfo>,
}

impl<'a> HeteroColumns<'a> {
    /// `model` over the graph of `task` with `rank`. Outputs are those of nodes of the types
    /// `ends`.
    ///
    /// # Errors
    /// If the graph is too large for a block, or has fewer nodes than there are ranks.
    pub fn new(
        model: &'a dyn HeteroModel,
        task: &'a HeteroGraph,
        ends: Vec<usize>,
        comm: &'a dyn Communicator,
    ) -> Result<Self> {
        let batch = all_edges(task)?;
        let order = Order::new(task, &batch, comm.size())?;
        // Without rows a rank would have no gradient to exchange.
        if let Some(idle) = order.bounds.windows(2).position(|pair| pair[0] == pair[1]) {
            let message =
                format!("too many workers: worker {idle} of {} would have no node", comm.size());
            return Err(Error::usage(message).hint("reduce train.workers"));
        }
        let counted: Arc<Counted> = Arc::default();
        let nodes = Columns::over(comm, order.bounds.clone(), counted.clone());
        let whole = Arc::new(HeteroWhole::new(&batch, &order, comm, &counted)?);
        let ids = order.info.ids[nodes.rows()].to_vec();
        let count = |number| task.num_nodes(number);
        let own = |number| even_share(count(number), comm.rank(), comm.size());
        let embeddings =
            task.embedding_types().map(|(number, _)| own(number).map(|v| v as u64).collect());
        let embeddings = embeddings.collect();
        Ok(Self {
            model,
            task,
            comm,
            ends,
            order,
            nodes,
            whole,
            ids,
            embeddings,
            input: Mutex::default(),
            counted,
        })
    }

    /// Own nodes of a type.
    fn own(&self, node_type: usize) -> Range<usize> {
        even_share(self.task.num_nodes(node_type), self.comm.rank(), self.comm.size())
    }

    fn features(&self) -> Result<Vec<Option<Input>>> {
        let types = 0..self.order.rows.len();
        let own = types.map(|number| self.own(number).map(|node| node as u32).collect());
        self.task.features(&own.collect::<Vec<_>>())
    }
}

/// All nodes and edges as one hop.
fn all_edges(task: &HeteroGraph) -> Result<HeteroBatch> {
    let graph = task.lists()?;
    let all: Vec<(usize, Vec<u32>)> = (0..graph.schema().node_types().len())
        .map(|number| (number, (0..graph.num_nodes(number) as u32).collect()))
        .collect();
    let seeds: Vec<(usize, &[u32])> = all.iter().map(|(number, all)| (*number, &**all)).collect();
    let sampler = HeteroSampler::new(graph, &HeteroFanouts::new(&[-1]), Rule::Uniform)?;
    sampler.sample_types(&seeds, Key::new(0), &mut HeteroScratch::new())
}

impl Order {
    fn new(task: &HeteroGraph, batch: &HeteroBatch, ranks: usize) -> Result<Self> {
        let graph = task.lists()?;
        let types = 0..graph.schema().node_types().len();
        let counts: Vec<usize> = types.clone().map(|number| graph.num_nodes(number)).collect();
        let mut rows: Vec<Vec<u32>> = counts.iter().map(|&n| Vec::with_capacity(n)).collect();
        let mut segments = Vec::new();
        let mut bounds = vec![0];
        let mut next = 0;
        for rank in 0..ranks {
            for node_type in types.clone() {
                let nodes = even_share(counts[node_type], rank, ranks);
                rows[node_type].extend(next as u32..(next + nodes.len()) as u32);
                next += nodes.len();
                segments.extend((!nodes.is_empty()).then_some(Segment { node_type, nodes }));
            }
            bounds.push(next);
        }
        // Type after type.
        let fused = batch.fuse(graph)?;
        let [FusedBlock { block, .. }] = &fused.blocks[..] else {
            return Err(Error::invalid("the graph has no block"));
        };
        let mut info = NodeInfo { ids: vec![0; next], degrees: vec![0; next] };
        for (place, &row) in rows.iter().flatten().enumerate() {
            info.ids[row as usize] = block.ids()[place];
            info.degrees[row as usize] = block.degrees()[place];
        }
        Ok(Self { rows, segments, bounds, info: Arc::new(info) })
    }

    /// The edges of a batch of all nodes as one block in this order.
    fn block(&self, batch: &HeteroBatch) -> Result<RelBlock> {
        let [heterogeneous] = &batch.blocks[..] else {
            return Err(Error::invalid("the graph has no block"));
        };
        let schema = &batch.schema;
        let relations = || heterogeneous.relations().iter().enumerate();
        let weighted = relations().any(|(_, relation)| relation.weights().is_some());
        let (mut indptr, mut indices) = (vec![0u32], Vec::with_capacity(heterogeneous.num_edges()));
        let (mut edge_types, mut group_degrees) = (Vec::new(), Vec::new());
        let mut weights = weighted.then(Vec::new);
        let nodes = self.segments.iter();
        for (node_type, dst) in nodes.flat_map(|s| s.nodes.clone().map(|node| (s.node_type, node)))
        {
            for (number, relation) in relations().filter(|(e, _)| schema.ends(*e).1 == node_type) {
                let (sources, rows) = (relation.sources(dst), &self.rows[schema.ends(number).0]);
                indices.extend(sources.iter().map(|&source| rows[source as usize]));
                edge_types.extend(std::iter::repeat_n(number as u16, sources.len()));
                group_degrees.extend((!sources.is_empty()).then(|| relation.degrees()[dst]));
                if let Some(out) = &mut weights {
                    let first = relation.indptr()[dst] as usize;
                    match relation.weights() {
                        Some(own) => out.extend(&own[first..first + sources.len()]),
                        None => out.extend(std::iter::repeat_n(1.0, sources.len())),
                    }
                }
            }
            indptr.push(indices.len() as u32);
        }
        let block = Block::new(self.info.ids.len(), indptr, indices, weights, self.info.clone());
        let (block, edges) = (Arc::new(block), Vec::new());
        let fused = FusedBlock { block, edge_types, edges, group_degrees };
        RelBlock::new(&fused, &self.segments, schema)
    }
}

impl<'a> HeteroWhole<'a> {
    fn new(
        batch: &HeteroBatch,
        order: &Order,
        comm: &'a dyn Communicator,
        counted: &Arc<Counted>,
    ) -> Result<Self> {
        let own = order.bounds[comm.rank()]..order.bounds[comm.rank() + 1];
        let relations = WholeRelations::new(order.block(batch)?, own);
        let columns = |before: &[u32]| {
            let bounds = order.bounds.iter().map(|&node| before[node] as usize);
            Columns::over(comm, bounds.collect(), counted.clone())
        };
        let (groups, senders) = (columns(relations.groups()), columns(relations.senders()));
        Ok(Self { relations, groups, senders })
    }
}

impl<'a> WholeModel for HeteroColumns<'a> {
    type Graph = HeteroWhole<'a>;

    fn exchange(&self) -> &dyn Exchange {
        &self.nodes
    }

    fn counted(&self) -> &Counted {
        &self.counted
    }

    fn graph(&self) -> Arc<HeteroWhole<'a>> {
        self.whole.clone()
    }

    fn without(&self, edges: &EdgeSet) -> Result<Arc<HeteroWhole<'a>>> {
        let mut batch = all_edges(self.task)?;
        batch.remove(|edge_type, src, dst| edges.contains(&(edge_type, src, dst)));
        HeteroWhole::new(&batch, &self.order, self.comm, &self.counted).map(Arc::new)
    }

    fn prepare(&self, graph: &HeteroWhole<'a>) {
        self.model.prepare_sliced(&graph.relations);
    }

    fn num_edges(&self, graph: &HeteroWhole<'a>) -> usize {
        graph.relations.block().block().num_edges() * self.model.num_layers()
    }

    fn embedding_ids(&self) -> Arc<[Vec<u64>]> {
        self.embeddings.clone()
    }

    fn own_nodes(&self) -> Range<usize> {
        self.own(self.ends[0])
    }

    fn own_rows(&self, nodes: &[u32]) -> Vec<u32> {
        let first = self.nodes.rows().start as u32;
        let rows = &self.order.rows[self.ends[0]];
        nodes.iter().map(|&node| rows[node as usize] - first).collect()
    }

    fn reached(&self, rows: &[u32]) -> Vec<Vec<u32>> {
        if self.embeddings.is_empty() {
            return Vec::new();
        }
        let block = self.whole.relations.block().block();
        let mut seen = vec![false; block.num_src()];
        rows.iter().for_each(|&row| seen[row as usize] = true);
        let mut last = rows.to_vec();
        for _ in 0..self.model.num_layers() {
            let mut next = Vec::new();
            for &source in last.iter().flat_map(|&row| block.sources(row as usize)) {
                if !std::mem::replace(&mut seen[source as usize], true) {
                    next.push(source);
                }
            }
            last = next;
        }
        let of = |(number, _)| {
            let rows = &self.order.rows[number][self.own(number)];
            let places = rows.iter().enumerate().filter(|(_, row)| seen[**row as usize]);
            places.map(|(place, _)| place as u32).collect()
        };
        self.task.embedding_types().map(of).collect()
    }

    fn rows(&self, nodes: &[Vec<u32>]) -> Vec<u32> {
        let of = |(&node_type, nodes): (&usize, &Vec<u32>)| -> Vec<u32> {
            nodes.iter().map(|&node| self.order.rows[node_type][node as usize]).collect()
        };
        self.ends.iter().zip(nodes).flat_map(of).collect()
    }

    fn forward<'t>(
        &'t self,
        tape: &mut Tape<'t>,
        graph: &'t HeteroWhole<'a>,
        embeddings: Vec<Tensor>,
    ) -> Result<(Var, Vec<Var>)> {
        let mut input = self.input.lock().unwrap_or_else(PoisonError::into_inner);
        let features = input.take().map_or_else(|| self.features(), Ok)?;
        let (rows, leaves) = self.task.leaves(tape, input.insert(features), embeddings);
        let slices = HeteroSlices {
            graph: &graph.relations,
            ids: &self.ids,
            nodes: &self.nodes,
            groups: &graph.groups,
            senders: &graph.senders,
        };
        Ok((self.model.forward_sliced(tape, &slices, &rows)?, leaves))
    }
}
