//! What frontier samplers must hold to, by every rule.

use std::collections::HashSet;

use gnarl_common::rng::Key;
use gnarl_graph::{Csc, Triple};
use gnarl_sample::parts::Rule;
use gnarl_sample::{
    FrontierBatch, FrontierSampler, HeteroFanouts, HeteroSampleGraph, HeteroSampler, HeteroScratch,
};

const RULES: [Rule; 4] = [Rule::Uniform, Rule::Labor, Rule::Exact, Rule::Weighted];
const PAPERS: u32 = 80;
const AUTHORS: u32 = 50;

fn triple(name: &str) -> Triple {
    name.parse().unwrap()
}

fn random_edges(count: u64, key: u64, sources: u32, destinations: u32) -> Vec<(u32, u32)> {
    let key = Key::new(key);
    let edge = |i| {
        (key.below(2 * i, sources.into()) as u32, key.below(2 * i + 1, destinations.into()) as u32)
    };
    (0..count).map(edge).collect()
}

/// Papers that cite papers, and authors who write them; weights ascend with edges.
fn graph() -> HeteroSampleGraph {
    let lists = [
        ("paper:cites:paper", random_edges(600, 1, PAPERS, PAPERS), PAPERS),
        ("author:writes:paper", random_edges(300, 2, AUTHORS, PAPERS), PAPERS),
        ("paper:written_by:author", random_edges(300, 3, PAPERS, AUTHORS), AUTHORS),
    ];
    let graph = HeteroSampleGraph::new().with_nodes("paper", PAPERS as usize).unwrap();
    let mut graph = graph.with_nodes("author", AUTHORS as usize).unwrap();
    for (name, edges, destinations) in lists {
        let csc = Csc::from_edges(destinations as usize, &edges);
        let weights: Vec<f32> = (0..csc.num_edges()).map(|edge| 1.0 + edge as f32).collect();
        let name = triple(name);
        graph = graph.with_edges(&name, csc).unwrap();
        graph = graph.with_weights(&name, weights.into()).unwrap();
    }
    graph
}

fn sample(graph: &HeteroSampleGraph, fanouts: &[i64], rule: Rule, key: u64) -> FrontierBatch {
    let sampler = FrontierSampler::new(graph, &HeteroFanouts::new(fanouts), rule).unwrap();
    let mut scratch = HeteroScratch::new();
    sampler.sample("paper", &[5, 17, 30], Key::new(key), &mut scratch).unwrap()
}

#[test]
fn edges_of_a_hop_end_in_nodes_that_the_hop_before_reached_first() {
    let graph = graph();
    for rule in RULES {
        let batch = sample(&graph, &[4, 3, 2], rule, 9);
        assert_eq!(batch.nodes[0][..3], [5, 17, 30]);
        for (edge_type, edges) in batch.edges.iter().enumerate() {
            let (src, dst) = batch.schema.ends(edge_type);
            let (mut first, mut edge) = (0, 0);
            let csc = graph.csc(edge_type);
            for (hop, fanout) in [4usize, 3, 2].into_iter().enumerate() {
                let frontier = first..first + batch.nodes_of_hop[dst][hop];
                let range = edge..edge + edges.of_hop[hop];
                for at in frontier.clone() {
                    let node = batch.nodes[dst][at];
                    let own: Vec<usize> =
                        range.clone().filter(|&e| edges.destinations[e] as usize == at).collect();
                    if rule != Rule::Labor {
                        assert_eq!(own.len(), fanout.min(csc.degree(node) as usize), "{rule:?}");
                    }
                    let rows: HashSet<u64> = own.iter().map(|&e| edges.rows[e]).collect();
                    assert_eq!(rows.len(), own.len(), "each edge once");
                    for e in own {
                        let place = edges.rows[e] - csc.indptr.get(node.into());
                        let source = batch.nodes[src][edges.sources[e] as usize];
                        assert_eq!(csc.sources(node)[place as usize], source);
                    }
                }
                let ends = &edges.destinations[range.clone()];
                assert!(ends.iter().all(|&at| frontier.contains(&(at as usize))), "{rule:?}");
                (first, edge) = (frontier.end, range.end);
            }
            assert_eq!(edge, edges.rows.len());
        }
        for (nodes, of_hop) in batch.nodes.iter().zip(&batch.nodes_of_hop) {
            assert_eq!((of_hop.len(), of_hop.iter().sum::<usize>()), (4, nodes.len()));
            assert_eq!(nodes.iter().collect::<HashSet<_>>().len(), nodes.len());
        }
    }
}

#[test]
fn seeds_draw_the_neighbors_that_blocks_have() {
    let graph = graph();
    for rule in RULES {
        let fanouts = HeteroFanouts::new(&[4]);
        let blocks = HeteroSampler::new(&graph, &fanouts, rule).unwrap();
        let mut scratch = HeteroScratch::new();
        let blocks = blocks.sample("paper", &[5, 17, 30], Key::new(9), &mut scratch).unwrap();
        let batch = sample(&graph, &[4], rule, 9);
        assert_eq!(batch.nodes, blocks.input_nodes);
        for (edges, relation) in batch.edges.iter().zip(blocks.blocks[0].relations()) {
            assert_eq!(edges.sources, relation.indices());
        }
    }
}

#[test]
fn all_neighbors_of_all_hops_are_the_reachable_graph() {
    let graph = graph();
    let batch = sample(&graph, &[-1; 12], Rule::Uniform, 0);
    for (edge_type, edges) in batch.edges.iter().enumerate() {
        let dst = batch.schema.ends(edge_type).1;
        let csc = graph.csc(edge_type);
        let expected: usize = batch.nodes[dst].iter().map(|&v| csc.degree(v) as usize).sum();
        assert_eq!(edges.rows.len(), expected);
        assert_eq!(*edges.of_hop.last().unwrap(), 0);
    }
}

#[test]
fn batches_depend_on_the_key_and_not_on_the_memory() {
    let graph = graph();
    let sampler =
        FrontierSampler::new(&graph, &HeteroFanouts::new(&[3, 3]), Rule::Uniform).unwrap();
    let mut used = HeteroScratch::new();
    let mut all = HashSet::new();
    for key in 0..8 {
        let sample = |scratch: &mut HeteroScratch| {
            sampler.sample("author", &[1, 2], Key::new(key), scratch).unwrap()
        };
        let batch = sample(&mut used);
        assert_eq!(batch, sample(&mut HeteroScratch::new()));
        all.insert(format!("{:?}", batch.edges));
    }
    assert_eq!(all.len(), 8);
}

#[test]
fn edge_types_have_fan_outs_of_their_own() {
    let graph = graph();
    let fanouts = HeteroFanouts::new(&[2, 2]).with(triple("author:writes:paper"), &[0, 3]);
    let sampler = FrontierSampler::new(&graph, &fanouts, Rule::Uniform).unwrap();
    let batch = sampler.sample("paper", &[5], Key::new(1), &mut HeteroScratch::new()).unwrap();
    let writes = graph.schema().edge_type(&triple("author:writes:paper")).unwrap();
    assert_eq!(batch.edges[writes].of_hop[0], 0);
    assert!(batch.edges[writes].of_hop[1] > 0);
}

#[test]
fn equal_seeds_share_a_position_and_unknown_ones_are_refused() {
    let graph = graph();
    let sampler = FrontierSampler::new(&graph, &HeteroFanouts::new(&[2]), Rule::Uniform).unwrap();
    let mut scratch = HeteroScratch::new();
    let batch = sampler.sample("paper", &[5, 6, 5], Key::new(1), &mut scratch).unwrap();
    assert_eq!((batch.targets[0].1.clone(), batch.nodes_of_hop[0][0]), (vec![0, 1, 0], 2));
    let error = sampler.sample("paper", &[PAPERS], Key::new(1), &mut scratch).unwrap_err();
    assert!(error.to_string().contains("seed 80"), "{error}");
}
