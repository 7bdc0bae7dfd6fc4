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
    /// Values of an edge in a layer, beside its source's row.
    pub edge_values: usize,
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

    fn inputs_of(
        &self,
        _: usize,
        _: usize,
        nodes: &[u32],
        visit: &mut dyn FnMut(usize, u32),
    ) -> Result<()> {
        for &node in nodes {
            visit(0, node);
            self.graph.csc().sources(node).iter().for_each(|&source| visit(0, source));
        }
        Ok(())
    }

    fn num_inputs(&self, _: usize, _: usize, node: u32) -> usize {
        1 + self.graph.csc().sources(node).len()
    }

    /// Of each input, its gathered row, its projection and the values of its edge.
    fn range_bytes(&self, layer: usize, node_type: usize, node: u32) -> usize {
        (12 * self.width + 4 * self.edge_values) * self.num_inputs(layer, node_type, node)
    }

    fn gather(
        &self,
        _: usize,
        _: usize,
        nodes: &[u32],
        before: Option<&Before>,
        scratch: &mut Scratch,
    ) -> Result<Self::Inputs> {
        inputs((&self.sampler, self.features), nodes, before, scratch)
    }

    fn compute(&self, layer: usize, inputs: Self::Inputs) -> Result<Tensor> {
        output((self.model, self.params), layer, &inputs)
    }
}

/// The block of the in-neighbors of `nodes`, which a sampler of one hop takes, and its inputs: rows of the layer before, or
/// features.
///
/// # Errors
/// If lists or rows cannot be read.
pub(super) fn inputs(
    (sampler, features): (&dyn Sampler, &dyn FeatureStore),
    nodes: &[u32],
    before: Option<&Before>,
    scratch: &mut Scratch,
) -> Result<(Arc<Block>, Input)> {
    let mut batch = sampler.sample(nodes, Key::new(0), scratch)?;
    let input = match before {
        Some(before) => Input::Dense(before.gather(0, &batch.input_nodes)?),
        None => gather(features, &batch.input_nodes)?,
    };
    Ok((batch.blocks.swap_remove(0), input))
}

/// A layer over a block.
///
/// # Errors
/// If shapes disagree.
pub(super) fn output(
    (model, params): (&dyn Model, &Params),
    layer: usize,
    (block, input): &(Arc<Block>, Input),
) -> Result<Tensor> {
    let mut tape = Tape::new(params, Mode::Eval);
    let x = input.on(&mut tape);
    let y = model.layer(&mut tape, layer, block, x)?;
    Ok(tape.take(y))
}
