//! Target edges behind servers: those of the files, and clear errors.

use std::sync::Arc;

use gnarl_common::Kind;
use gnarl_graph::generate::{CommunityOptions, community};
use gnarl_graph::triples::{Side, Triples};
use gnarl_graph::{
    DEFAULT_NODE_TYPE, Dataset, DatasetWriter, EdgeChunk, EdgeStream, FinishOptions, IdWidth,
    Labels, Triple,
};
use gnarl_partition::{
    LabelOf, PartitionConfig, PartitionedDataset, Parts, TakeTarget, TargetEdge, TargetLabels,
    Targets, partition_dataset, partition_with_targets,
};
use gnarl_serve::{
    Client, ClientConfig, FoundTargets, PartAccess, ServedPart, Server, ServerConfig,
};

const PARTS: usize = 2;
const NODES: u64 = 2000;
const RELATIONS: u32 = 3;

/// Labels of target edges; features, too, unless there is nothing.
#[derive(Clone, Copy, PartialEq)]
enum Carried {
    Nothing,
    Classes,
    Marks,
    Values,
}

struct Cut {
    dir: tempfile::TempDir,
    parts: PartitionedDataset,
    edges: Vec<TargetEdge>,
}

/// A graph whose own edges are the targets.
fn cut(carried: Carried) -> Cut {
    let dir = tempfile::tempdir().unwrap();
    let options = CommunityOptions { nodes: NODES, communities: 8, ..Default::default() };
    community(&options, &dir.path().join("generated")).unwrap();
    let generated = Dataset::open(dir.path().join("generated")).unwrap();
    let mut stream = generated.edges_of(&Triple::plain()).unwrap();
    let (mut chunk, mut pairs) = (EdgeChunk::default(), Vec::new());
    while stream.next_chunk(&mut chunk).unwrap() {
        pairs.extend(chunk.iter());
    }
    let mut writer = DatasetWriter::create(dir.path().join("graph"), IdWidth::U32).unwrap();
    writer.add_node_type(DEFAULT_NODE_TYPE, NODES);
    let mut edges = writer.edge_writer(&Triple::plain(), Some((NODES, NODES))).unwrap();
    let mut features = writer.edge_column::<f32>(&Triple::plain(), "features", &[2]).unwrap();
    for (row, &(u, v)) in pairs.iter().enumerate() {
        edges.push(&[u], &[v]).unwrap();
        features.push(&[row as f32, u as f32]).unwrap();
    }
    let mut columns = edges.finish().unwrap();
    columns.push(features.finish().unwrap());
    writer.add_edge_type(Triple::plain(), columns);
    let graph = writer.finish(FinishOptions::default()).unwrap();

    let target = |(row, &(u, v)): (usize, &(u64, u64))| TargetEdge {
        split: [0, 0, 1, 0, 0, 0, 0][(row * 31) % 7],
        head: u as u32,
        relation: (row as u64 * 5 % u64::from(RELATIONS)) as u32,
        tail: v as u32,
        row: row as u64,
        time: 7 * row as i64 - 100,
    };
    let edges: Vec<TargetEdge> = pairs.iter().enumerate().map(target).collect();
    let class = |row: u64| (row % 5) as i32 - 1;
    let marks = |row: u64, out: &mut Vec<u8>| out.extend([row % 2, row % 3 % 2].map(|v| v as u8));
    let value = |row: u64| row as f32 / 3.0;
    let labels = match carried {
        Carried::Nothing => None,
        Carried::Classes => Some((TargetLabels::Classes(4), LabelOf::Class(&class))),
        Carried::Marks => Some((TargetLabels::Multi(2), LabelOf::Marks(&marks))),
        Carried::Values => Some((TargetLabels::Values, LabelOf::Value(&value))),
    };
    let targets = Targets {
        source: &graph,
        triple: Triple::plain(),
        settings: serde_json::Value::Null,
        relations: RELATIONS.into(),
        relation_names: Vec::new(),
        labels,
        with_features: carried != Carried::Nothing,
        with_times: true,
        each: &mut |take: &mut TakeTarget<'_>| edges.iter().try_for_each(|&edge| take(edge)),
    };
    let out = dir.path().join("parts");
    let parts = partition_with_targets(&graph, targets, &config(), &out).unwrap().0;
    Cut { dir, parts, edges }
}

fn config() -> PartitionConfig {
    let (algorithm, parts) = ("random".into(), Parts::Count(PARTS));
    PartitionConfig { algorithm, parts, ..Default::default() }
}

/// Each part here and behind a server.
fn access(parts: &PartitionedDataset) -> (Server, Vec<[PartAccess; 2]>) {
    let open = |part| Arc::new(ServedPart::open(parts, part).unwrap());
    let served = (0..PARTS).map(open).collect();
    let server = Server::start(served, &ServerConfig::default()).unwrap();
    let client = Client::connect(&ClientConfig::new(server.uri())).unwrap();
    let both = |part| [PartAccess::Local(open(part)), PartAccess::Remote(client.part(part))];
    let all = (0..PARTS).map(both).collect();
    (server, all)
}

fn same(a: &FoundTargets, b: &FoundTargets) {
    assert_eq!((&a.positions, &a.edges, &a.features), (&b.positions, &b.edges, &b.features));
    assert_eq!(a.times, b.times);
    match (&a.labels, &b.labels) {
        (None, None) => {}
        (
            Some(Labels::Single { classes: a, count: m }),
            Some(Labels::Single { classes: b, count: n }),
        ) => {
            assert_eq!((&a[..], m), (&b[..], n));
        }
        (
            Some(Labels::Multi { values: a, tasks: m }),
            Some(Labels::Multi { values: b, tasks: n }),
        ) => {
            assert_eq!((&a[..], m), (&b[..], n));
        }
        (Some(Labels::Values { values: a }), Some(Labels::Values { values: b })) => {
            assert_eq!(a[..], b[..]);
        }
        _ => panic!("labels of other kinds: {a:?}, {b:?}"),
    }
}

fn rows(edges: &Triples) -> Vec<[u32; 3]> {
    (0..edges.len()).map(|i| [edges.heads[i], edges.relations[i], edges.tails[i]]).collect()
}

fn sorted(mut edges: Vec<[u32; 3]>) -> Vec<[u32; 3]> {
    edges.sort_unstable();
    edges
}

fn row(edge: &TargetEdge) -> [u32; 3] {
    [edge.head, edge.relation, edge.tail]
}

#[test]
fn edges_at_places_are_those_of_the_files() {
    for carried in [Carried::Nothing, Carried::Classes, Carried::Marks, Carried::Values] {
        let cut = cut(carried);
        let (_server, parts) = access(&cut.parts);
        for split in 0..2 {
            let all: Vec<_> = cut.edges.iter().filter(|edge| edge.split == split).collect();
            let places: Arc<[u32]> = (0..300).map(|i| i * 97 % all.len() as u32).collect();
            let mut seen = vec![0; places.len()];
            for [local, remote] in &parts {
                let found = local.begin_targets(split, places.clone())().unwrap();
                same(&found, &remote.begin_targets(split, places.clone())().unwrap());
                assert_eq!(found.labels.is_some(), carried != Carried::Nothing);
                for (i, &at) in found.positions.iter().enumerate() {
                    let edge = all[places[at as usize] as usize];
                    seen[at as usize] += 1;
                    assert_eq!(rows(&found.edges)[i], row(edge));
                    assert_eq!(found.times.as_ref().unwrap()[i], edge.time);
                    if let Some(features) = &found.features {
                        assert_eq!(features[2 * i..][..2], [edge.row as f32, edge.head as f32]);
                    }
                    if let Some(Labels::Single { classes, count }) = &found.labels {
                        assert_eq!((classes[i], *count), ((edge.row % 5) as i32 - 1, 4));
                    }
                }
            }
            assert!(seen.iter().all(|&times| times == 1));
        }
        // Nothing found, nothing asked for, and a split without edges.
        for (split, places) in [(0, vec![u32::MAX]), (1, vec![]), (2, vec![0])] {
            let [local, remote] = &parts[0];
            let found = local.begin_targets(split, places.clone().into())().unwrap();
            assert!(found.edges.is_empty());
            same(&found, &remote.begin_targets(split, places.into())().unwrap());
        }
    }
}

#[test]
fn whole_splits_come_in_pieces() {
    for carried in [Carried::Nothing, Carried::Marks] {
        let cut = cut(carried);
        let (_server, parts) = access(&cut.parts);
        for split in 0..3 {
            let mut seen = 0;
            let all: Vec<_> = cut.edges.iter().filter(|edge| edge.split == split).collect();
            for access in &parts {
                let [local, remote] = access.each_ref().map(|part| {
                    let (mut whole, mut pieces) = (Vec::new(), 0);
                    let piece = &mut |found: FoundTargets| {
                        assert!(found.edges.len() <= 1 << 14 && !found.edges.is_empty());
                        assert_eq!(found.labels.is_some(), carried == Carried::Marks);
                        pieces += 1;
                        whole.extend(rows(&found.edges).into_iter().zip(found.positions));
                        Ok(())
                    };
                    part.split_targets(split, piece).unwrap();
                    assert!(split > 0 || pieces > 1, "too few edges to be cut");
                    whole
                });
                assert!(local.iter().all(|(edge, place)| row(all[*place as usize]) == *edge));
                assert!(local.is_sorted_by(|a, b| a.1 < b.1));
                assert_eq!(local, remote);
                seen += local.len();
            }
            assert_eq!(seen, all.len());
        }
        // An error of the receiver ends the stream.
        for part in &parts[0] {
            let mut calls = 0;
            let refuse = &mut |_: FoundTargets| {
                calls += 1;
                Err(gnarl_common::Error::usage("enough"))
            };
            assert!(part.split_targets(0, refuse).unwrap_err().to_string().contains("enough"));
            assert_eq!(calls, 1);
        }
    }
}

#[test]
fn known_edges_are_those_of_the_files() {
    let cut = cut(Carried::Nothing);
    let (_server, parts) = access(&cut.parts);
    let owner = cut.parts.assignment(DEFAULT_NODE_TYPE).unwrap();
    let key = |i: u32| [i * 37 % NODES as u32, i % RELATIONS];
    // The last key repeats the first.
    let keys: Arc<[[u32; 2]]> = (0..60).chain([0]).map(key).collect();
    for side in Side::BOTH {
        for train in [true, false] {
            for (part, [local, remote]) in parts.iter().enumerate() {
                let matches = |edge: &&TargetEdge| {
                    let given = if side == Side::Tail { edge.head } else { edge.tail };
                    owner[edge.head as usize] as usize == part
                        && (!train || edge.split == 0)
                        && keys.contains(&[given, edge.relation])
                };
                let expected = cut.edges.iter().filter(matches).map(row).collect();
                let found = local.begin_known(side, keys.clone(), train)().unwrap();
                assert_eq!(found, remote.begin_known(side, keys.clone(), train)().unwrap());
                assert!(!found.is_empty());
                assert_eq!(sorted(rows(&found)), sorted(expected));
                let none = remote.begin_known(side, Arc::new([[7, 1000]]), train)().unwrap();
                assert!(none.is_empty());
            }
        }
    }
}

#[test]
fn parts_without_targets_say_so() {
    let with = cut(Carried::Nothing);
    let (_server, parts) = access(&with.parts);
    for part in &parts[1] {
        let error = part.begin_targets(3, Arc::new([0]))().unwrap_err();
        assert_eq!(error.kind(), Kind::Usage);
        assert!(error.to_string().contains("part 1 has no split 3"), "{error}");
        assert!(part.split_targets(3, &mut |_| Ok(())).is_err());
    }
    let graph = Dataset::open(with.dir.path().join("graph")).unwrap();
    let bare = partition_dataset(&graph, &config(), &with.dir.path().join("bare")).unwrap().0;
    let (_server, parts) = access(&bare);
    for part in &parts[1] {
        let errors = [
            part.begin_targets(0, Arc::new([0]))().unwrap_err(),
            part.split_targets(0, &mut |_| Ok(())).unwrap_err(),
            part.begin_known(Side::Head, Arc::new([[0, 0]]), true)().unwrap_err(),
            part.begin_known(Side::Tail, Arc::new([[0, 0]]), false)().unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.kind(), Kind::Usage);
            let text = error.to_string();
            assert!(text.contains("part 1 has no target edges"), "{text}");
            assert!(text.contains("--task RUN.toml"), "{text}");
        }
    }
}
