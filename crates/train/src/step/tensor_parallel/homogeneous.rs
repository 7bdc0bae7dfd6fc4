//! Homogeneous models over the whole message graph.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use gnarl_common::Result;
use gnarl_engine::Communicator;
use gnarl_graph::blocks::Block;
use gnarl_nn::models::{Model, Remembered, Slices};
use gnarl_nn::pool::trim;
use gnarl_nn::{Exchange, Tape, Tensor, Var};
use rayon::prelude::*;

use super::columns::Columns;
use super::counted::Counted;
use super::whole::WholeModel;
use crate::data::batch::{Input, gather};
use crate::data::edge_set::EdgeSet;
use crate::data::graph::Graph;

/// Features read per task.
const LOADED: usize = 4096;

/// A model, the graph, and this rank's even share of the nodes.
pub(crate) struct HomoColumns<'a> {
    model: &'a dyn Model,
    graph: &'a Graph,
    block: Arc<Block>,
    columns: Columns<'a>,
    ids: Vec<u64>,
    /// The features of the own nodes, as long as they are needed.
    input: Mutex<Option<Input>>,
    /// The first layer's aggregate of the input over all edges.
    first: Remembered,
}

impl<'a> HomoColumns<'a> {
    /// `model` over `graph` with `comm`.
    ///
    /// # Errors
    /// If the graph is partitioned, or too large for a block.
    pub fn new(model: &'a dyn Model, graph: &'a Graph, comm: &'a dyn Communicator) -> Result<Self> {
        let block = graph.whole_block()?;
        let columns = Columns::new(comm, block.num_src());
        let ids = block.ids()[columns.rows()].to_vec();
        let (input, first) = (Mutex::default(), Remembered::default());
        Ok(Self { model, graph, block, columns, ids, input, first })
    }

    /// Reads the features of the own nodes. At most a chunk of their file is in memory at a time.
    fn load(&self) -> Result<Input> {
        let (own, features) = (self.columns.rows(), &self.graph.features);
        let nodes: Vec<u32> = (own.start as u32..own.end as u32).collect();
        if features.is_sparse() {
            return gather(features.as_ref(), &nodes);
        }
        let width = features.width();
        let mut input = Tensor::scratch(nodes.len(), width);
        let pieces = input.data_mut().par_chunks_mut(LOADED * width.max(1));
        pieces.zip(nodes.par_chunks(LOADED)).try_for_each(|(out, nodes)| {
            features.gather_into(nodes, out)?;
            features.forget(nodes[0] as usize..nodes[0] as usize + nodes.len());
            Ok(())
        })?;
        Ok(Input::Dense(input))
    }
}

impl WholeModel for HomoColumns<'_> {
    type Graph = Block;

    fn exchange(&self) -> &dyn Exchange {
        &self.columns
    }

    fn counted(&self) -> &Counted {
        self.columns.counted()
    }

    fn graph(&self) -> Arc<Block> {
        self.block.clone()
    }

    fn without(&self, edges: &EdgeSet) -> Result<Arc<Block>> {
        Ok(Arc::new(self.block.without(|src, dst| edges.contains(&(0, src, dst)))))
    }

    fn prepare(&self, graph: &Block) {
        graph.out_lists();
    }

    fn num_edges(&self, graph: &Block) -> usize {
        graph.num_edges() * self.model.num_layers()
    }

    fn embedding_ids(&self) -> Arc<[Vec<u64>]> {
        Arc::new([])
    }

    fn own_nodes(&self) -> Range<usize> {
        self.columns.rows()
    }

    fn own_rows(&self, nodes: &[u32]) -> Vec<u32> {
        let first = self.columns.rows().start as u32;
        nodes.iter().map(|node| node - first).collect()
    }

    fn rows(&self, nodes: &[Vec<u32>]) -> Vec<u32> {
        nodes.concat()
    }

    fn forward<'t>(
        &'t self,
        tape: &mut Tape<'t>,
        graph: &'t Block,
        _: Vec<Tensor>,
    ) -> Result<(Var, Vec<Var>)> {
        let mut input = self.input.lock().unwrap_or_else(PoisonError::into_inner);
        let whole = std::ptr::eq(graph, &*self.block);
        let remembered = whole && self.first.suffices();
        let x = if remembered {
            tape.absent(self.ids.len(), self.graph.width())
        } else {
            let loaded = input.take().map_or_else(|| self.load(), Ok)?;
            input.insert(loaded).on(tape)
        };
        let slices = Slices {
            block: graph,
            ids: &self.ids,
            exchange: &self.columns,
            // Over fewer edges messages make something else of it.
            input: whole.then_some((x, &self.first)),
        };
        let rows = self.model.forward_sliced(tape, &slices, x)?;
        if whole && !remembered && self.first.suffices() {
            *input = None;
            // Releases free buffers, as no other is as large as the input.
            trim();
        }
        Ok((rows, Vec::new()))
    }
}
