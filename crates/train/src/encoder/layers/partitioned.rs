//! Any homogeneous model over a partitioned graph: lists and features come from the parts, here or at servers.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use gnarl_common::Result;
use gnarl_common::rng::Key;
use gnarl_graph::blocks::Block;
use gnarl_infer::rows::Before;
use gnarl_infer::{Layers, Owners};
use gnarl_nn::models::Model;
use gnarl_nn::{Params, Tensor};
use gnarl_sample::parts::{PartsSampler, Rule};
use gnarl_sample::{Sampler, Scratch};

use super::blocks::{inputs, output};
use crate::data::batch::Input;
use crate::data::graph::{Graph, Partitioned};
use crate::data::shares::Shares;

/// The layers of a model over parts.
pub(super) struct PartLayers<'a> {
    model: &'a dyn Model,
    params: &'a Params,
    task: &'a Graph,
    nodes: usize,
    /// Takes all neighbors of one hop.
    sampler: PartsSampler,
    /// Number of layers, from the first one on.
    depth: usize,
    /// Most values of a row in any layer.
    width: usize,
    /// In-neighbors of each node, as far as its list was read; else 0.
    degrees: Vec<AtomicU32>,
    /// Lists read, and their neighbors.
    read: [AtomicU64; 2],
    /// Memory of threads that read lists: each takes a number per node of the graph.
    scratches: Mutex<Vec<Scratch>>,
}

impl<'a> PartLayers<'a> {
    /// The first `depth` layers of `model` over `graph`, the parts of `task`.
    ///
    /// # Errors
    /// If the parts cannot be sampled.
    pub fn new(
        (model, params): (&'a dyn Model, &'a Params),
        (task, graph): (&'a Graph, &Partitioned),
        (depth, width): (usize, usize),
    ) -> Result<Self> {
        let sampler = graph.sampler(Rule::Exact, &[-1])?;
        let nodes = graph.new_ids.len();
        let degrees = (0..nodes).map(|_| AtomicU32::new(0)).collect();
        let (read, scratches) = Default::default();
        Ok(Self { model, params, task, nodes, sampler, depth, width, degrees, read, scratches })
    }

    /// Notes the lengths of the lists of `nodes`.
    fn note(&self, nodes: &[u32], block: &Block) {
        for (node, ends) in nodes.iter().zip(block.indptr().windows(2)) {
            let degree = ends[1] - ends[0];
            if self.degrees[*node as usize].swap(degree, Ordering::Relaxed) == 0 {
                self.read[0].fetch_add(1, Ordering::Relaxed);
                self.read[1].fetch_add(degree.into(), Ordering::Relaxed);
            }
        }
    }
}

impl Layers for PartLayers<'_> {
    type Inputs = (Arc<Block>, Input);
    type Scratch = Scratch;

    fn num_layers(&self) -> usize {
        self.depth
    }

    fn num_nodes(&self) -> Vec<usize> {
        vec![self.nodes]
    }

    fn inputs_of(
        &self,
        _: usize,
        _: usize,
        nodes: &[u32],
        visit: &mut dyn FnMut(usize, u32),
    ) -> Result<()> {
        let unused = || self.scratches.lock().unwrap_or_else(PoisonError::into_inner);
        let mut scratch = unused().pop().unwrap_or_default();
        let batch = self.sampler.sample(nodes, Key::new(0), &mut scratch)?;
        unused().push(scratch);
        self.note(nodes, &batch.blocks[0]);
        batch.input_nodes.iter().for_each(|&node| visit(0, node));
        Ok(())
    }

    /// The mean of the lists read so far stands for those that were not.
    fn num_inputs(&self, _: usize, _: usize, node: u32) -> usize {
        let [lists, neighbors] = [&self.read[0], &self.read[1]].map(|n| n.load(Ordering::Relaxed));
        match self.degrees[node as usize].load(Ordering::Relaxed) {
            0 => 1 + neighbors.div_ceil(lists.max(1)) as usize,
            degree => 1 + degree as usize,
        }
    }

    /// Of each input, its gathered row, its projection and the value of its edge.
    fn range_bytes(&self, layer: usize, node_type: usize, node: u32) -> usize {
        12 * self.width * self.num_inputs(layer, node_type, node)
    }

    fn gather(
        &self,
        _: usize,
        _: usize,
        nodes: &[u32],
        before: Option<&Before>,
        scratch: &mut Scratch,
    ) -> Result<Self::Inputs> {
        inputs((&self.sampler, self.task.features.as_ref()), nodes, before, scratch)
    }

    fn compute(&self, layer: usize, inputs: Self::Inputs) -> Result<Tensor> {
        output((self.model, self.params), layer, &inputs)
    }
}

impl Owners for Shares<'_> {
    fn rank_of(&self, _: usize, node: u32) -> usize {
        self.place(node).0
    }
}
