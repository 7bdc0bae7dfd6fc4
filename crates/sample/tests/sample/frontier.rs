//! Frontier samplers by every rule: hops, rows of edges, trees, times.

use std::collections::HashSet;

use gnarl_common::rng::Key;
use gnarl_graph::{Csc, Triple};
use gnarl_sample::parts::Rule;
use gnarl_sample::{
    FrontierBatch, FrontierEdges, FrontierSampler, HeteroFanouts, HeteroSampleGraph, HeteroSampler,
    HeteroScratch, Roots, TemporalRule,
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

fn trees(graph: &HeteroSampleGraph, rule: Rule, seeds: &[u32], names: &[u64]) -> FrontierBatch {
    let sampler = FrontierSampler::new(graph, &HeteroFanouts::new(&[3, 2]), rule).unwrap();
    let numbers: Vec<u32> = (0..seeds.len() as u32).collect();
    let roots = Roots { seeds: &[(0, seeds, &numbers)], names, times: None };
    sampler.sample_trees(roots, Key::new(4)).unwrap()
}

/// The edges of a tree by edge type: rows, and the dataset ids of their ends.
fn edges_of_tree(batch: &FrontierBatch, tree: u32) -> Vec<Vec<(u64, u32, u32)>> {
    let trees = batch.trees.as_ref().unwrap();
    let of_type = |(edge_type, edges): (usize, &FrontierEdges)| {
        let (src, dst) = batch.schema.ends(edge_type);
        let ends = edges.sources.iter().zip(&edges.destinations).zip(&edges.rows);
        let own = ends.filter(|((from, to), _)| {
            assert_eq!(trees[src][**from as usize], trees[dst][**to as usize], "one tree");
            trees[dst][**to as usize] == tree
        });
        let named = own.map(|((&from, &to), &row)| {
            (row, batch.nodes[src][from as usize], batch.nodes[dst][to as usize])
        });
        named.collect()
    };
    batch.edges.iter().enumerate().map(of_type).collect()
}

#[test]
fn trees_do_not_depend_on_each_other() {
    let graph = graph();
    for rule in RULES {
        let all = trees(&graph, rule, &[5, 17, 5], &[0, 1, 2]);
        let alone = trees(&graph, rule, &[17], &[1]);
        assert_eq!(edges_of_tree(&all, 1), edges_of_tree(&alone, 0), "{rule:?}");
        assert_eq!(all.nodes[0][..3], [5, 17, 5]);
        assert_eq!(all.nodes_of_hop[0][0], 3);
        // A seed that is given twice draws twice.
        assert_ne!(edges_of_tree(&all, 0), edges_of_tree(&all, 2), "{rule:?}");
    }
}

#[test]
fn a_tree_of_all_neighbors_is_the_batch_of_its_root() {
    let graph = graph();
    let sampler =
        FrontierSampler::new(&graph, &HeteroFanouts::new(&[-1, -1]), Rule::Weighted).unwrap();
    let roots = Roots { seeds: &[(0, &[5, 8], &[0, 1])], names: &[3, 9], times: None };
    let all = sampler.sample_trees(roots, Key::new(4)).unwrap();
    for (tree, seed) in [5, 8].into_iter().enumerate() {
        let alone =
            sampler.sample("paper", &[seed], Key::new(7), &mut HeteroScratch::new()).unwrap();
        for (found, edges) in edges_of_tree(&all, tree as u32).iter().zip(&alone.edges) {
            let mut rows: Vec<u64> = found.iter().map(|edge| edge.0).collect();
            let mut expected = edges.rows.clone();
            rows.sort_unstable();
            expected.sort_unstable();
            assert_eq!(rows, expected);
        }
    }
}

#[test]
fn trees_in_time_have_no_later_edge() {
    let graph = graph();
    let cites = triple("paper:cites:paper");
    let count = graph.csc(0).num_edges();
    let times: Vec<i64> = (0..count as i64).map(|edge| edge * 7 % 100).collect();
    let graph = graph.with_times(&cites, times.clone().into()).unwrap();
    for rule in [TemporalRule::Uniform, TemporalRule::Recent] {
        let fanouts = HeteroFanouts::new(&[3, 2]);
        let sampler = FrontierSampler::new(&graph, &fanouts, Rule::Uniform).unwrap();
        let sampler = sampler.in_time(rule).unwrap();
        let seeds: Vec<u32> = (0..40).collect();
        let of = [50, 20, 99, -1];
        let as_of: Vec<i64> = seeds.iter().map(|&seed| of[seed as usize % 4]).collect();
        let names: Vec<u64> = seeds.iter().map(|&seed| seed.into()).collect();
        let roots = Roots { seeds: &[(0, &seeds, &seeds)], names: &names, times: Some(&as_of) };
        let batch = sampler.sample_trees(roots, Key::new(1)).unwrap();
        let trees = batch.trees.as_ref().unwrap();
        let edges = &batch.edges[0];
        assert!(edges.rows.len() > 30);
        for (&at, &row) in edges.destinations.iter().zip(&edges.rows) {
            let tree = trees[0][at as usize] as usize;
            assert!(times[row as usize] <= as_of[tree], "{rule:?}");
        }
        // Of the seeds' own edges as many as are there, and the latest by the rule.
        let csc = graph.csc(0);
        for (tree, &seed) in seeds.iter().enumerate() {
            let list = csc.indptr.get(seed.into())..csc.indptr.get(u64::from(seed) + 1);
            let mut there: Vec<i64> =
                list.map(|edge| times[edge as usize]).filter(|time| *time <= as_of[tree]).collect();
            there.sort_unstable();
            let mut own: Vec<i64> = (0..edges.of_hop[0])
                .filter(|&e| edges.destinations[e] as usize == tree)
                .map(|e| times[edges.rows[e] as usize])
                .collect();
            own.sort_unstable();
            assert_eq!(own.len(), there.len().min(3));
            if rule == TemporalRule::Recent {
                assert_eq!(own, there[there.len() - own.len()..]);
            }
        }
        let error = sampler.sample_trees(Roots { times: None, ..roots }, Key::new(1)).unwrap_err();
        assert!(error.to_string().contains("times"), "{error}");
        let error = sampler.sample("paper", &[1], Key::new(1), &mut HeteroScratch::new());
        assert!(error.unwrap_err().to_string().contains("trees"));
    }
    let plain = FrontierSampler::new(&self::graph(), &HeteroFanouts::new(&[3]), Rule::Uniform);
    assert!(
        plain.unwrap().in_time(TemporalRule::Uniform).unwrap_err().to_string().contains("times")
    );
}
