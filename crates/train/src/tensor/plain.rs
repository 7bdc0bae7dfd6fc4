//! Models without types over the whole message graph.

use std::sync::Arc;

use gnarl_engine::Communicator;
use gnarl_graph::{Error, Result};
use gnarl_nn::models::{Model, Remembered, Slices};
use gnarl_nn::{Exchange, Tape, Tensor, Var};
use gnarl_sample::Block;

use super::columns::Columns;
use super::counted::Counted;
use super::whole::WholeModel;
use crate::messages::TypedEdges;
use crate::nodes::step;
use crate::pipeline::{Input, rows};
use crate::task::TaskGraph;

/// A model, the graph, and this rank's even share of the nodes.
pub(crate) struct PlainColumns<'a> {
    model: &'a dyn Model,
    task: &'a TaskGraph,
    block: Arc<Block>,
    columns: Columns<'a>,
    ids: Vec<u64>,
    /// What the first layer's messages over all edges make of the input.
    first: Remembered,
}

impl<'a> PlainColumns<'a> {
    /// `model` over the graph of `task` as `rank` has it.
    ///
    /// # Errors
    /// If the graph is too large for a block.
    pub fn new(
        model: &'a dyn Model,
        task: &'a TaskGraph,
        rank: &'a dyn Communicator,
    ) -> Result<Self> {
        let block = task.whole_block()?;
        let columns = Columns::new(rank, block.num_src());
        let ids = block.ids()[columns.rows()].to_vec();
        Ok(Self { model, task, block, columns, ids, first: Remembered::default() })
    }
}

impl WholeModel for PlainColumns<'_> {
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

    fn without(&self, edges: &TypedEdges) -> Result<Arc<Block>> {
        Ok(Arc::new(self.block.without(|src, dst| edges.contains(&(0, src, dst)))))
    }

    fn prepare(&self, graph: &Block) {
        graph.out_lists();
    }

    fn num_edges(&self, graph: &Block) -> usize {
        graph.num_edges() * self.model.num_layers()
    }

    fn features(&self) -> Result<Vec<Option<Input>>> {
        let own: Vec<u32> = self.columns.rows().map(|node| node as u32).collect();
        Ok(vec![Some(rows(self.task.features.as_ref(), &own)?)])
    }

    fn learnt(&self) -> Arc<[Vec<u64>]> {
        Arc::new([])
    }

    fn rows(&self, nodes: &[Vec<u32>]) -> Vec<u32> {
        nodes.concat()
    }

    fn forward<'t>(
        &'t self,
        tape: &mut Tape<'t>,
        graph: &'t Block,
        features: &[Option<Input>],
        _: Vec<Tensor>,
    ) -> Result<(Var, Vec<Var>)> {
        let [Some(features)] = features else { return Err(Error::invalid("rows of no nodes")) };
        let x = step::input(tape, features);
        let whole = std::ptr::eq(graph, &*self.block);
        let slices = Slices {
            block: graph,
            ids: &self.ids,
            exchange: &self.columns,
            // Over fewer edges messages make something else of it.
            input: whole.then_some((x, &self.first)),
        };
        Ok((self.model.forward_sliced(tape, &slices, x)?, Vec::new()))
    }
}
