//! Features of edges come with the edges that samplers choose.

use std::sync::Arc;

use gnarl_common::Result;
use gnarl_common::rng::Key;
use gnarl_graph::Csc;
use gnarl_graph::blocks::MiniBatch;
use gnarl_sample::{
    ClusterSampler, EdgeFeatures, ExactSampler, FullSampler, LaborSampler, SampleGraph, Sampler,
    Scratch, UniformSampler, whole_graph,
};

const NODES: u32 = 60;

/// A row per edge: its source, destination and row.
struct Ends(Vec<[f32; 3]>);

impl EdgeFeatures for Ends {
    fn rows(&self) -> u64 {
        self.0.len() as u64
    }

    fn width(&self) -> usize {
        3
    }

    fn append(&self, row: u64, out: &mut Vec<f32>) -> Result<()> {
        out.extend(self.0[row as usize]);
        Ok(())
    }
}

/// Random edges, some parallel, whose rows are in another order than the lists.
fn graph() -> SampleGraph {
    let key = Key::new(3);
    let end = |i: u64| key.below(i, u64::from(NODES)) as u32;
    let edges: Vec<(u32, u32)> = (0..500).map(|i| (end(2 * i), end(2 * i + 1))).collect();
    let mut csc = Csc::from_edges(NODES as usize, &edges);
    let count = edges.len() as u32;
    let mut rows = vec![[0.0; 3]; edges.len()];
    let mut position = 0;
    for destination in 0..NODES {
        for &source in csc.sources(destination) {
            let row = count - 1 - position;
            rows[row as usize] = [source as f32, destination as f32, row as f32];
            position += 1;
        }
    }
    csc.edge = Some((0..count).rev().collect::<Vec<u32>>().into());
    SampleGraph::new(csc).unwrap().with_edge_features(Arc::new(Ends(rows))).unwrap()
}

fn check(name: &str, batch: &MiniBatch) {
    for block in &batch.blocks {
        let rows = block.edge_features().unwrap_or_else(|| panic!("{name}: no features"));
        let mut rows = rows.values.chunks_exact(3);
        for destination in 0..block.num_dst() {
            let mut seen = Vec::new();
            for &source in block.sources(destination) {
                let row = rows.next().unwrap();
                let ends = [block.ids()[source as usize], block.ids()[destination]];
                assert_eq!(row[..2], ends.map(|id| id as f32), "{name}");
                assert!(!seen.contains(&row[2]), "{name}: the same of parallel edges twice");
                seen.push(row[2]);
            }
        }
        assert!(rows.next().is_none());
    }
}

#[test]
fn rows_belong_to_the_edges_of_blocks() {
    let graph = graph();
    let train: Vec<u32> = (0..40).collect();
    let clusters = (0..NODES).map(|node| node % 5).collect::<Vec<u32>>();
    let samplers: [Box<dyn Sampler>; 5] = [
        Box::new(UniformSampler::new(&graph, &[3, 2]).unwrap()),
        Box::new(ExactSampler::new(&graph, &[3, 2]).unwrap()),
        Box::new(LaborSampler::new(&graph, &[3, 2]).unwrap()),
        Box::new(FullSampler::new(&graph, 2).unwrap()),
        Box::new(ClusterSampler::new(&graph, &clusters, &train, 2, 2).unwrap()),
    ];
    let mut scratch = Scratch::new();
    for sampler in samplers {
        for seeds in sampler.epoch(&train, 8, Key::new(1)) {
            check(sampler.name(), &sampler.sample(&seeds, Key::new(2), &mut scratch).unwrap());
        }
    }
    check("whole", &whole_graph(&graph, 2).unwrap());
}

#[test]
fn every_edge_needs_a_row() {
    let few = Arc::new(Ends(vec![[0.0; 3]; 10]));
    let error = graph().with_edge_features(few).unwrap_err().to_string();
    assert!(error.contains("has no feature"), "{error}");
}
