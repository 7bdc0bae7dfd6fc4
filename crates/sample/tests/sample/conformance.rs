//! What every sampler must hold to, on every kind of graph.

use std::collections::HashSet;

use gnarl_common::rng::Key;
use gnarl_graph::Csc;
use gnarl_graph::blocks::MiniBatch;
use gnarl_sample::{
    ClusterSampler, EdgeDraw, ExactSampler, FullSampler, LaborSampler, NodeDraw, PprNeighbors,
    RandomWalk, SaintDraw, SaintSampler, SampleGraph, Sampler, Scratch, TemporalRule,
    TemporalSampler, UniformSampler, WalkDraw, WalkNeighbors, WeightedSampler, whole_graph,
};

fn graph(nodes: usize, edges: &[(u32, u32)]) -> SampleGraph {
    SampleGraph::new(Csc::from_edges(nodes, edges)).unwrap()
}

/// Random, hub, loops with repeated edges, no edges at all, edges with weights, and with times;
/// each with isolated nodes.
fn graphs() -> Vec<(&'static str, SampleGraph)> {
    let key = Key::new(11);
    let random: Vec<_> = (0..2000u64)
        .map(|i| (key.below(2 * i, 190) as u32, key.below(2 * i + 1, 190) as u32))
        .collect();
    let hub: Vec<_> = (1..150).flat_map(|v| [(v, 0), (0, v)]).collect();
    let loops: Vec<_> = (0..60).flat_map(|v| [(v, v), (v, v), ((v + 1) % 60, v)]).collect();
    let weights: Vec<f32> = (0..2000).map(|i| key.with(1).unit(i) as f32).collect();
    let times: Vec<i64> = (0..2000).map(|i| key.with(2).below(i, 50) as i64).collect();
    vec![
        ("random", graph(200, &random)),
        ("hub", graph(200, &hub)),
        ("loops", graph(70, &loops)),
        ("no edges", graph(10, &[])),
        ("weights", graph(200, &random).with_weights(weights.into()).unwrap()),
        ("times", graph(200, &random).with_times(times.into()).unwrap()),
    ]
}

fn train(graph: &SampleGraph) -> Vec<u32> {
    (0..graph.num_nodes() as u32).filter(|v| v % 3 != 1).collect()
}

fn samplers(graph: &SampleGraph) -> Vec<Box<dyn Sampler>> {
    let train = train(graph);
    let clusters: Vec<u32> = (0..graph.num_nodes() as u32).map(|v| v * 7 % 5).collect();
    let draws: Vec<Box<dyn SaintDraw>> = vec![
        Box::new(NodeDraw::new(graph, 30).unwrap()),
        Box::new(EdgeDraw::new(20)),
        Box::new(WalkDraw::new(&train, 10, 3).unwrap()),
    ];
    let walk = RandomWalk::new(graph, 3).and_then(|walk| walk.with_restart(0.2)).unwrap();
    let mut all: Vec<Box<dyn Sampler>> = vec![
        Box::new(UniformSampler::new(graph, &[4, 3]).unwrap()),
        Box::new(UniformSampler::new(graph, &[120, -1, 2]).unwrap()),
        Box::new(LaborSampler::new(graph, &[4, 3]).unwrap()),
        Box::new(LaborSampler::new(graph, &[120, -1, 2]).unwrap()),
        Box::new(ExactSampler::new(graph, &[4, 3]).unwrap()),
        Box::new(ExactSampler::new(graph, &[120, -1, 2]).unwrap()),
        Box::new(FullSampler::new(graph, 2).unwrap()),
        Box::new(WalkNeighbors::new(walk, 8, &[4, 3]).unwrap()),
        Box::new(PprNeighbors::new(graph, (0.2, 1e-3), &[4, 3]).unwrap()),
        Box::new(ClusterSampler::new(graph, &clusters, &train, 2, 2).unwrap()),
    ];
    if graph.is_weighted() {
        all.push(Box::new(WeightedSampler::new(graph, &[4, 3]).unwrap()));
        all.push(Box::new(WeightedSampler::new(graph, &[120, -1, 2]).unwrap()));
    }
    if graph.is_timed() {
        let rules = [TemporalRule::Recent, TemporalRule::Uniform];
        let draws = rules.into_iter().flat_map(|rule| [rule.into(), rule.exact()]);
        for draw in draws {
            let sampler = TemporalSampler::new(graph, &[4, -1, 3], draw).unwrap();
            let times: Vec<i64> = (0..graph.num_nodes() as i64).map(|v| v % 53).collect();
            all.push(Box::new(sampler.with_seed_times(times.into()).unwrap()));
        }
    }
    for draw in draws {
        let saint = SaintSampler::prepare(draw, graph, &train, 2, 20, Key::new(2)).unwrap();
        all.push(Box::new(saint));
    }
    all
}

/// Calls `check` with an epoch of batches of every sampler on every graph.
fn for_each_batch(mut check: impl FnMut(&str, &SampleGraph, &[u32], &MiniBatch)) {
    for (name, graph) in graphs() {
        for sampler in samplers(&graph) {
            let (key, mut scratch) = (Key::new(1).with(0), Scratch::new());
            for seeds in sampler.epoch(&train(&graph), 7, key) {
                let batch = sampler.sample(&seeds, key, &mut scratch).unwrap();
                check(&format!("{} on {name}", sampler.name()), &graph, &seeds, &batch);
            }
        }
    }
}

fn same(a: &MiniBatch, b: &MiniBatch) -> bool {
    a.input_nodes == b.input_nodes
        && a.targets == b.targets
        && a.target_weights == b.target_weights
        && a.blocks.iter().zip(&b.blocks).all(|(a, b)| {
            (a.indptr(), a.indices(), a.weights(), a.ids(), a.degrees())
                == (b.indptr(), b.indices(), b.weights(), b.ids(), b.degrees())
        })
}

#[test]
fn blocks_chain_and_nodes_are_distinct() {
    for_each_batch(|what, _, _, batch| {
        assert_eq!(batch.input_nodes.len(), batch.blocks[0].num_src(), "{what}");
        for pair in batch.blocks.windows(2) {
            let shared = std::sync::Arc::ptr_eq(&pair[0], &pair[1]);
            assert!(shared || pair[0].num_dst() == pair[1].num_src(), "{what}");
        }
        let last = &batch.blocks[batch.blocks.len() - 1];
        assert!(batch.targets.iter().all(|&t| (t as usize) < last.num_dst()), "{what}");
        let distinct: HashSet<_> = batch.input_nodes.iter().collect();
        let repeated = batch.input_nodes.len() - distinct.len();
        assert!(repeated == 0 || what.starts_with("temporal"), "{what}");
        let weights = batch.target_weights.as_ref();
        assert!(weights.is_none_or(|w| w.len() == batch.targets.len()), "{what}");
    });
}

#[test]
fn every_edge_is_in_the_graph() {
    for_each_batch(|what, graph, _, batch| {
        if ["walks", "ppr"].iter().any(|name| what.starts_with(name)) {
            return;
        }
        for block in &batch.blocks {
            for dst in 0..block.num_dst() {
                let list = graph.csc().sources(batch.input_nodes[dst]);
                let mut left = list.to_vec();
                for &source in block.sources(dst) {
                    let node = batch.input_nodes[source as usize];
                    let at = left.iter().position(|&v| v == node);
                    left.remove(at.unwrap_or_else(|| panic!("{what}: no edge left from {node}")));
                }
            }
        }
    });
}

#[test]
fn seeds_are_the_first_targets() {
    for_each_batch(|what, graph, seeds, batch| {
        if ["uniform", "labor", "exact", "weighted", "full", "temporal", "walks", "ppr"]
            .iter()
            .any(|name| what.starts_with(name))
        {
            assert_eq!(batch.targets, (0..seeds.len() as u32).collect::<Vec<_>>(), "{what}");
            assert_eq!(&batch.input_nodes[..seeds.len()], seeds, "{what}");
        } else {
            let train: HashSet<_> = train(graph).into_iter().collect();
            let inside = batch.input_nodes.iter().filter(|&v| train.contains(v)).count();
            assert_eq!(batch.targets.len(), inside, "{what}");
            assert!(batch.input_nodes[..inside].iter().all(|v| train.contains(v)), "{what}");
        }
    });
}

#[test]
fn ids_and_degrees_are_the_graphs() {
    for_each_batch(|what, graph, _, batch| {
        let block = &batch.blocks[0];
        for (i, &node) in batch.input_nodes.iter().enumerate() {
            assert_eq!(block.ids()[i], graph.id(node), "{what}");
            if what.starts_with("cluster") {
                assert_eq!(block.degrees()[i] as usize, block.sources(i).len(), "{what}");
            } else if what.starts_with("temporal") {
                assert!(block.degrees()[i] <= graph.degree(node), "{what}");
            } else {
                assert_eq!(block.degrees()[i], graph.degree(node), "{what}");
            }
        }
    });
}

#[test]
fn a_batch_depends_on_seeds_and_key_alone() {
    for (name, graph) in graphs() {
        for sampler in samplers(&graph) {
            let key = Key::new(3).with(1);
            let batches = sampler.epoch(&train(&graph), 9, key);
            let draw = |order: Vec<usize>| {
                let mut scratch = Scratch::new();
                let mut found: Vec<_> = order
                    .into_iter()
                    .map(|i| (i, sampler.sample(&batches[i], key, &mut scratch).unwrap()))
                    .collect();
                found.sort_by_key(|(i, _)| *i);
                found
            };
            let forward = draw((0..batches.len()).collect());
            let backward = std::thread::scope(|scope| {
                scope.spawn(|| draw((0..batches.len()).rev().collect())).join().unwrap()
            });
            for ((_, a), (_, b)) in forward.iter().zip(&backward) {
                assert!(same(a, b), "{} on {name}", sampler.name());
            }
        }
    }
}

#[test]
fn an_epoch_of_clusters_covers_each_node_once() {
    let (_, graph) = graphs().swap_remove(0);
    let clusters: Vec<u32> = (0..200).map(|v| v % 13).collect();
    let sampler = ClusterSampler::new(&graph, &clusters, &[], 4, 1).unwrap();
    let (key, mut scratch, mut nodes) = (Key::new(4), Scratch::new(), Vec::new());
    for seeds in sampler.batches(key) {
        nodes.extend(sampler.sample(&seeds, key, &mut scratch).unwrap().input_nodes);
    }
    nodes.sort_unstable();
    assert_eq!(nodes, (0..200).collect::<Vec<_>>());
    assert_ne!(sampler.batches(key), sampler.batches(key.with(1)));
}

/// The paper's aggregator is an unbiased estimate of the mean over all in-neighbors; the loss of
/// the mean over the training nodes.
#[test]
fn saint_corrects_the_bias_of_its_choice() {
    let (_, graph) = graphs().swap_remove(0);
    let (train, value) = (train(&graph), |v: u32| f64::from(v % 10));
    let draw = Box::new(NodeDraw::new(&graph, 60).unwrap());
    let saint = SaintSampler::prepare(draw, &graph, &train, 1, 4000, Key::new(5)).unwrap();
    let (mut sums, mut seen) = (vec![0.0; 200], vec![0.0; 200]);
    let (mut loss, mut targets, mut scratch) = (0.0, 0.0, Scratch::new());
    for step in 0..4000 {
        let batch = saint.sample(&[step], Key::new(6), &mut scratch).unwrap();
        let block = &batch.blocks[0];
        for dst in 0..block.num_dst() {
            let from = block.indptr()[dst] as usize;
            let weights = &block.weights().unwrap()[from..];
            let messages = block.sources(dst).iter().zip(weights);
            let total: f64 =
                messages.map(|(&s, &w)| f64::from(w) * value(batch.input_nodes[s as usize])).sum();
            sums[batch.input_nodes[dst] as usize] += total / block.sources(dst).len().max(1) as f64;
            seen[batch.input_nodes[dst] as usize] += 1.0;
        }
        for (&target, &weight) in batch.targets.iter().zip(batch.target_weights.as_ref().unwrap()) {
            loss += f64::from(weight) * value(batch.input_nodes[target as usize]);
        }
        targets += batch.targets.len() as f64;
    }
    // Nodes that are nobody's neighbor are never drawn.
    let met = train.into_iter().filter(|&v| saint.node_counts()[v as usize] > 0);
    let (sum, count) = met.fold((0.0, 0.0), |(sum, n), v| (sum + value(v), n + 1.0));
    let exact = sum / count;
    assert!((loss / targets - exact).abs() < 0.1, "{} is not {exact}", loss / targets);
    for v in (0..200).filter(|&v| seen[v as usize] > 1000.0) {
        let list = graph.csc().sources(v);
        let exact = list.iter().map(|&s| value(s)).sum::<f64>() / list.len() as f64;
        let found = sums[v as usize] / seen[v as usize];
        assert!((found - exact).abs() < 0.1 * exact.max(1.0), "node {v}: {found} is not {exact}");
    }
}

#[test]
fn the_whole_graph_shares_one_block() {
    let (_, graph) = graphs().swap_remove(0);
    let batch = whole_graph(&graph, 3).unwrap();
    assert_eq!(batch.blocks.len(), 3);
    assert!(std::sync::Arc::ptr_eq(&batch.blocks[0], &batch.blocks[2]));
    assert_eq!(batch.blocks[0].indices(), &graph.csc().indices[..]);
    assert_eq!(batch.targets.len(), 200);
}
