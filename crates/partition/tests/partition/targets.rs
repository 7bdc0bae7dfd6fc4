//! Target edges beside parts, against the edges that they are of.

use std::collections::HashSet;
use std::path::Path;

use gnarl_common::Kind;
use gnarl_graph::generate::{CommunityOptions, community};
use gnarl_graph::triples::{Side, Triples};
use gnarl_graph::{
    DEFAULT_NODE_TYPE, Dataset, DatasetWriter, EdgeChunk, EdgeStream, FinishOptions, IdWidth,
    Labels, Triple,
};
use gnarl_partition::{
    LabelOf, PartLayout, PartitionConfig, PartitionedDataset, Parts, SplitTargets, TakeTarget,
    TargetEdge, TargetLabels, Targets, partition_dataset, partition_with_targets,
};
use half::f16;
use serde_json::{Value, json};

const PARTS: usize = 3;
const RELATIONS: u64 = 4;
const TASKS: usize = 3;

/// A message graph, and a dataset of the same nodes whose edges have features.
fn graphs(dir: &Path) -> (Dataset, Dataset) {
    let options = CommunityOptions { nodes: 600, communities: 6, ..Default::default() };
    community(&options, &dir.join("graph")).unwrap();
    let graph = Dataset::open(dir.join("graph")).unwrap();
    let mut writer = DatasetWriter::create(dir.join("source"), IdWidth::U32).unwrap();
    writer.add_node_type(DEFAULT_NODE_TYPE, 600);
    let triple = Triple::plain();
    let mut edges = writer.edge_writer(&triple, Some((600, 600))).unwrap();
    let mut features = writer.edge_column::<f16>(&triple, "features", &[2]).unwrap();
    for (row, (u, v)) in list(&graph).into_iter().enumerate() {
        edges.push(&[u], &[v]).unwrap();
        features.push(&[f16::from_f32(row as f32 / 7.0), f16::from_f32(u as f32)]).unwrap();
    }
    let mut columns = edges.finish().unwrap();
    columns.push(features.finish().unwrap());
    writer.add_edge_type(triple, columns);
    (graph, writer.finish(FinishOptions::default()).unwrap())
}

fn list(graph: &Dataset) -> Vec<(u64, u64)> {
    let mut stream = graph.edges_of(&Triple::plain()).unwrap();
    let (mut chunk, mut all) = (EdgeChunk::default(), Vec::new());
    while stream.next_chunk(&mut chunk).unwrap() {
        all.extend(chunk.iter());
    }
    all
}

/// The target edges: most edges of the source.
fn targets(source: &Dataset) -> Vec<TargetEdge> {
    let edge = |(row, (u, v)): (usize, (u64, u64))| {
        let split = [0, 0, 1, 0, 2, 3, 0][(row * 31) % 7];
        let relation = (row as u64 * 5 % RELATIONS) as u32;
        (split < 3).then_some(TargetEdge {
            split,
            head: u as u32,
            relation,
            tail: v as u32,
            row: row as u64,
            time: 7 * row as i64 - 100,
        })
    };
    list(source).into_iter().enumerate().filter_map(edge).collect()
}

fn config(layout: PartLayout, memory: u64) -> PartitionConfig {
    let algorithm = if layout == PartLayout::EdgeCut { "random" } else { "dbh" };
    let (algorithm, parts) = (algorithm.into(), Parts::Count(PARTS));
    PartitionConfig { algorithm, parts, layout, memory, ..Default::default() }
}

/// Writes targets; returns the partition and the number of passes.
fn cut(
    (graph, source): (&Dataset, &Dataset),
    labels: Option<(TargetLabels, LabelOf<'_>)>,
    config: &PartitionConfig,
    out: &Path,
) -> (PartitionedDataset, usize) {
    let edges = targets(source);
    let mut passes = 0;
    let targets = Targets {
        source,
        triple: Triple::plain(),
        settings: json!({ "kind": "test" }),
        relations: RELATIONS,
        relation_names: vec!["a".into(), "b".into(), "c".into(), "d".into()],
        labels,
        with_features: true,
        with_times: true,
        each: &mut |take: &mut TakeTarget<'_>| {
            passes += 1;
            edges.iter().try_for_each(|&edge| take(edge))
        },
    };
    (partition_with_targets(graph, targets, config, out).unwrap().0, passes)
}

/// Every target edge is in the part that owns its head, with its place and features. `label` checks the label of a
/// row of the source at a row of a part.
fn check(
    made: &PartitionedDataset,
    source: &Dataset,
    label: impl Fn(u64, Option<&Labels>, usize) -> bool,
) {
    let owner = made.assignment(DEFAULT_NODE_TYPE).unwrap();
    let features = source.edge_column(&Triple::plain(), "features").unwrap().unwrap();
    let features = features.values::<f16>().unwrap();
    let parts: Vec<_> = (0..PARTS).map(|p| made.targets(p).unwrap().unwrap()).collect();
    let mut next = [0u32; 3];
    let mut rows = [[0usize; 3]; PARTS];
    for edge in targets(source) {
        let part = owner[edge.head as usize] as usize;
        let split = &parts[part].splits[edge.split];
        let row = rows[part][edge.split];
        assert_eq!(split.places[row], next[edge.split]);
        let stored = [split.heads[row], split.relations[row], split.tails[row]];
        assert_eq!(stored, [edge.head, edge.relation, edge.tail]);
        let column = split.features.as_ref().unwrap().values::<f16>().unwrap();
        assert_eq!(column[2 * row..][..2], features[2 * edge.row as usize..][..2]);
        assert_eq!(split.times.as_ref().unwrap()[row], edge.time);
        assert!(label(edge.row, split.labels.as_ref(), row));
        next[edge.split] += 1;
        rows[part][edge.split] += 1;
    }
    let manifest = made.manifest().targets.as_ref().unwrap();
    for (part, targets) in parts.iter().enumerate() {
        assert_eq!(targets.splits.each_ref().map(|split| split.len()), rows[part]);
        assert_eq!(made.verify_targets(part).unwrap(), 3 * manifest.parts[part][0].len());
    }
    let total = |split| manifest.split_len(split);
    assert_eq!([total(0), total(1), total(2)], next.map(u64::from));
    assert_eq!((manifest.feature_width, manifest.relations), (2, RELATIONS));
    assert_eq!(manifest.settings, json!({ "kind": "test" }));
    assert_eq!(made.manifest().source.path, source.dir());
}

#[test]
fn targets_are_with_the_part_of_their_head() {
    let dir = tempfile::tempdir().unwrap();
    let (graph, source) = graphs(dir.path());
    let class = |row: u64| (row % 5) as i32 - 1;
    for layout in [PartLayout::EdgeCut, PartLayout::VertexCut] {
        let labels = (TargetLabels::Classes(4), LabelOf::Class(&class));
        let mut made = Vec::new();
        // Room for all parts, and for one at a time.
        for (memory, expected) in [(1 << 30, 1), (1 << 23, PARTS)] {
            let out = dir.path().join(format!("{layout}-{expected}"));
            let config = config(layout, memory);
            let (cut, passes) = cut((&graph, &source), Some(labels), &config, &out);
            assert_eq!(passes, expected);
            check(&cut, &source, |row, labels, at| match labels {
                Some(Labels::Single { classes, count: 4 }) => classes[at] == class(row),
                _ => false,
            });
            made.push(cut.manifest().targets.clone());
        }
        assert_eq!(made[0], made[1]);
    }
}

#[test]
fn labels_of_each_kind_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let (graph, source) = graphs(dir.path());
    let edges = source.manifest().edge_types[0].count;
    let marks: Vec<u8> = (0..edges * TASKS as u64).map(|i| (i % 5 % 2) as u8).collect();
    let marks_of = |row: u64| &marks[row as usize * TASKS..][..TASKS];
    let append = |row: u64, out: &mut Vec<u8>| out.extend_from_slice(marks_of(row));
    let value = |row: u64| row as f32 / 3.0;
    let config = config(PartLayout::EdgeCut, 1 << 30);
    let graphs = (&graph, &source);

    let labels = (TargetLabels::Multi(TASKS as u64), LabelOf::Marks(&append));
    let made = cut(graphs, Some(labels), &config, &dir.path().join("multi")).0;
    check(&made, &source, |row, labels, at| match labels {
        Some(Labels::Multi { values, tasks: TASKS }) => {
            values[at * TASKS..][..TASKS] == *marks_of(row)
        }
        _ => false,
    });
    let labels = (TargetLabels::Values, LabelOf::Value(&value));
    let made = cut(graphs, Some(labels), &config, &dir.path().join("values")).0;
    check(&made, &source, |row, labels, at| match labels {
        Some(Labels::Values { values }) => values[at] == value(row),
        _ => false,
    });
    let made = cut(graphs, None, &config, &dir.path().join("none")).0;
    check(&made, &source, |_, labels, _| labels.is_none());
}

#[test]
fn edges_are_found_by_place_and_by_endpoint() {
    let dir = tempfile::tempdir().unwrap();
    let (graph, source) = graphs(dir.path());
    let made = cut(
        (&graph, &source),
        None,
        &config(PartLayout::EdgeCut, 1 << 30),
        &dir.path().join("parts"),
    )
    .0;
    let all = targets(&source);
    let valid: Vec<&TargetEdge> = all.iter().filter(|edge| edge.split == 1).collect();
    let places: Vec<u32> =
        (0..200).map(|i| i * 53 % valid.len() as u32).chain([u32::MAX]).collect();
    let mut seen = vec![0; places.len()];
    for part in 0..PARTS {
        let split = &made.targets(part).unwrap().unwrap().splits[1];
        let found = split.find(&places);
        assert!(found.is_sorted_by_key(|pair| pair.0));
        let rows: Vec<u32> = found.iter().map(|pair| pair.1).collect();
        let edges = split.edges(&rows);
        for (i, &(at, _)) in found.iter().enumerate() {
            seen[at as usize] += 1;
            let expected = valid[places[at as usize] as usize];
            let edge = [edges.heads[i], edges.relations[i], edges.tails[i]];
            assert_eq!(edge, [expected.head, expected.relation, expected.tail]);
        }
        assert_eq!(split.stretch(3..9), split.edges(&[3, 4, 5, 6, 7, 8]));
    }
    seen.pop();
    assert!(seen.iter().all(|&times| times == 1));

    for side in Side::BOTH {
        let keys: HashSet<[u32; 2]> =
            (0..40).map(|i| [i * 17 % 600, i % RELATIONS as u32]).collect();
        for splits in [0..1, 0..3] {
            let matches = |edge: &&TargetEdge| {
                let given = if side == Side::Tail { edge.head } else { edge.tail };
                splits.contains(&edge.split) && keys.contains(&[given, edge.relation])
            };
            let expected = sorted(all.iter().filter(matches).map(|e| [e.head, e.relation, e.tail]));
            let mut found = Vec::new();
            for part in 0..PARTS {
                let targets = made.targets(part).unwrap().unwrap();
                found.extend(rows(&targets.matching(splits.clone(), side, &keys)));
            }
            assert!(!expected.is_empty());
            assert_eq!(sorted(found.into_iter()), expected);
        }
    }
}

#[test]
fn every_place_is_found_and_no_other() {
    let split = |places: Vec<u32>| {
        let zeros = vec![0; places.len()];
        SplitTargets {
            places: places.into(),
            heads: zeros.clone().into(),
            relations: zeros.clone().into(),
            tails: zeros.into(),
            labels: None,
            features: None,
            times: None,
        }
    };
    let even: Vec<u32> = (0..1000).map(|i| 2 * i).collect();
    let squares: Vec<u32> = (0..1000).map(|i| i * i).collect();
    let powers: Vec<u32> = (0..32).map(|i| 1 << i).chain([u32::MAX]).collect();
    for places in [even, squares, powers, vec![7], vec![0, u32::MAX], Vec::new()] {
        let split = split(places.clone());
        for (row, &place) in places.iter().enumerate() {
            assert_eq!(split.find(&[place]), [(0, row as u32)]);
            let next = place.saturating_add(1);
            let row = places.iter().position(|&p| p == next).map(|row| (0, row as u32));
            assert_eq!(split.find(&[next]), Vec::from_iter(row));
        }
        assert!(split.find(&[3_000_001]).is_empty());
    }
    // Damaged files are no panic.
    let places: Vec<u32> = (0..100).map(|i| i * 37 % 101).collect();
    let disordered = split(places.clone());
    for place in 0..200 {
        assert!(disordered.find(&[place]).iter().all(|&(_, row)| places[row as usize] == place));
    }
}

fn rows(edges: &Triples) -> Vec<[u32; 3]> {
    (0..edges.len()).map(|i| [edges.heads[i], edges.relations[i], edges.tails[i]]).collect()
}

fn sorted(edges: impl Iterator<Item = [u32; 3]>) -> Vec<[u32; 3]> {
    let mut all: Vec<_> = edges.collect();
    all.sort_unstable();
    all
}

#[test]
fn wrong_edges_and_damaged_files_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let (graph, source) = graphs(dir.path());
    let attempt = |graph: &Dataset, edge: TargetEdge, with_features: bool| {
        let targets = Targets {
            source: if with_features { &source } else { graph },
            triple: Triple::plain(),
            settings: json!(null),
            relations: 0,
            relation_names: Vec::new(),
            labels: None,
            with_features: true,
            with_times: true,
            each: &mut |take: &mut TakeTarget<'_>| take(edge),
        };
        let config = config(PartLayout::EdgeCut, 1 << 30);
        let error = partition_with_targets(graph, targets, &config, &dir.path().join("failed"));
        let error = error.err().unwrap();
        assert_eq!(error.kind(), Kind::InvalidInput);
        assert!(!dir.path().join("failed").exists());
        error.to_string()
    };
    let edge = TargetEdge { split: 0, head: 1, relation: 0, tail: 2, row: 0, time: 0 };
    let text = attempt(&graph, TargetEdge { head: 600, ..edge }, true);
    assert!(text.contains("invalid head '600' of edge 0: expected a number below 600"), "{text}");
    let text = attempt(&graph, TargetEdge { relation: 1, ..edge }, true);
    assert!(text.contains("invalid relation '1'"), "{text}");
    let text = attempt(&graph, TargetEdge { split: 3, ..edge }, true);
    assert!(text.contains("invalid split '3'"), "{text}");
    let text = attempt(&graph, TargetEdge { row: 1 << 40, ..edge }, true);
    assert!(text.contains("has no features"), "{text}");
    let text = attempt(&graph, edge, false);
    assert!(text.contains("edges have no features"), "{text}");
    let options = CommunityOptions { nodes: 500, communities: 5, ..Default::default() };
    community(&options, &dir.path().join("small")).unwrap();
    let small = Dataset::open(dir.path().join("small")).unwrap();
    let text = attempt(&small, edge, true);
    assert!(text.contains("500 nodes of type '_N'") && text.contains("600"), "{text}");

    let made = cut(
        (&graph, &source),
        None,
        &config(PartLayout::EdgeCut, 1 << 30),
        &dir.path().join("parts"),
    )
    .0;
    let files = made.dir().join("part-1/targets");
    for name in ["train.place.npy", "valid.head.npy", "test.features.npy"] {
        let path = files.join(name);
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, &whole[..whole.len() - 1]).unwrap();
        let text = made.targets(1).unwrap_err().to_string();
        assert!(text.contains(&format!("{name}: truncated")) && text.contains("part 1"), "{text}");
        std::fs::write(&path, whole).unwrap();
    }
    std::fs::copy(files.join("train.tail.npy"), files.join("train.place.npy")).unwrap();
    for error in [made.targets(1).map(drop), made.verify_targets(1).map(drop)] {
        let text = error.unwrap_err().to_string();
        assert!(text.contains("train.place.npy: checksum"), "{text}");
    }
    // Of the checksum that the manifest says, but of other values than places.
    let path = made.dir().join("partition.json");
    let mut manifest: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let columns = manifest["targets"]["parts"][1][0].as_array_mut().unwrap();
    let find = |name: &str| columns.iter().position(|column| column["name"] == name).unwrap();
    let places = [find("place"), find("tail")];
    columns[places[0]]["crc32"] = columns[places[1]]["crc32"].clone();
    std::fs::write(&path, manifest.to_string()).unwrap();
    let made = PartitionedDataset::open(made.dir()).unwrap();
    let text = made.targets(1).unwrap_err().to_string();
    assert!(text.contains("train.place.npy: expected ascending numbers"), "{text}");
    assert_eq!(made.targets(PARTS).unwrap_err().exit_code(), 2);
}

#[test]
fn partitions_without_targets_are_as_before() {
    let dir = tempfile::tempdir().unwrap();
    let (graph, _) = graphs(dir.path());
    let config = config(PartLayout::EdgeCut, 1 << 30);
    let made = partition_dataset(&graph, &config, &dir.path().join("parts")).unwrap().0;
    let text = std::fs::read_to_string(made.dir().join("partition.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert!(json.get("targets").is_none());
    assert!(made.targets(0).unwrap().is_none());
    assert_eq!(made.verify_targets(0).unwrap(), 0);
    assert!(!made.dir().join("part-0/targets").exists());
}
