//! Partitioned datasets against a naive construction in memory.

use std::collections::BTreeSet;
use std::sync::Mutex;

use crate::common::{dataset, user_id};
use gnarl_common::Kind;
use gnarl_graph::{Dataset, EdgeStream, Features, IdWidth, Labels, Triple};
use gnarl_partition::{
    Assignment, Chunk, Constraint, PartitionConfig, PartitionOptions, PartitionedDataset, Parts,
    Random, VertexPartitioner, degree_column, names, partition_dataset, partition_dataset_with,
    vertex_cut,
};
use proptest::prelude::*;

/// A node: type and id within it.
type Node = (usize, u64);

/// A graph of up to two node types.
#[derive(Debug, Clone)]
struct Graph {
    nodes: Vec<(&'static str, u64)>,
    edges: Vec<(&'static str, Vec<(u64, u64)>)>,
}

impl Graph {
    fn write(&self, out: &std::path::Path, width: IdWidth) -> Dataset {
        dataset(out, width, &self.nodes, &self.edges)
    }

    /// Positions of the source and destination types of edge type `t`.
    fn ends(&self, t: usize) -> (usize, usize) {
        let triple: Triple = self.edges[t].0.parse().unwrap();
        let at = |name: &str| self.nodes.iter().position(|(n, _)| *n == name).unwrap();
        (at(&triple.src), at(&triple.dst))
    }

    /// All edges: type, row, source, destination.
    fn all_edges(&self) -> Vec<(usize, usize, Node, Node)> {
        let mut all = Vec::new();
        for (t, (_, list)) in self.edges.iter().enumerate() {
            let (src, dst) = self.ends(t);
            all.extend(list.iter().enumerate().map(|(row, e)| (t, row, (src, e.0), (dst, e.1))));
        }
        all
    }
}

fn plain() -> impl Strategy<Value = Graph> {
    let edges = |n: u64| prop::collection::vec((0..n, 0..n), 0..120);
    (4u64..40).prop_flat_map(move |n| {
        edges(n)
            .prop_map(move |list| Graph { nodes: vec![("_N", n)], edges: vec![("_N:_E:_N", list)] })
    })
}

fn hetero() -> impl Strategy<Value = Graph> {
    (3u64..20, 3u64..20).prop_flat_map(|(a, b)| {
        let between = |s: u64, d: u64| prop::collection::vec((0..s, 0..d), 0..60);
        (between(a, b), between(b, a), between(b, b)).prop_map(move |(wrote, by, cites)| Graph {
            nodes: vec![("author", a), ("paper", b)],
            edges: vec![
                ("author:wrote:paper", wrote),
                ("paper:by:author", by),
                ("paper:cites:paper", cites),
            ],
        })
    })
}

/// What part `part` must hold, from `owner`: HALO nodes, and edges by (type, row).
fn expected(
    graph: &Graph,
    owner: &dyn Fn(Node) -> usize,
    part: usize,
    hops: u32,
) -> (BTreeSet<Node>, BTreeSet<(usize, usize)>) {
    let edges = graph.all_edges();
    let mut full: BTreeSet<Node> = BTreeSet::new();
    for (t, &(_, count)) in graph.nodes.iter().enumerate() {
        full.extend((0..count).map(|v| (t, v)).filter(|&v| owner(v) == part));
    }
    let core = full.clone();
    for _ in 1..hops {
        let wider: Vec<Node> =
            edges.iter().filter(|(_, _, _, v)| full.contains(v)).map(|(_, _, u, _)| *u).collect();
        full.extend(wider);
    }
    let kept = edges.iter().filter(|(_, _, _, v)| full.contains(v));
    let mut held = full.clone();
    held.extend(kept.clone().map(|(_, _, u, _)| *u));
    (held.difference(&core).copied().collect(), kept.map(|(t, row, ..)| (*t, *row)).collect())
}

fn check(graph: &Graph, source: &Dataset, parts: &PartitionedDataset, hops: u32) {
    let owners: Vec<_> =
        graph.nodes.iter().map(|(name, _)| parts.assignment(name).unwrap()).collect();
    let owner = |(t, v): Node| owners[t][v as usize] as usize;
    let mut rows = vec![BTreeSet::new(); graph.edges.len()];
    for part in 0..parts.num_parts() {
        let data = parts.part(part).unwrap();
        let ids = check_nodes(graph, source, parts, part, &data);
        let stored = check_edges(graph, &data, &ids);
        let halo = ids.iter().enumerate().flat_map(|(t, ids)| ids.iter().map(move |&v| (t, v)));
        let halo: BTreeSet<Node> = halo.filter(|&v| owner(v) != part).collect();
        for &(t, row) in &stored {
            let first = rows[t].insert(row);
            assert!(first || hops > 0 && graph.edges.len() < 9, "edge {row} stored twice");
        }
        if hops > 0 {
            assert_eq!((halo, stored), expected(graph, &owner, part, hops), "part {part}");
        } else {
            let ends =
                graph.all_edges().into_iter().filter(|(t, r, ..)| stored.contains(&(*t, *r)));
            let ends: Vec<_> = ends.collect();
            assert!(ends.iter().all(|(_, _, u, v)| owner(*u) == part || owner(*v) == part));
            let used: BTreeSet<Node> = ends.iter().flat_map(|(_, _, u, v)| [*u, *v]).collect();
            assert!(halo.is_subset(&used));
        }
    }
    for (t, (_, list)) in graph.edges.iter().enumerate() {
        assert_eq!(rows[t].len(), list.len(), "every edge is stored somewhere");
    }
}

/// Checks node columns; returns dataset ids by type in local order.
fn check_nodes(
    graph: &Graph,
    source: &Dataset,
    parts: &PartitionedDataset,
    part: usize,
    data: &Dataset,
) -> Vec<Vec<u64>> {
    let mut all = Vec::new();
    let mut first = 0;
    for (t, &(name, count)) in graph.nodes.iter().enumerate() {
        let info = data.manifest().node_type(name).unwrap();
        let core = info.core.unwrap() as usize;
        let ids = data.node_column(name, "orig_id").unwrap().unwrap().values::<u64>().unwrap();
        let owners = parts.assignment(name).unwrap();
        let new_ids = parts.new_ids(name).unwrap();
        let holders = parts.column(name, "holders").unwrap();
        let width = holders.width();
        let holders = holders.values::<u8>().unwrap();
        assert!(ids[..core].is_sorted() && ids[core..].is_sorted());
        for (local, &v) in ids.iter().enumerate() {
            let new = new_ids[v as usize];
            assert_eq!(parts.owner(name, new).unwrap(), owners[v as usize] as usize);
            assert_eq!(local < core, owners[v as usize] as usize == part);
            if local < core {
                assert_eq!(new, parts.node_type(name).unwrap().ranges[part] + local as u64);
            }
        }
        for v in 0..count as usize {
            let held = holders[v * width + part / 8] >> (part % 8) & 1 == 1;
            assert_eq!(held, ids[core..].contains(&(v as u64)));
        }
        check_columns(data, name, &ids, first);
        check_degrees(graph, source, data, t, &ids);
        for (split, keep) in [("train", [0, 1]), ("test", [3, 3])] {
            let local = data.split(name, split).unwrap().unwrap();
            let expect = (0..core as u64).filter(|&l| keep.contains(&(ids[l as usize] % 4)));
            assert_eq!(local[..], expect.collect::<Vec<_>>());
        }
        first += count;
        all.push(ids.to_vec());
    }
    all
}

fn check_columns(data: &Dataset, name: &str, ids: &[u64], first: u64) {
    let Some(Features::Dense(features)) = data.features(name).unwrap() else { panic!() };
    let features = features.values::<f32>().unwrap();
    let Some(Labels::Single { classes, count: 3 }) = data.labels(name).unwrap() else { panic!() };
    let column = |c: &str| data.node_column(name, c).unwrap().unwrap();
    let offsets = column("user_id.offsets").values::<u64>().unwrap();
    let bytes = column("user_id.bytes").values::<u8>().unwrap();
    for (local, &v) in ids.iter().enumerate() {
        let wide = (first + v) as f32;
        assert_eq!(features[2 * local..2 * local + 2], [wide, 2.0 * wide]);
        assert_eq!(classes[local], (v % 3) as i32);
        let text = &bytes[offsets[local] as usize..offsets[local + 1] as usize];
        assert_eq!(text, user_id(name, v).as_bytes());
    }
}

fn check_degrees(graph: &Graph, source: &Dataset, data: &Dataset, t: usize, ids: &[u64]) {
    let name = graph.nodes[t].0;
    let column = |c: &str| data.node_column(name, c).unwrap().unwrap().values::<u32>().unwrap();
    let into = |e: usize, v: u64| {
        graph.all_edges().iter().filter(|(et, _, _, d)| *et == e && *d == (t, v)).count() as u32
    };
    let types: Vec<usize> = (0..graph.edges.len()).filter(|&e| graph.ends(e).1 == t).collect();
    let total = column("degree");
    for (local, &v) in ids.iter().enumerate() {
        assert_eq!(total[local], types.iter().map(|&e| into(e, v)).sum::<u32>());
    }
    for e in types {
        let info = &source.manifest().edge_types[e];
        let degree = column(&degree_column(source.manifest().edge_types.len(), &info.triple));
        assert!(ids.iter().zip(degree.iter()).all(|(&v, &d)| d == into(e, v)));
    }
}

/// Checks edges and lists; returns the stored (type, row).
fn check_edges(graph: &Graph, data: &Dataset, ids: &[Vec<u64>]) -> BTreeSet<(usize, usize)> {
    let mut stored = BTreeSet::new();
    for (e, (triple, list)) in graph.edges.iter().enumerate() {
        let (src_type, dst_type) = graph.ends(e);
        let triple: Triple = triple.parse().unwrap();
        let column = |c: &str| data.edge_column(&triple, c).unwrap().unwrap();
        let (src, dst) = (column("src").ids().unwrap(), column("dst").ids().unwrap());
        let weight = column("weight").values::<f32>().unwrap();
        for i in 0..src.len() {
            let row = weight[i] as usize;
            let (u, v) = (ids[src_type][src[i] as usize], ids[dst_type][dst[i] as usize]);
            assert_eq!((u, v), list[row]);
            assert!(stored.insert((e, row)), "an edge twice in one part");
        }
        let csc = data.csc(&triple).unwrap();
        let rows = csc.edge.as_ref().unwrap();
        for v in 0..csc.num_dst() as u32 {
            let (start, end) = (csc.indptr.get(v.into()), csc.indptr.get(u64::from(v) + 1));
            let of_row = |r: u64| (ids[src_type][src[r as usize] as usize], r);
            let rows = rows.as_slice().range(start as usize..end as usize);
            let order: Vec<_> = rows.map(of_row).collect();
            assert!(order.is_sorted(), "lists ascend by dataset id, then row");
            let sources: Vec<u64> =
                csc.sources(v).iter().map(|&s| ids[src_type][s as usize]).collect();
            assert_eq!(sources, order.iter().map(|o| o.0).collect::<Vec<_>>());
        }
    }
    stored
}

fn round_trip(graph: &Graph, hops: u32, parts: usize, memory: u64, width: IdWidth) {
    let dir = tempfile::tempdir().unwrap();
    let source = graph.write(&dir.path().join("source"), width);
    let config = PartitionConfig {
        algorithm: "random".into(),
        parts: Parts::Count(parts),
        hops,
        memory,
        ..Default::default()
    };
    let out = dir.path().join("parts");
    let (made, report) = partition_dataset(&source, &config, &out).unwrap();
    check(graph, &source, &made, hops);
    let nodes: u64 = graph.nodes.iter().map(|n| n.1).sum();
    assert_eq!(report.part_sizes.iter().sum::<u64>(), nodes);
    let halo: u64 = made.manifest().part_counts.iter().flat_map(|c| &c.halo).sum();
    assert_eq!(report.halo_sizes.iter().sum::<u64>(), halo);
    assert_eq!(report.replication_factor, 1.0 + halo as f64 / nodes as f64);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2, "nothing temporary is left");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn plain_graphs_match_the_naive_construction(graph in plain(), hops in 0u32..4, parts in 1usize..5) {
        round_trip(&graph, hops, parts, 1 << 30, IdWidth::U32);
    }

    #[test]
    fn typed_graphs_match_the_naive_construction(graph in hetero(), hops in 0u32..4, parts in 1usize..5) {
        round_trip(&graph, hops, parts, 1 << 30, IdWidth::U64);
    }
}

fn sample() -> Graph {
    let edges = (0..400u64).map(|i| (i * i % 60, i * 7 % 60)).collect();
    Graph { nodes: vec![("_N", 60)], edges: vec![("_N:_E:_N", edges)] }
}

#[test]
fn little_memory_takes_more_passes_to_the_same_end() {
    // 4 MiB leave room for the columns of four parts at a time.
    round_trip(&sample(), 1, 9, 4 << 20, IdWidth::U32);
    round_trip(&sample(), 2, 9, 4 << 20, IdWidth::U32);
}

#[test]
fn files_do_not_depend_on_threads() {
    let dir = tempfile::tempdir().unwrap();
    let source = sample().write(&dir.path().join("source"), IdWidth::U32);
    // The tail is the same for all cuts of edges: one of them stands for all.
    let cuts = vertex_cut::names();
    for algorithm in names().into_iter().filter(|n| *n == "adadne" || !cuts.contains(n)) {
        let config = PartitionConfig {
            algorithm: algorithm.into(),
            parts: Parts::Count(3),
            ..Default::default()
        };
        let run = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let out = dir.path().join(format!("{algorithm}-{threads}"));
            let made = pool.install(|| partition_dataset(&source, &config, &out)).unwrap().0;
            let part = |p: usize| made.part(p).unwrap().manifest().clone();
            let types: Vec<_> = (0..3).map(|p| (part(p).node_types, part(p).edge_types)).collect();
            (types, made.manifest().node_types.clone(), made.manifest().cut.clone())
        };
        let one = run(1);
        assert_eq!(one, run(2), "{algorithm}");
        assert_eq!(one, run(3), "{algorithm}");
    }
}

/// Leaves all parts but one without core nodes.
struct AllInOne;

impl VertexPartitioner for AllInOne {
    fn name(&self) -> &'static str {
        "all-in-one"
    }

    fn partition(
        &self,
        edges: &mut dyn EdgeStream,
        options: &PartitionOptions,
    ) -> gnarl_common::Result<Assignment> {
        Ok(Assignment { parts: options.parts, of: vec![1; edges.num_nodes() as usize] })
    }
}

#[test]
fn parts_without_core_nodes_are_datasets() {
    let dir = tempfile::tempdir().unwrap();
    let graph = sample();
    let source = graph.write(&dir.path().join("source"), IdWidth::U32);
    for hops in 0..3 {
        let config = PartitionConfig { parts: Parts::Count(3), hops, ..Default::default() };
        let out = dir.path().join(format!("parts-{hops}"));
        let (made, report) = partition_dataset_with(&source, &AllInOne, &config, &out).unwrap();
        check(&graph, &source, &made, hops);
        assert_eq!((report.part_sizes, report.halo_sizes), (vec![0, 60, 0], vec![0; 3]));
    }
}

#[test]
fn vertex_cuts_get_full_neighbor_lists() {
    let dir = tempfile::tempdir().unwrap();
    let star = (1..12).flat_map(|v| [(0, v), (v, 0)]).collect();
    let star = Graph { nodes: vec![("_N", 14)], edges: vec![("_N:_E:_N", star)] };
    let sample = ("sample", sample(), ["hash-2d", "adadne"]);
    for (what, graph, algorithms) in [sample, ("star", star, ["hdrf", "2ps-l"])] {
        let source = graph.write(&dir.path().join(what), IdWidth::U32);
        for algorithm in algorithms {
            let config = PartitionConfig {
                algorithm: algorithm.into(),
                parts: Parts::Count(5),
                ..Default::default()
            };
            let out = dir.path().join(format!("{what}-{algorithm}"));
            let (made, report) = partition_dataset(&source, &config, &out).unwrap();
            assert_eq!(report.algorithm, algorithm);
            check(&graph, &source, &made, 1);
        }
    }
}

#[test]
fn errors_name_the_problem_and_leave_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let source = sample().write(&dir.path().join("source"), IdWidth::U32);
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    let refuse = |parts: usize, algorithm: &str, out: &std::path::Path| {
        let config = PartitionConfig {
            algorithm: algorithm.into(),
            parts: Parts::Count(parts),
            ..Default::default()
        };
        partition_dataset(&source, &config, out).unwrap_err()
    };
    let out = dir.path().join("parts");
    assert_eq!(refuse(0, "range", &out).kind(), Kind::Usage);
    assert_eq!(refuse(61, "range", &out).kind(), Kind::Usage);
    assert!(refuse(2, "mtis", &out).to_string().contains("did you mean 'metis'"));
    assert!(refuse(2, "range", source.dir()).to_string().contains("is not a partition"));
    assert_eq!(refuse(2, "range", &file.join("below")).kind(), Kind::Io);
    assert!(PartitionedDataset::open(&out).unwrap_err().to_string().contains("partition.json"));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2, "nothing temporary is left");
}

/// Remembers what it was told.
#[derive(Default)]
struct Listening(Mutex<PartitionOptions>);

impl VertexPartitioner for Listening {
    fn name(&self) -> &'static str {
        "listening"
    }

    fn partition(
        &self,
        edges: &mut dyn EdgeStream,
        options: &PartitionOptions,
    ) -> gnarl_common::Result<Assignment> {
        *self.0.lock().unwrap() = options.clone();
        Random.partition(edges, options)
    }
}

#[test]
fn partitioners_are_told_splits_types_and_choices() {
    let dir = tempfile::tempdir().unwrap();
    let nodes = [("author", 5), ("paper", 8)];
    let source = dataset(&dir.path().join("graph"), IdWidth::U32, &nodes, &[]);
    let config = PartitionConfig {
        chunk: Chunk::Fraction(0.25),
        passes: 2,
        freeze: true,
        constraints: Some(vec![Constraint::Types, Constraint::Valid]),
        ..Default::default()
    };
    let (told, out) = (Listening::default(), dir.path().join("parts"));
    let (parts, _) = partition_dataset_with(&source, &told, &config, &out).unwrap();
    let told = told.0.into_inner().unwrap();
    assert_eq!(told.train, [0, 1, 4, 5, 6, 9, 10]);
    assert_eq!((told.valid, told.test), (vec![], vec![3, 8, 12]));
    assert_eq!(told.types, [0..5, 5..13]);
    assert_eq!((told.chunk, told.passes, told.freeze), (config.chunk, 2, true));
    assert_eq!(told.constraints, config.constraints);
    let kept = &parts.manifest().parameters;
    assert_eq!((&kept["chunk"], &kept["passes"]), (&"0.25".into(), &2.into()));
    assert_eq!(kept["constraints"], serde_json::json!(["types", "valid"]));
}
