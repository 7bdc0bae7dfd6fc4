//! Frontier samplers with replacement, and the subgraphs that their nodes induce.

use std::collections::HashMap;

use gnarl_common::rng::Key;
use gnarl_graph::{Csc, Triple};
use gnarl_sample::parts::Rule;
use gnarl_sample::{
    FrontierSampler, HeteroFanouts, HeteroSampleGraph, HeteroScratch, Roots, TemporalRule,
};

/// Node 0 has the sources 1 to 4, node 5 the source 6, and node 7 none.
fn star() -> HeteroSampleGraph {
    let plain = Triple::plain();
    let lists = Csc::from_edges(8, &[(1, 0), (2, 0), (3, 0), (4, 0), (6, 5)]);
    let graph = HeteroSampleGraph::new().with_nodes(&plain.src, 8).unwrap();
    graph.with_edges(&plain, lists).unwrap()
}

fn replacing(graph: &HeteroSampleGraph, fanouts: &[i64]) -> FrontierSampler {
    let sampler = FrontierSampler::new(graph, &HeteroFanouts::new(fanouts), Rule::Uniform).unwrap();
    sampler.with_replacement().unwrap()
}

#[test]
fn each_draw_with_replacement_is_any_neighbor() {
    let sampler = replacing(&star(), &[4]);
    let mut counts = [[0; 5]; 4];
    let mut repeated = 0;
    for key in 0..4000 {
        let batch = sampler.sample("_N", &[0], Key::new(key), &mut HeteroScratch::new()).unwrap();
        let edges = &batch.edges[0];
        // As many as the fan-out, though the list has just as many.
        assert_eq!((edges.sources.len(), edges.rows.len(), edges.of_hop[0]), (4, 4, 4));
        let drawn: Vec<usize> =
            edges.sources.iter().map(|&at| batch.nodes[0][at as usize] as usize).collect();
        let mut distinct = drawn.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len() + 1, batch.nodes[0].len());
        repeated += usize::from(distinct.len() < 4);
        for (draw, &source) in drawn.iter().enumerate() {
            counts[draw][source] += 1;
            assert_eq!(edges.rows[draw], source as u64 - 1);
        }
    }
    // 1,000 of each in each draw, by five deviations; four distinct ones in 4! of 4⁴ draws.
    for of_draw in counts {
        assert!(of_draw[1..].iter().all(|&count: &i32| (count - 1000).abs() < 137), "{of_draw:?}");
    }
    assert!((3520..3730).contains(&repeated), "{repeated}");
}

#[test]
fn short_lists_are_drawn_from_again_and_all_neighbors_once() {
    let graph = star();
    let sampler = replacing(&graph, &[3]);
    let mut scratch = HeteroScratch::new();
    let batch = sampler.sample("_N", &[5, 7], Key::new(1), &mut scratch).unwrap();
    assert_eq!(batch.edges[0].sources, [2, 2, 2]);
    assert_eq!(batch.edges[0].destinations, [0, 0, 0]);
    let all = replacing(&graph, &[-1]);
    let batch = all.sample("_N", &[0, 5, 7], Key::new(1), &mut scratch).unwrap();
    assert_eq!(batch.edges[0].rows, [0, 1, 2, 3, 4]);
    // Trees draw likewise.
    let roots = Roots { seeds: &[(0, &[5, 7, 0], &[0, 1, 2])], names: &[0, 1, 2], times: None };
    let batch = sampler.sample_trees(roots, Key::new(1)).unwrap();
    assert_eq!(batch.edges[0].destinations, [0, 0, 0, 2, 2, 2]);
    let batch = all.sample_trees(roots, Key::new(1)).unwrap();
    assert_eq!(batch.edges[0].rows, [4, 0, 1, 2, 3]);
}

#[test]
fn edges_with_weights_are_replaced_by_the_uniform_rule_alone() {
    let plain = Triple::plain();
    let graph = star().with_weights(&plain, vec![1.0, 2.0, 3.0, 4.0, 5.0].into()).unwrap();
    let fanouts = HeteroFanouts::new(&[-1]);
    let all = replacing(&graph, &[-1]);
    let batch = all.sample("_N", &[0], Key::new(1), &mut HeteroScratch::new()).unwrap();
    assert_eq!(batch.edges[0].rows, [0, 1, 2, 3]);
    for rule in [Rule::Labor, Rule::Exact, Rule::Weighted] {
        let sampler = FrontierSampler::new(&graph, &fanouts, rule).unwrap();
        let error = sampler.with_replacement().unwrap_err();
        assert!(error.to_string().contains(rule.name()), "{error}");
    }
    let error = all.in_time(TemporalRule::Recent).unwrap_err();
    assert!(error.to_string().contains("replacement or by time"), "{error}");
}

#[test]
fn nodes_induce_all_edges_between_them() {
    let key = Key::new(3);
    let random = |count: u64, key: Key, sources: u64, destinations: u64| -> Vec<(u32, u32)> {
        let edge =
            |i| (key.below(2 * i, sources) as u32, key.below(2 * i + 1, destinations) as u32);
        (0..count).map(edge).collect()
    };
    let cites = random(400, key.with(0), 60, 60);
    let writes = random(200, key.with(1), 40, 60);
    let [cited, written] = [&cites, &writes].map(|edges| Csc::from_edges(60, edges));
    let names = ["paper:cites:paper", "author:writes:paper"].map(|name| name.parse().unwrap());
    let graph = HeteroSampleGraph::new().with_nodes("paper", 60).unwrap();
    let graph = graph.with_nodes("author", 40).unwrap();
    let graph = graph.with_edges(&names[0], cited.clone()).unwrap();
    let graph = graph.with_edges(&names[1], written.clone()).unwrap();
    let sampler =
        FrontierSampler::new(&graph, &HeteroFanouts::new(&[3, 2]), Rule::Uniform).unwrap();
    let mut scratch = HeteroScratch::new();
    let drawn = sampler.sample("paper", &[5, 9], Key::new(1), &mut scratch).unwrap();
    let mut batch = drawn.clone();
    sampler.induce(&mut batch, &mut scratch).unwrap();
    assert_eq!(batch.nodes, drawn.nodes);
    assert_eq!(batch.targets, drawn.targets);
    for (edge_type, lists) in [cited, written].iter().enumerate() {
        let (src, dst) = batch.schema.ends(edge_type);
        let place =
            |of: usize| -> HashMap<u32, u32> { batch.nodes[of].iter().copied().zip(0..).collect() };
        let sources = place(src);
        let destinations = place(dst);
        let mut expected = Vec::new();
        let mut row = 0;
        for destination in 0..60 {
            for source in lists.sources(destination) {
                let ends = (destinations.get(&destination), sources.get(source));
                if let (Some(&destination), Some(&source)) = ends {
                    expected.push((destination, source, row));
                }
                row += 1;
            }
        }
        let edges = &batch.edges[edge_type];
        assert!(edges.sources.len() > drawn.edges[edge_type].sources.len());
        assert!(edges.destinations.is_sorted());
        assert_eq!(edges.of_hop, [edges.sources.len()]);
        let ends = edges.destinations.iter().zip(&edges.sources).zip(&edges.rows);
        let mut found: Vec<(u32, u32, u64)> = ends.map(|((&d, &s), &row)| (d, s, row)).collect();
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected);
    }
}
