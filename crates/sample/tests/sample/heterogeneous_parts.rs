//! Sampling from parts of a heterogeneous graph: the same batches as from the whole, however it is cut.

use std::path::Path;
use std::sync::Arc;

use gnarl_common::Kind;
use gnarl_common::rng::Key;
use gnarl_graph::{Dataset, DatasetWriter, IdWidth, Triple};
use gnarl_partition::{PartLayout, PartitionConfig, PartitionedDataset, Parts, partition_dataset};
use gnarl_sample::parts::{NeighborService, Routes, Rule};
use gnarl_sample::{
    EdgeServices, HeteroBatch, HeteroFanouts, HeteroPartsSampler, HeteroSampleGraph, HeteroSampler,
    HeteroScratch, local_parts,
};

const PARTS: usize = 3;
const NODES: [(&str, u64); 4] = [("alone", 5), ("user", 300), ("item", 120), ("tag", 9)];
/// Edge types with their sizes; those of the second and third have weights.
const EDGES: [(&str, u64); 5] = [
    ("user:rates:item", 1500),
    ("item:rated_by:user", 1500),
    ("user:follows:user", 2500),
    ("tag:marks:item", 300),
    ("item:has:tag", 300),
];
const RULES: [Rule; 3] = [Rule::Uniform, Rule::Labor, Rule::Exact];

fn triple(name: &str) -> Triple {
    name.parse().unwrap()
}

fn count(node_type: &str) -> u64 {
    NODES.iter().find(|(name, _)| *name == node_type).unwrap().1
}

/// Hubs, and edges that repeat.
fn write(out: &Path) -> Dataset {
    let mut writer = DatasetWriter::create(out, IdWidth::U32).unwrap();
    for (name, count) in NODES {
        writer.add_node_type(name, count);
    }
    for (number, (name, edges)) in (0..).zip(EDGES) {
        let (t, key) = (triple(name), Key::new(77).with(number));
        let end = |c: u64, node_type: &str| {
            (0..2).map(|i| key.with(i).below(c, count(node_type) - 2)).min().unwrap()
        };
        let mut list = writer.edge_writer(&t, Some((count(&t.src), count(&t.dst)))).unwrap();
        let mut weights = writer.edge_column::<f32>(&t, "weight", &[]).unwrap();
        for edge in 0..edges {
            let (src, dst) = (end(2 * edge, &t.src), end(2 * edge + 1, &t.dst));
            list.push(&[src], &[dst]).unwrap();
            weights.push(&[Key::new(1).with(src).unit(dst) as f32 + 0.1]).unwrap();
        }
        let mut columns = list.finish().unwrap();
        let weights = weights.finish().unwrap();
        columns.extend([1, 2].contains(&number).then_some(weights));
        writer.add_edge_type(t, columns);
    }
    writer.finish(Default::default()).unwrap()
}

fn cuts(dataset: &Dataset, dir: &Path) -> [PartitionedDataset; 2] {
    let cuts = [(PartLayout::EdgeCut, "ldg"), (PartLayout::VertexCut, "adadne")];
    cuts.map(|(layout, algorithm)| {
        let (algorithm, parts) = (algorithm.into(), Parts::Count(PARTS));
        let config = PartitionConfig { algorithm, parts, layout, ..Default::default() };
        partition_dataset(dataset, &config, &dir.join(layout.to_string())).unwrap().0
    })
}

fn services(cut: &PartitionedDataset) -> Vec<EdgeServices> {
    let parts: Vec<_> = (0..PARTS).map(|part| local_parts(cut, part).unwrap()).collect();
    let types = cut.edge_types().unwrap();
    let of = |(number, edges): (usize, &gnarl_partition::PartitionedEdges)| {
        let service = |part: &Vec<(Triple, gnarl_sample::parts::LocalPart)>| {
            assert_eq!(part[number].0, edges.triple);
            Arc::new(part[number].1.clone()) as Arc<dyn NeighborService>
        };
        EdgeServices { parts: parts.iter().map(service).collect(), weighted: edges.is_weighted() }
    };
    types.iter().enumerate().map(of).collect()
}

fn divided(
    cut: &PartitionedDataset,
    fanouts: &HeteroFanouts,
    rule: Rule,
) -> gnarl_common::Result<HeteroPartsSampler> {
    let routes = NODES.map(|(name, _)| Routes::of_type(cut, name).unwrap());
    let schema = Arc::new(cut.schema().unwrap());
    HeteroPartsSampler::new(schema, (rule, fanouts), routes.to_vec(), services(cut))
}

/// Asserts that batches are alike. Degrees are compared where edges were sampled.
fn assert_same(whole: &HeteroBatch, found: &HeteroBatch, what: &str) {
    assert_eq!(whole.schema, found.schema, "{what}");
    assert_eq!((&whole.ids, &whole.targets), (&found.ids, &found.targets), "{what}");
    assert_eq!(whole.input_nodes, found.input_nodes, "{what}");
    assert_eq!(whole.blocks.len(), found.blocks.len());
    for (whole, found) in whole.blocks.iter().zip(&found.blocks) {
        assert_eq!((whole.num_dst(), whole.num_src()), (found.num_dst(), found.num_src()));
        for (whole, found) in whole.relations().iter().zip(found.relations()) {
            assert_eq!(whole.indptr(), found.indptr(), "{what}");
            assert_eq!(whole.indices(), found.indices(), "{what}");
            assert_eq!(whole.weights(), found.weights(), "{what}");
            for dst in (0..whole.num_dst()).filter(|&dst| !whole.sources(dst).is_empty()) {
                assert_eq!(whole.degrees()[dst], found.degrees()[dst], "{what}");
            }
        }
    }
}

/// Compares an epoch of batches of users and items with those from the whole graph.
fn same_batches(
    graph: &HeteroSampleGraph,
    cut: &PartitionedDataset,
    fanouts: &HeteroFanouts,
    rule: Rule,
) {
    let what = format!("{} of {} parts", rule.name(), cut.manifest().layout);
    let whole = HeteroSampler::new(graph, fanouts, rule).unwrap();
    let divided = divided(cut, fanouts, rule).unwrap();
    let mut scratch = HeteroScratch::new();
    let [user, item] = ["user", "item"].map(|name| graph.schema().node_type(name).unwrap());
    for batch in 0..8 {
        let key = Key::new(3).with(batch);
        let seeds =
            |of: u64| (0..20).map(|i| key.with(of).below(i, 100) as u32).collect::<Vec<_>>();
        let (users, items) = (seeds(0), seeds(1));
        let seeds = [(user, &*users), (item, &*items)];
        let expected = whole.sample_types(&seeds, key, &mut scratch).unwrap();
        let found = divided.sample_types(&seeds, key, &mut scratch).unwrap();
        assert_same(&expected, &found, &what);
        let (expected, found) = (expected.fuse(graph).unwrap(), found.fuse_alone().unwrap());
        assert_eq!((&expected.targets, &expected.segments), (&found.targets, &found.segments));
        for (expected, found) in expected.blocks.iter().zip(&found.blocks) {
            assert_eq!(expected.block.indices(), found.block.indices(), "{what}");
            assert_eq!(expected.block.weights(), found.block.weights(), "{what}");
            assert_eq!(expected.block.ids(), found.block.ids(), "{what}");
            assert_eq!(expected.edge_types, found.edge_types, "{what}");
            assert_eq!(expected.group_degrees, found.group_degrees, "{what}");
        }
    }
}

#[test]
fn batches_of_parts_are_those_of_the_whole_graph() {
    let dir = tempfile::tempdir().unwrap();
    let dataset = write(&dir.path().join("whole"));
    let graph = HeteroSampleGraph::open(&dataset).unwrap();
    let fanouts = HeteroFanouts::new(&[4, 3, 2])
        .with(triple("tag:marks:item"), &[-1, 0, 1])
        .with(triple("user:follows:user"), &[0, 2, -1]);
    for cut in cuts(&dataset, dir.path()) {
        let shared = cut.manifest().layout == PartLayout::VertexCut;
        for rule in RULES.into_iter().filter(|&rule| !shared || rule.merges()) {
            same_batches(&graph, &cut, &fanouts, rule);
        }
        // Edge types without weights are taken whole.
        let by_weight = HeteroFanouts::new(&[-1, -1])
            .with(triple("user:follows:user"), &[3, 2])
            .with(triple("item:rated_by:user"), &[2, 2])
            .with(triple("item:has:tag"), &[0, 0]);
        same_batches(&graph, &cut, &by_weight, Rule::Weighted);
        let path = ["item:rated_by:user", "user:rates:item"].map(triple);
        same_batches(&graph, &cut, &HeteroFanouts::along(&path, &[3, 3]).unwrap(), Rule::Exact);
    }
}

#[test]
fn one_edge_type_of_many_is_a_share_of_each_part() {
    let dir = tempfile::tempdir().unwrap();
    let dataset = write(&dir.path().join("whole"));
    for cut in cuts(&dataset, dir.path()) {
        let all = HeteroFanouts::new(&[-1]);
        let sampler = divided(&cut, &all, Rule::Exact).unwrap();
        let item = sampler.schema().node_type("item").unwrap();
        let seeds: Vec<u32> = (0..count("item") as u32).collect();
        let mut scratch = HeteroScratch::new();
        let batch = sampler.sample_types(&[(item, &seeds)], Key::new(0), &mut scratch).unwrap();
        let rates = sampler.schema().edge_type(&triple("user:rates:item")).unwrap();
        let relation = &batch.blocks[0].relations()[rates];
        assert_eq!(relation.num_edges() as u64, EDGES[0].1);
        let degrees: u64 = relation.degrees().iter().map(|&degree| u64::from(degree)).sum();
        assert_eq!(degrees, EDGES[0].1);
    }
}

#[test]
fn wrong_requests_say_why() {
    let dir = tempfile::tempdir().unwrap();
    let dataset = write(&dir.path().join("whole"));
    let [edge_cut, vertex_cut] = cuts(&dataset, dir.path());
    let fanouts = HeteroFanouts::new(&[2]);
    let error = divided(&vertex_cut, &fanouts, Rule::Weighted).err().unwrap();
    assert_eq!(error.kind(), Kind::Usage);
    assert!(error.to_string().contains("user:rates:item has no weights"), "{error}");
    let sampler = divided(&edge_cut, &fanouts, Rule::Exact).unwrap();
    let tag = sampler.schema().node_type("tag").unwrap();
    let mut scratch = HeteroScratch::new();
    let seeds = |seeds: &[(usize, &[u32])], scratch: &mut HeteroScratch| {
        sampler.sample_types(seeds, Key::new(0), scratch).unwrap_err().to_string()
    };
    let text = seeds(&[(tag, &[9])], &mut scratch);
    assert!(text.contains("seed 9 is not one of 9 nodes of type 'tag'"), "{text}");
    let text = seeds(&[(tag, &[1]), (tag, &[2])], &mut scratch);
    assert!(text.contains("duplicate seeds of type 'tag'"), "{text}");
    assert!(Routes::of(&edge_cut).is_err());
}

#[test]
fn partitions_without_names_of_edge_types_read_them_from_a_part() {
    let dir = tempfile::tempdir().unwrap();
    let dataset = write(&dir.path().join("whole"));
    for cut in cuts(&dataset, dir.path()) {
        let (types, schema) = (cut.edge_types().unwrap(), cut.schema().unwrap());
        let path = cut.dir().join(gnarl_partition::PARTITION);
        let mut manifest: serde_json::Value =
            serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        assert!(manifest.as_object_mut().unwrap().remove("edge_types").is_some());
        std::fs::write(&path, manifest.to_string()).unwrap();
        let older = PartitionedDataset::open(cut.dir()).unwrap();
        assert_eq!((older.edge_types().unwrap(), older.schema().unwrap()), (types, schema));
        for part in 0..PARTS {
            std::fs::remove_dir_all(cut.dir().join(format!("part-{part}"))).unwrap();
        }
        let error = older.schema().unwrap_err();
        assert!(format!("{error:?}").contains("partition the graph again"), "{error:?}");
    }
}
