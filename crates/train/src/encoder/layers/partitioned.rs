//! Any homogeneous model over a partitioned graph: lists and features come from the parts, here or at servers.

use std::sync::{Arc, Mutex, PoisonError};

use gnarl_common::Result;
use gnarl_common::rng::Key;
use gnarl_graph::blocks::Block;
use gnarl_infer::Layers;
use gnarl_infer::rows::Before;
use gnarl_nn::models::Model;
use gnarl_nn::{Params, Tensor};
use gnarl_sample::parts::{PartsSampler, Rule};
use gnarl_sample::{Sampler, Scratch};

use super::blocks::{inputs, output};
use super::list_lengths::ListLengths;
use crate::data::batch::Input;
use crate::data::graph::{Graph, Partitioned};

/// The layers of a model over parts.
pub(super) struct PartLayers<'a> {
    model: &'a dyn Model,
    params: &'a Params,
    task: &'a Graph,
    /// Takes all neighbors of one hop.
    sampler: PartsSampler,
    /// Number of layers, from the first one on.
    depth: usize,
    /// Most values of a row in any layer.
    width: usize,
    lengths: ListLengths,
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
        let lengths = ListLengths::new(graph.nodes.num_nodes());
        let scratches = Mutex::default();
        Ok(Self { model, params, task, sampler, depth, width, lengths, scratches })
    }

    /// Notes the lengths of the lists of `nodes`.
    fn note(&self, nodes: &[u32], block: &Block) {
        for (node, ends) in nodes.iter().zip(block.indptr().windows(2)) {
            self.lengths.note(*node, ends[1] - ends[0]);
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
        vec![self.lengths.num_nodes()]
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

    fn num_inputs(&self, _: usize, _: usize, node: u32) -> usize {
        self.lengths.num_inputs(node)
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
