//! Vertex-cut parts against a naive construction in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::common::dataset;
use gnarl_common::Kind;
use gnarl_graph::{Dataset, EdgeChunk, EdgeStream, IdWidth};
use gnarl_partition::vertex_cut::{EdgePartitioner, EdgeSink, names};
use gnarl_partition::{
    Direction, PartLayout, PartitionConfig, PartitionOptions, PartitionedDataset, Parts,
    VertexCutPart, partition_dataset, partition_edges_with,
};
use proptest::prelude::*;

type Edges = Vec<(u64, u64)>;

/// A graph: node types with their sizes; edge types with positions of their ends' types.
#[derive(Debug, Clone)]
struct Graph {
    nodes: Vec<(&'static str, u64)>,
    edges: Vec<(&'static str, [usize; 2], Edges)>,
}

impl Graph {
    fn plain(nodes: u64, edges: Edges) -> Self {
        Self { nodes: vec![("_N", nodes)], edges: vec![("_N:_E:_N", [0, 0], edges)] }
    }

    fn write(&self, out: &Path, width: IdWidth) -> Dataset {
        let edges: Vec<_> = self.edges.iter().map(|(t, _, list)| (*t, list.clone())).collect();
        dataset(out, width, &self.nodes, &edges)
    }

    fn first(&self, node_type: usize) -> u64 {
        self.nodes[..node_type].iter().map(|n| n.1).sum()
    }

    /// Edge type, row and graph-wide ends of every edge.
    fn all(&self) -> Vec<(usize, usize, u64, u64)> {
        let mut all = Vec::new();
        for (t, (_, ends, list)) in self.edges.iter().enumerate() {
            let [from, to] = ends.map(|n| self.first(n));
            all.extend(list.iter().enumerate().map(|(row, e)| (t, row, from + e.0, to + e.1)));
        }
        all
    }
}

fn list(sources: u64, targets: u64, most: usize) -> impl Strategy<Value = Edges> {
    prop::collection::vec((0..sources, 0..targets), 0..most)
}

fn plain() -> impl Strategy<Value = Graph> {
    (6u64..40).prop_flat_map(|n| list(n, n, 150).prop_map(move |e| Graph::plain(n, e)))
}

fn heterogeneous() -> impl Strategy<Value = Graph> {
    (4u64..20, 4u64..20).prop_flat_map(|(a, b)| {
        let lists = (list(a, b, 60), list(b, a, 60), list(b, b, 60));
        lists.prop_map(move |(wrote, by, cites)| Graph {
            nodes: vec![("author", a), ("paper", b)],
            edges: vec![
                ("author:wrote:paper", [0, 1], wrote),
                ("paper:by:author", [1, 0], by),
                ("paper:cites:paper", [1, 1], cites),
            ],
        })
    })
}

/// The edges of a part as its in-neighbor lists tell: row by edge id.
fn read_edges(graph: &Graph, part: &VertexCutPart) -> BTreeMap<u64, (usize, usize, u64, u64)> {
    let mut edges = BTreeMap::new();
    for local in 0..part.num_nodes() as u32 {
        for kind in 0..graph.edges.len() {
            let column = part.edge_column(kind, "weight").unwrap().unwrap();
            let weights = column.values::<f32>().unwrap();
            let rows = part.in_rows(local, kind);
            let neighbors = part.neighbors(local, kind, Direction::In);
            assert_eq!(neighbors.len() as u64, rows.end - rows.start);
            let sources: Vec<u32> = neighbors.clone().map(|n| n.node).collect();
            assert_eq!(sources, part.sources(local, kind));
            assert!(sources.is_sorted(), "lists ascend");
            for (n, at) in neighbors.zip(rows) {
                assert_eq!((part.source(n.edge), part.target(n.edge)), (n.node, local));
                assert_eq!(part.type_and_row(n.edge), (kind, at));
                let row = weights[at as usize] as usize;
                let ends = (part.global(n.node), part.global(local));
                assert!(edges.insert(n.edge, (kind, row, ends.0, ends.1)).is_none());
            }
        }
    }
    assert!(edges.keys().copied().eq(0..part.num_edges()), "edge ids are places");
    edges
}

fn check(graph: &Graph, made: &PartitionedDataset) {
    let all = graph.all();
    let mut seen = Vec::new();
    let mut holders = BTreeMap::<u64, BTreeSet<usize>>::new();
    let mut parts = Vec::new();
    for p in 0..made.num_parts() {
        let part = made.topology(p).unwrap();
        part.verify().unwrap();
        let edges = read_edges(graph, &part);
        check_out(graph, &part, &edges);
        check_rows(graph, made, p, &part);
        for v in 0..part.num_nodes() as u32 {
            holders.entry(part.global(v)).or_default().insert(p);
        }
        seen.extend(edges.into_values());
        parts.push(part);
    }
    seen.sort_unstable();
    assert_eq!(seen, all, "each edge is in one part");
    let nodes: u64 = graph.nodes.iter().map(|n| n.1).sum();
    assert_eq!(holders.len() as u64, nodes, "each node is somewhere");
    for part in &parts {
        for v in 0..part.num_nodes() as u32 {
            let global = part.global(v);
            assert_eq!(part.local(global), Some(v));
            assert!(part.parts_of(v).eq(holders[&global].iter().copied()));
            check_degrees(graph, &all, part, v);
        }
        let absent = (0..nodes + 2)
            .filter(|v| !holders.get(v).is_some_and(|h| h.contains(&part.manifest().part)));
        absent.for_each(|v| assert_eq!(part.local(v), None));
    }
}

fn check_out(graph: &Graph, part: &VertexCutPart, edges: &BTreeMap<u64, (usize, usize, u64, u64)>) {
    let mut left: BTreeSet<u64> = edges.keys().copied().collect();
    for local in 0..part.num_nodes() as u32 {
        for kind in 0..graph.edges.len() {
            let list: Vec<_> = part.neighbors(local, kind, Direction::Out).collect();
            assert!(list.is_sorted_by_key(|n| (n.node, n.edge)));
            for (i, n) in list.iter().enumerate() {
                assert_eq!(part.neighbors(local, kind, Direction::Out).nth(i), Some(*n));
                let (of, _, u, v) = edges[&n.edge];
                assert_eq!((of, u, v), (kind, part.global(local), part.global(n.node)));
                assert!(left.remove(&n.edge));
            }
        }
    }
    assert!(left.is_empty(), "each edge leaves a node");
}

fn check_degrees(
    graph: &Graph,
    all: &[(usize, usize, u64, u64)],
    part: &VertexCutPart,
    local: u32,
) {
    let global = part.global(local);
    for direction in [Direction::In, Direction::Out] {
        let end = |e: &(usize, usize, u64, u64)| {
            global == if direction == Direction::In { e.3 } else { e.2 }
        };
        let degree = |kind: usize| all.iter().filter(|&e| e.0 == kind && end(e)).count() as u32;
        let total: u32 = (0..graph.edges.len()).map(degree).sum();
        assert_eq!(part.degree(local, direction), total);
        let mut held = 0;
        for (kind, of_type) in part.edge_types(local, direction) {
            assert_eq!(of_type, degree(kind));
            assert_eq!(part.type_degree(local, kind, direction), of_type);
            let here = part.neighbors(local, kind, direction).len() as u64;
            assert!(here > 0);
            held += here;
        }
        assert_eq!(part.local_degree(local, direction), held);
    }
}

/// Owned nodes have their rows in the part's dataset, at their new id's distance from its first.
fn check_rows(graph: &Graph, made: &PartitionedDataset, p: usize, part: &VertexCutPart) {
    let rows = made.part(p).unwrap();
    for (t, (name, _)) in graph.nodes.iter().enumerate() {
        let column = rows.node_column(name, "features").unwrap().unwrap();
        let features = column.values::<f32>().unwrap();
        let (new_ids, owners) = (made.new_ids(name).unwrap(), made.assignment(name).unwrap());
        let range = &made.node_type(name).unwrap().ranges[p..p + 2];
        assert_eq!(rows.manifest().node_type(name).unwrap().count, range[1] - range[0]);
        let train = rows.split(name, "train").unwrap().unwrap();
        for v in (0..owners.len()).filter(|&v| owners[v] as usize == p) {
            let global = graph.first(t) + v as u64;
            let row = new_ids[v] - range[0];
            assert_eq!(features[2 * row as usize] as u64, global);
            assert_eq!(train.contains(&row), v % 4 < 2);
            let local = part.local(global).expect("owned nodes are held");
            assert_eq!(part.node_type(local), t);
        }
    }
}

fn config(algorithm: &str, parts: usize) -> PartitionConfig {
    PartitionConfig {
        algorithm: algorithm.into(),
        parts: Parts::Count(parts),
        layout: PartLayout::VertexCut,
        ..Default::default()
    }
}

fn round_trip(graph: &Graph, config: &PartitionConfig, width: IdWidth) -> PartitionedDataset {
    let dir = tempfile::tempdir().unwrap();
    let source = graph.write(&dir.path().join("source"), width);
    let (made, report) = partition_dataset(&source, config, &dir.path().join("parts")).unwrap();
    check(graph, &made);
    let measured = report.vertex_cut.unwrap();
    assert_eq!(measured.part_edges.iter().sum::<u64>(), graph.all().len() as u64);
    assert!(!made.dir().join("work").exists());
    let halo: u64 = made.manifest().part_counts.iter().flat_map(|c| &c.halo).sum();
    let held: usize = (0..made.num_parts()).map(|p| made.topology(p).unwrap().num_nodes()).sum();
    assert_eq!(held as u64, halo + graph.nodes.iter().map(|n| n.1).sum::<u64>());
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2, "nothing temporary is left");
    made
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn plain_graphs_are_the_union_of_their_parts(graph in plain(), parts in 1usize..6) {
        round_trip(&graph, &config("hdrf", parts), IdWidth::U32);
    }

    #[test]
    fn typed_graphs_are_the_union_of_their_parts(graph in heterogeneous(), parts in 1usize..6) {
        round_trip(&graph, &config("dbh", parts), IdWidth::U64);
    }
}

fn sample() -> Graph {
    Graph::plain(60, (0..900u64).map(|i| (i * i % 57, i * 7 % 60)).collect())
}

#[test]
fn every_partitioner_of_edges_writes_parts() {
    for name in names() {
        round_trip(&sample(), &config(name, 3), IdWidth::U32);
    }
}

#[test]
fn one_part_and_many_parts() {
    round_trip(&sample(), &config("hash-1d", 1), IdWidth::U64);
    round_trip(&sample(), &config("hash-1d", 19), IdWidth::U32);
    round_trip(&Graph::plain(9, Vec::new()), &config("hash-1d", 4), IdWidth::U32);
}

#[test]
fn files_depend_neither_on_threads_nor_on_memory() {
    // Enough edges for several ranges of lists in the least memory.
    let edges = (0..120_000u64).map(|i| (i * i % 1999, i * 7 % 2000)).collect();
    let graph = Graph::plain(2000, edges);
    let dir = tempfile::tempdir().unwrap();
    let source = graph.write(&dir.path().join("source"), IdWidth::U32);
    let run = |threads: usize, memory: u64| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let out = dir.path().join(format!("{threads}-{memory}"));
        let config = PartitionConfig { memory, ..config("dbh", 2) };
        let made = pool.install(|| partition_dataset(&source, &config, &out)).unwrap().0;
        let part = |p: usize| made.topology(p).unwrap().manifest().clone();
        (part(0), part(1), made.manifest().node_types.clone())
    };
    let one = run(1, 1 << 30);
    assert_eq!(one, run(2, 1 << 30));
    assert_eq!(one, run(3, 3 << 20));
}

#[test]
fn too_little_memory_is_a_limit() {
    let dir = tempfile::tempdir().unwrap();
    let source = sample().write(&dir.path().join("source"), IdWidth::U32);
    let config = PartitionConfig { memory: 1 << 18, ..config("dbh", 2) };
    let error = partition_dataset(&source, &config, &dir.path().join("parts")).unwrap_err();
    assert_eq!(error.kind(), Kind::Limit, "{error}");
    assert!(error.to_string().contains("--memory"), "{error}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left");
}

#[test]
fn what_a_vertex_cut_cannot_do_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let source = sample().write(&dir.path().join("source"), IdWidth::U32);
    let refuse = |config: PartitionConfig| {
        let error = partition_dataset(&source, &config, &dir.path().join("parts")).unwrap_err();
        assert_eq!(error.exit_code(), 2, "{error}");
        error.to_string()
    };
    let text = refuse(config("knot", 2));
    assert!(text.contains("'knot' is a vertex partitioner") && text.contains("adadne"), "{text}");
    assert!(refuse(config("hrdf", 2)).contains("did you mean 'hdrf'"));
    let levels = Parts::Levels { machines: 2, workers: 2 };
    refuse(PartitionConfig { parts: levels, ..config("dbh", 4) });
    refuse(PartitionConfig { hops: 2, ..config("dbh", 4) });
    let edge_cut = PartitionConfig { layout: PartLayout::EdgeCut, ..config("dbh", 2) };
    let (made, _) = partition_dataset(&source, &edge_cut, &dir.path().join("cut")).unwrap();
    let text = made.topology(0).unwrap_err().to_string();
    assert!(text.contains("edge-cut") && text.contains("--layout vertex-cut"), "{text}");
}

#[test]
fn damaged_parts_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let source = sample().write(&dir.path().join("source"), IdWidth::U32);
    let out = dir.path().join("parts");
    let (made, _) = partition_dataset(&source, &config("dbh", 2), &out).unwrap();
    let topology = out.join("part-1/topology");
    for name in ["id", "parts", "in.src", "out.edge", "in.indptr", "edges-0.weight"] {
        let path = topology.join(format!("{name}.npy"));
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, &whole[..whole.len() - 1]).unwrap();
        let text = made.topology(1).unwrap_err().to_string();
        assert!(text.contains(&format!("{name}.npy: truncated")), "{text}");
        let mut flipped = whole.clone();
        flipped[whole.len() - 9] ^= 1;
        std::fs::write(&path, &flipped).unwrap();
        let found = made.topology(1).and_then(|part| part.verify()).unwrap_err().to_string();
        assert!(found.contains(name), "{found}");
        std::fs::write(&path, &whole).unwrap();
    }
    std::fs::write(topology.join("part.json"), "{}").unwrap();
    assert!(made.topology(1).unwrap_err().to_string().contains("part.json"));
}

/// Forgets the last edge, or sends it twice.
struct Careless(bool);

impl EdgePartitioner for Careless {
    fn name(&self) -> &'static str {
        "careless"
    }

    fn memory(&self, _: u64, _: u64, _: usize) -> u64 {
        0
    }

    fn partition(
        &self,
        edges: &mut dyn EdgeStream,
        _: &PartitionOptions,
        sink: &mut dyn EdgeSink,
    ) -> gnarl_common::Result<()> {
        let mut chunk = EdgeChunk::default();
        edges.reset()?;
        edges.next_chunk(&mut chunk)?;
        if self.0 {
            chunk.src.push(0);
            chunk.dst.push(0);
        } else {
            chunk.src.pop();
            chunk.dst.pop();
        }
        sink.assign(&chunk, &vec![0; chunk.len()])
    }
}

#[test]
fn careless_partitioners_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    let source = sample().write(&dir.path().join("source"), IdWidth::U32);
    for twice in [false, true] {
        let out = dir.path().join("parts");
        let made = partition_edges_with(&source, &Careless(twice), &config("", 2), &out);
        assert!(made.unwrap_err().to_string().contains("edges"));
    }
}
