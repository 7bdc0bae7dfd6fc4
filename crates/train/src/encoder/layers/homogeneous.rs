//! Inference over a homogeneous graph.

use gnarl_common::Result;
use gnarl_infer::{Budget, Figures};
use gnarl_nn::models::Model;
use gnarl_nn::{Mode, Params, Tape, Tensor};
use gnarl_sample::{FullSampler, SampleGraph, whole_graph};

use super::blocks::Blocks;
use super::part_owners::SharesByType;
use super::partitioned::PartLayers;
use super::stages::StagedLayers;
use crate::data::batch::gather;
use crate::data::graph::{Graph, Partitioned, Topology};
use crate::encoder::Output;
use crate::encoder::course::Course;

/// An output that a model computes: nodes, which output, and the largest width of a layer.
type Wanted = (Vec<u32>, Output, usize);

/// Computes an output of the nodes wanted, and hands them to `keep` as [`gnarl_infer::Inference::run`] does.
///
/// # Errors
/// If shapes disagree, or those of `keep`.
pub(in crate::encoder) fn infer(
    (model, params): (&dyn Model, &Params),
    task: &Graph,
    (wanted, output, width): Wanted,
    (course, budget): (&Course<'_>, &Budget),
    mut keep: impl FnMut(&[u32], &Tensor) -> Result<()> + Send,
) -> Result<Figures> {
    let graph = match &task.topology {
        Topology::Local(graph) => graph,
        Topology::Partitioned(parts) => {
            let wanted = (wanted, output, width);
            return of_parts((model, params), (task, parts), wanted, (course, budget), keep);
        }
    };
    if graph.core() < graph.num_nodes() {
        let all = of_part(model, params, task, graph)?;
        keep(&wanted, &rows_of(&all, &wanted))?;
        return Ok(Figures::default());
    }
    let features = task.features.as_ref();
    let width = width.max(features.width());
    let wanted = [(0, wanted)];
    let depth = output.layers(model.num_layers())?;
    let keep = |_: usize, nodes: &[u32], rows: &Tensor| keep(nodes, rows);
    let names = course.parts.map_or_else(Vec::new, |cut| {
        cut.manifest().node_types.iter().map(|of| of.name.clone()).collect()
    });
    // Stages send projections of hidden rows, not the rows.
    let staged =
        (output == Output::Last).then(|| model.scored_stages(features.is_sparse())).flatten();
    if let Some(stages) = staged {
        let layers = StagedLayers::new(stages, params, (graph, features), width)?;
        return course.run((&layers, &names), &wanted, budget, keep);
    }
    let sampler = FullSampler::new(graph, 1)?;
    // Models of edge features have a row an edge, a few times over: its features, their map, sums and messages.
    let by_edge = graph.edge_width() > 0 || model.name() == "gatv2";
    let edge_values = if by_edge { graph.edge_width() + 4 * width } else { 0 };
    let layers = Blocks { model, params, graph, features, sampler, depth, width, edge_values };
    course.run((&layers, &names), &wanted, budget, keep)
}

/// The same over parts, whose nodes belong to ranks as the parts do.
fn of_parts(
    (model, params): (&dyn Model, &Params),
    (task, parts): (&Graph, &Partitioned),
    (wanted, output, width): Wanted,
    (course, budget): (&Course<'_>, &Budget),
    mut keep: impl FnMut(&[u32], &Tensor) -> Result<()> + Send,
) -> Result<Figures> {
    course.check_of_parts()?;
    let depth = output.layers(model.num_layers())?;
    let width = width.max(task.features.width());
    let layers = PartLayers::new((model, params), (task, parts), (depth, width))?;
    let nodes = std::slice::from_ref(&parts.nodes);
    let owners = SharesByType::new(nodes, course.comm.map_or(1, |comm| comm.size()));
    let keep = |_: usize, nodes: &[u32], rows: &Tensor| keep(nodes, rows);
    course.run_owned((&layers, &owners), &[(0, wanted)], budget, keep)
}

/// Embeddings of all nodes of a part, by one block: lists of halo nodes are incomplete, and are in no range.
fn of_part(
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

fn rows_of(all: &Tensor, nodes: &[u32]) -> Tensor {
    let values = nodes.iter().flat_map(|&node| all.row(node as usize)).copied().collect();
    Tensor::from_vec(nodes.len(), all.cols(), values)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use gnarl_common::Stored;
    use gnarl_common::rng::Key;
    use gnarl_engine::local;
    use gnarl_graph::{Csc, Features};
    use gnarl_infer::Sweeps;
    use gnarl_infer::order::NodeOrder;
    use gnarl_infer::rows::{Cache, CacheMemory};
    use gnarl_nn::models::{self, ModelConfig};
    use gnarl_store::cache::CachePolicy;
    use gnarl_store::{FeatureStore, MappedFeatures, Normalize, Rows};

    /// The places of features and edge weights.
    #[derive(Clone, Copy, PartialEq)]
    enum Kind {
        Sparse,
        Copied,
        InPlace,
        Weighted,
    }

    /// Rows of 5 values, and whether they may be read in place.
    struct DenseRows(Vec<f32>, bool);

    impl FeatureStore for DenseRows {
        fn rows(&self) -> usize {
            self.0.len() / 5
        }

        fn width(&self) -> usize {
            5
        }

        fn is_sparse(&self) -> bool {
            false
        }

        fn gather(&self, ids: &[u32]) -> Result<Rows> {
            let mut out = vec![0.0; 5 * ids.len()];
            self.gather_into(ids, &mut out)?;
            Ok(Rows::Dense(out))
        }

        fn gather_into(&self, ids: &[u32], out: &mut [f32]) -> Result<()> {
            for (&id, out) in ids.iter().zip(out.chunks_exact_mut(5)) {
                out.copy_from_slice(&self.0[5 * id as usize..][..5]);
            }
            Ok(())
        }

        fn stored(&self) -> Option<Stored<'_>> {
            self.1.then_some(Stored::F32(&self.0))
        }
    }

    /// 100 nodes with 5 features each and 700 random edges: a hub, isolated nodes, parallel edges.
    fn task(kind: Kind) -> Graph {
        let key = Key::new(11);
        let mut edges: Vec<(u32, u32)> = (0..700)
            .map(|i| (key.below(2 * i, 100) as u32, key.below(2 * i + 1, 90) as u32))
            .collect();
        edges.extend((0..95).map(|source| (source, 3)));
        edges.extend([(7, 8), (7, 8), (7, 8)]);
        let values: Vec<f32> = (0..500).map(|i| key.with(1).normal(i) as f32).collect();
        let mut graph = SampleGraph::new(Csc::from_edges(100, &edges)).unwrap();
        if kind == Kind::Weighted {
            let weight = |i: usize| 0.1 + key.with(2).unit(i as u64) as f32;
            let weights: Vec<f32> = (0..edges.len()).map(weight).collect();
            graph = graph.with_list_weights(weights.into()).unwrap();
        }
        let features = match kind {
            Kind::Sparse => Features::Csr {
                indptr: (0..=100u64).map(|r| 5 * r).collect::<Vec<_>>().into(),
                indices: (0..500u32).map(|i| i % 5).collect::<Vec<_>>().into(),
                values: values.into(),
                width: 5,
            },
            _ => {
                let rows = DenseRows(values, kind != Kind::Copied);
                return Graph::local(graph, Box::new(rows));
            }
        };
        Graph::local(graph, Box::new(MappedFeatures::new(features, Normalize::None).unwrap()))
    }

    #[test]
    fn every_model_is_inferred_as_over_the_whole_graph() {
        every_model(Kind::Sparse);
    }

    #[test]
    fn every_model_is_inferred_as_over_the_whole_copied_graph() {
        every_model(Kind::Copied);
    }

    #[test]
    fn every_model_is_inferred_as_over_the_whole_graph_in_place() {
        every_model(Kind::InPlace);
    }

    #[test]
    fn every_model_is_inferred_as_over_the_whole_weighted_graph() {
        every_model(Kind::Weighted);
    }

    fn every_model(kind: Kind) {
        let some: Vec<u32> = vec![3, 8, 50, 93, 99];
        let chunk_rows = 6.try_into().unwrap();
        let cached =
            Some(Cache { chunk_rows, ..Cache::new(CachePolicy::Lru, CacheMemory::Share(0.3)) });
        let task = task(kind);
        let graph = task.lists().unwrap();
        let decoupled = ["gcn", "gat"].map(|name| (name, true));
        let coupled = models::names().iter().map(|&name| (name, false));
        for (name, decoupled) in coupled.chain(decoupled) {
            // The others have none to choose.
            let aggregators = match name {
                "sage" | "ngnn" => &[
                    models::Aggregator::Mean,
                    models::Aggregator::MaxPool,
                    models::Aggregator::Lstm,
                ][..],
                _ => &[models::Aggregator::Mean],
            };
            for &aggregator in aggregators {
                let config = ModelConfig {
                    name: name.to_string(),
                    decoupled,
                    aggregator,
                    teleport: 0.1,
                    layers: 3,
                    hidden: 8,
                    in_dim: 5,
                    out_dim: 3,
                    ..ModelConfig::default()
                };
                let (model, params) = models::build(&config, Key::new(1)).unwrap();
                let whole = of_part(model.as_ref(), &params, &task, graph).unwrap();
                let infer = |wanted: &[u32], budget: &Budget, course: &Course<'_>| {
                    let (mut nodes, mut values) = (Vec::new(), Vec::new());
                    infer(
                        (&*model, &params),
                        &task,
                        (wanted.to_vec(), Output::Last, 8),
                        (course, budget),
                        |of, rows| {
                            nodes.extend_from_slice(of);
                            values.extend_from_slice(rows.data());
                            Ok(())
                        },
                    )
                    .unwrap();
                    let first = course.comm.is_none_or(|comm| comm.rank() == 0);
                    assert_eq!(nodes, if first { wanted } else { &[] });
                    values
                };
                let all: Vec<u32> = (0..100).collect();
                let roomy = infer(&all, &Budget::new(1 << 30), &Course::default());
                // Ranges of a few edges, and rows in files.
                let tight = infer(&all, &Budget::new(2000), &Course::default());
                assert_eq!(roomy, tight, "{name}: the budget changes nothing");
                for sweeps in [Sweeps::Always, Sweeps::Never] {
                    let course = Course { sweeps, ..Course::default() };
                    let found = infer(&all, &Budget::new(2000), &course);
                    assert_eq!(roomy, found, "{name} {aggregator:?}: sweeps change nothing");
                }
                for (order, cache) in [(NodeOrder::Degree, None), (NodeOrder::Natural, cached)] {
                    let course = Course { order, cache: cache.as_ref(), ..Course::default() };
                    let found = infer(&all, &Budget::new(2000), &course);
                    assert_eq!(roomy, found, "{name}: order and cache change nothing");
                    let by_ranks = local::run(3, Duration::from_secs(60), |rank| {
                        let course = Course { comm: Some(rank), ..course };
                        Ok(infer(&some, &Budget::new(2000), &course))
                    });
                    let expected: Vec<f32> =
                        some.iter().flat_map(|&v| &roomy[3 * v as usize..][..3]).copied().collect();
                    assert_eq!(by_ranks.unwrap()[0], expected, "{name}: ranks change nothing");
                }
                for (a, b) in whole.data().iter().zip(&roomy) {
                    assert!((a - b).abs() <= 1e-5 * (1.0 + a.abs()), "{name}: {a} {b}");
                }
                let few = infer(&some, &Budget::new(2000), &Course::default());
                let expected: Vec<f32> =
                    some.iter().flat_map(|&v| &roomy[3 * v as usize..][..3]).copied().collect();
                assert_eq!(few, expected, "{name}: wanted nodes alone");
            }
        }
    }
}
