//! Features of edges come with the edges that samplers choose.

use std::sync::Arc;

use gnarl_common::Result;
use gnarl_common::rng::Key;
use gnarl_graph::blocks::MiniBatch;
use gnarl_graph::{Csc, Dataset, DatasetWriter, IdWidth, Triple};
use gnarl_partition::{PartLayout, PartitionConfig, Parts, partition_dataset};
use gnarl_sample::parts::{LocalPart, PartsSampler, Replica, Routes, Rule};
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

/// Edges whose features are their endpoints, some of them parallel.
fn write(out: &std::path::Path) -> Dataset {
    let key = Key::new(8);
    let mut writer = DatasetWriter::create(out, IdWidth::U32).unwrap();
    writer.add_node_type("_N", 200);
    let mut list = writer.edge_writer(&Triple::plain(), None).unwrap();
    let mut features = writer.edge_column::<f32>(&Triple::plain(), "features", &[2]).unwrap();
    for edge in 0..2000 {
        let (src, dst) = (key.below(2 * edge, 200), key.below(2 * edge + 1, 180));
        list.push(&[src], &[dst]).unwrap();
        features.push(&[src as f32, edge as f32]).unwrap();
    }
    let mut columns = list.finish().unwrap();
    columns.push(features.finish().unwrap());
    writer.add_edge_type(Triple::plain(), columns);
    writer.finish(Default::default()).unwrap()
}

#[test]
fn parts_send_the_features_of_the_edges_they_choose() {
    let dir = tempfile::tempdir().unwrap();
    let dataset = write(&dir.path().join("whole"));
    let graph = SampleGraph::open(&dataset).unwrap();
    let graph = graph.with_edge_features_of(&dataset, &Triple::plain()).unwrap();
    let whole = ExactSampler::new(&graph, &[3, -1]).unwrap();
    for (layout, algorithm) in [(PartLayout::EdgeCut, "ldg"), (PartLayout::VertexCut, "dbh")] {
        let (algorithm, count) = (algorithm.into(), Parts::Count(3));
        let config = PartitionConfig { algorithm, parts: count, layout, ..Default::default() };
        let out = dir.path().join(layout.to_string());
        let cut = partition_dataset(&dataset, &config, &out).unwrap().0;
        assert_eq!(cut.edge_types().unwrap()[0].width("features"), 2);
        let sampler = |fanouts: &[i64]| {
            let open = |part| Arc::new(LocalPart::open(&cut, part).unwrap()) as _;
            let services = (0..3).map(open).collect();
            let routes = Routes::of(&cut).unwrap();
            let sampler = PartsSampler::new(Rule::Exact, fanouts, routes, services).unwrap();
            sampler.with_edge_features(2)
        };
        let lists = Replica::read(&sampler(&[-1]), &[1, 5, 9, 20], 1 << 20).unwrap();
        assert_eq!(lists.nodes(), 4);
        for sampler in [sampler(&[3, -1]), sampler(&[3, -1]).with_replica(Arc::new(lists))] {
            let (seeds, key) = ([5, 1, 150, 190], Key::new(4));
            let expected = whole.sample(&seeds, key, &mut Scratch::new()).unwrap();
            let found = sampler.sample(&seeds, key, &mut Scratch::new()).unwrap();
            assert_eq!(expected.input_nodes, found.input_nodes);
            for (expected, found) in expected.blocks.iter().zip(&found.blocks) {
                let rows = expected.edge_features().unwrap();
                assert_eq!(rows.values.len(), 2 * expected.num_edges());
                assert_eq!(rows, found.edge_features().unwrap(), "{layout}");
            }
        }
    }
}
