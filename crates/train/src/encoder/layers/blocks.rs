//! Any homogeneous model: a layer over the block of a range's in-neighbors.

use std::sync::Arc;

use gnarl_common::Result;
use gnarl_common::rng::Key;
use gnarl_graph::blocks::Block;
use gnarl_infer::Layers;
use gnarl_infer::rows::Before;
use gnarl_nn::models::Model;
use gnarl_nn::{Mode, Params, Tape, Tensor};
use gnarl_sample::{FullSampler, SampleGraph, Sampler, Scratch};
use gnarl_store::FeatureStore;

use super::features::gather;
use crate::data::batch::Input;

/// The layers of a model. A source is projected in every range that reads it.
pub(super) struct Blocks<'a> {
    pub model: &'a dyn Model,
    pub params: &'a Params,
    pub graph: &'a SampleGraph,
    pub features: &'a dyn FeatureStore,
    /// Draws all neighbors of one hop.
    pub sampler: FullSampler,
    /// Number of layers, from the first one on.
    pub depth: usize,
    /// Most values of a row in any layer.
    pub width: usize,
}

impl Layers for Blocks<'_> {
    type Inputs = (Arc<Block>, Input);
    type Scratch = Scratch;

    fn num_layers(&self) -> usize {
        self.depth
    }

    fn num_nodes(&self) -> Vec<usize> {
        vec![self.graph.num_nodes()]
    }

    fn inputs_of(&self, _: usize, _: usize, node: u32, visit: &mut dyn FnMut(usize, u32)) {
        visit(0, node);
        self.graph.csc().sources(node).iter().for_each(|&source| visit(0, source));
    }

    fn num_inputs(&self, _: usize, _: usize, node: u32) -> usize {
        1 + self.graph.csc().sources(node).len()
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
        let mut batch = self.sampler.sample(nodes, Key::new(0), scratch)?;
        let input = match before {
            Some(before) => Input::Dense(before.gather(0, &batch.input_nodes)?),
            None => gather(self.features, &batch.input_nodes)?,
        };
        Ok((batch.blocks.swap_remove(0), input))
    }

    fn compute(&self, layer: usize, (block, input): Self::Inputs) -> Result<Tensor> {
        let mut tape = Tape::new(self.params, Mode::Eval);
        let x = input.on(&mut tape);
        let y = self.model.layer(&mut tape, layer, &block, x)?;
        Ok(tape.take(y))
    }
}
