//! Induced subgraphs: the common half of all subgraph samplers.

use std::sync::Arc;

use gnarl_common::{Error, Result};
use gnarl_graph::blocks::{Block, MiniBatch, NodeInfo};

use crate::SampleGraph;
use crate::scratch::{Scratch, add_edges};
use crate::view::View;

/// The training nodes of a graph.
#[derive(Debug)]
pub(crate) struct Targets(Vec<bool>);

/// The subgraph induced by a set of nodes, training nodes first.
pub(crate) struct Induced {
    pub num_targets: usize,
    pub indptr: Vec<u32>,
    pub indices: Vec<u32>,
    /// Position of each edge in the graph's indices.
    pub positions: Vec<usize>,
}

impl Targets {
    pub fn new(num_nodes: usize, train: &[u32]) -> Result<Self> {
        let mut flags = vec![false; num_nodes];
        for &node in train {
            *flags.get_mut(node as usize).ok_or_else(|| {
                Error::invalid(format!("training node {node} is not one of {num_nodes} nodes"))
            })? = true;
        }
        Ok(Self(flags))
    }

    /// The training nodes, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        (0..self.0.len() as u32).filter(|&v| self.0[v as usize])
    }

    /// The subgraph of `graph`, that of the training nodes, induced by `nodes`, which may repeat. Its nodes are in `scratch`.
    pub fn induce(
        &self,
        graph: &SampleGraph,
        nodes: &[u32],
        scratch: &mut Scratch,
    ) -> Result<Induced> {
        let view = graph.view();
        if let Some(&node) = nodes.iter().find(|&&v| v as usize >= view.num_nodes()) {
            return Err(view.bad_source(node));
        }
        scratch.clear(graph.num_nodes());
        scratch.reserve(nodes.len());
        let (mut first, mut rest): (Vec<u32>, Vec<u32>) =
            nodes.iter().partition(|&&v| self.0[v as usize]);
        scratch.insert_all(&mut first);
        let num_targets = scratch.nodes().len();
        scratch.insert_all(&mut rest);
        let mut result =
            Induced { num_targets, indptr: vec![0], indices: Vec::new(), positions: Vec::new() };
        for &node in scratch.nodes() {
            result.add_list(view, node, scratch)?;
        }
        Ok(result)
    }
}

impl Induced {
    fn add_list(&mut self, view: View<'_>, node: u32, scratch: &Scratch) -> Result<()> {
        let (start, degree) = view.list(node)?;
        let before = self.indices.len();
        for position in start..start + degree as usize {
            let source = view.indices[position];
            if source as usize >= view.num_nodes() {
                return Err(view.bad_source(source));
            }
            if let Some(local) = scratch.position(source) {
                self.indices.push(local);
                self.positions.push(position);
            }
        }
        let last = self.indptr[self.indptr.len() - 1];
        self.indptr.push(add_edges(last, (self.indices.len() - before) as u32)?);
        Ok(())
    }

    /// Number of edges of the subgraph into its node `dst`.
    pub fn degree(&self, dst: usize) -> u32 {
        self.indptr[dst + 1] - self.indptr[dst]
    }

    /// The batch: one block for all layers, training nodes as targets, with features of edges where `view` has them.
    ///
    /// # Errors
    /// If features cannot be read.
    pub fn into_batch(
        self,
        (view, layers): (View<'_>, usize),
        weights: Option<Vec<f32>>,
        info: NodeInfo,
        scratch: &Scratch,
    ) -> Result<MiniBatch> {
        let nodes = scratch.nodes();
        let edge_features = view.rows_of(self.positions.iter().copied())?;
        let block = Block::new(nodes.len(), self.indptr, self.indices, weights, Arc::new(info));
        let block = Arc::new(block.with_edge_features(edge_features));
        Ok(MiniBatch {
            blocks: vec![block; layers],
            input_nodes: nodes.to_vec(),
            targets: (0..self.num_targets as u32).collect(),
            target_weights: None,
        })
    }
}
