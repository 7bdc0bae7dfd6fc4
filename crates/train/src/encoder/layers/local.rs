//! Layer-wise inference on a local graph.

use gnarl_common::Result;
use gnarl_common::rng::Key;
use gnarl_nn::models::Model;
use gnarl_nn::{Mode, Params, Tape, Tensor};
use gnarl_sample::{FullSampler, SampleGraph, Sampler, Scratch, whole_graph};

use super::RANGE_NODES;
use crate::data::batch::gather;
use crate::data::graph::Graph;

/// Number of edges above which layers run over ranges of nodes instead of one block.
const WHOLE_BLOCK_EDGES: usize = 1 << 22;

/// The embeddings of all core nodes, `core × outputs`.
///
/// # Errors
/// If shapes disagree.
pub(crate) fn embeddings(model: &dyn Model, params: &Params, task: &Graph) -> Result<Tensor> {
    // A part's HALO nodes have no complete lists and so are in no range; one block has them.
    let graph = task.lists()?;
    let has_halo = graph.core() < graph.num_nodes();
    if has_halo || graph.num_edges() <= WHOLE_BLOCK_EDGES {
        return in_one_block(model, params, task, graph);
    }
    in_ranges(model, params, task, graph, RANGE_NODES)
}

fn in_one_block(
    model: &dyn Model,
    params: &Params,
    task: &Graph,
    graph: &SampleGraph,
) -> Result<Tensor> {
    let batch = whole_graph(graph, model.num_layers())?;
    let input = gather(task.features.as_ref(), &batch.input_nodes)?;
    let mut tape = Tape::new(params, Mode::Eval);
    let x = input.on(&mut tape);
    let out = model.forward(&mut tape, &batch.blocks, x)?;
    Ok(tape.take(out))
}

fn in_ranges(
    model: &dyn Model,
    params: &Params,
    task: &Graph,
    graph: &SampleGraph,
    range_nodes: usize,
) -> Result<Tensor> {
    let sampler = FullSampler::new(graph, 1)?;
    let mut scratch = Scratch::new();
    let nodes: Vec<u32> = (0..graph.core() as u32).collect();
    let mut before: Option<Tensor> = None;
    for layer in 0..model.num_layers() {
        let mut after: Option<Tensor> = None;
        for (i, range) in nodes.chunks(range_nodes).enumerate() {
            let batch = sampler.sample(range, Key::new(0), &mut scratch)?;
            let mut tape = Tape::new(params, Mode::Eval);
            let x = match &before {
                None => gather(task.features.as_ref(), &batch.input_nodes)?.on(&mut tape),
                Some(rows) => {
                    let all = tape.dense(rows.clone());
                    tape.gather_rows(all, &batch.input_nodes)
                }
            };
            let y = model.layer(&mut tape, layer, &batch.blocks[0], x)?;
            let y = tape.take(y);
            let width = y.cols();
            let all = after.get_or_insert_with(|| Tensor::zeros(graph.num_nodes(), width));
            let start = i * range_nodes * width;
            all.data_mut()[start..start + y.data().len()].copy_from_slice(y.data());
        }
        before = after;
    }
    Ok(before.unwrap_or_else(|| Tensor::zeros(0, 0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gnarl_graph::{Csc, Features};
    use gnarl_nn::models::{self, ModelConfig};
    use gnarl_store::{MappedFeatures, Normalize};

    /// 100 nodes with 5 features each and 700 random edges.
    fn task() -> Graph {
        let key = Key::new(11);
        let edges: Vec<(u32, u32)> = (0..700)
            .map(|i| (key.below(2 * i, 100) as u32, key.below(2 * i + 1, 90) as u32))
            .collect();
        let values: Vec<f32> = (0..500).map(|i| key.with(1).normal(i) as f32).collect();
        let features = Features::Csr {
            indptr: (0..=100u64).map(|r| 5 * r).collect::<Vec<_>>().into(),
            indices: (0..500u32).map(|i| i % 5).collect::<Vec<_>>().into(),
            values: values.into(),
            width: 5,
        };
        let graph = SampleGraph::new(Csc::from_edges(100, &edges)).unwrap();
        Graph::local(graph, Box::new(MappedFeatures::new(features, Normalize::None).unwrap()))
    }

    #[test]
    fn ranges_of_nodes_give_the_same_logits_as_the_whole_graph() {
        let task = task();
        let graph = task.lists().unwrap();
        let decoupled = ["gcn", "gat"].map(|name| (name, true));
        let coupled = models::names().iter().map(|&name| (name, false));
        for (name, decoupled) in coupled.chain(decoupled) {
            let config = ModelConfig {
                name: name.to_string(),
                decoupled,
                teleport: 0.1,
                layers: 3,
                hidden: 8,
                in_dim: 5,
                out_dim: 3,
                ..ModelConfig::default()
            };
            let (model, params) = models::build(&config, Key::new(1)).unwrap();
            let whole = in_one_block(model.as_ref(), &params, &task, graph).unwrap();
            let ranges = in_ranges(model.as_ref(), &params, &task, graph, 7).unwrap();
            assert_eq!(whole.shape(), ranges.shape(), "{name}");
            for (a, b) in whole.data().iter().zip(ranges.data()) {
                assert!((a - b).abs() <= 1e-5 * (1.0 + a.abs()), "{name}: {a} {b}");
            }
        }
    }
}
