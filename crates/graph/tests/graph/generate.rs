//! Generated graphs: the same for any number of threads, shaped as asked, and learnable.

use std::collections::BTreeMap;
use std::path::Path;

use gnarl_common::{DType, Result};
use gnarl_graph::generate::{
    Attributes, CommunityOptions, DrawnEdges, Generated, HeteroOptions, RmatEdges, RmatOptions,
    community, heterogeneous, rmat,
};
use gnarl_graph::inspect::{inspect, verify};
use gnarl_graph::{DEFAULT_NODE_TYPE, EdgeStream, Features, Labels, Triple};

fn on_threads<T: Send>(threads: usize, run: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(run)
}

/// The checksum of every column.
fn checksums(made: &Generated) -> BTreeMap<String, u32> {
    let manifest = made.dataset.manifest();
    let nodes = manifest.node_types.iter().map(|t| (t.name.clone(), &t.columns));
    let edges = manifest.edge_types.iter().map(|t| (t.triple.to_string(), &t.columns));
    let named = |(of, columns): (String, &Vec<gnarl_graph::ColumnSpec>)| {
        columns.iter().map(|c| (format!("{of} {}", c.name), c.crc32)).collect::<Vec<_>>()
    };
    nodes.chain(edges).flat_map(named).collect()
}

fn same_for_any_number_of_threads(make: impl Fn(&Path) -> Result<Generated> + Sync) {
    let dir = tempfile::tempdir().unwrap();
    let one = on_threads(1, || make(&dir.path().join("one")).unwrap());
    let three = on_threads(3, || make(&dir.path().join("three")).unwrap());
    assert_eq!(checksums(&one), checksums(&three));
    assert_eq!(one.facts, three.facts);
    verify(&three.dataset).unwrap();
}

fn rmat_options() -> RmatOptions {
    let attributes = Attributes {
        features: 7,
        dtype: DType::F16,
        classes: 5,
        train: 0.1,
        ..Attributes::default()
    };
    RmatOptions {
        nodes: 30_000,
        edges: 200_000,
        symmetrize: true,
        attributes,
        ..Default::default()
    }
}

#[test]
fn rmat_does_not_depend_on_threads() {
    same_for_any_number_of_threads(|out| rmat(&rmat_options(), out));
}

#[test]
fn communities_do_not_depend_on_threads() {
    let options = CommunityOptions { nodes: 30_000, ..CommunityOptions::default() };
    same_for_any_number_of_threads(|out| community(&options, out));
}

#[test]
fn graphs_with_types_do_not_depend_on_threads() {
    let options = HeteroOptions { nodes: 20_000, edges: 100_000, ..HeteroOptions::default() };
    same_for_any_number_of_threads(|out| heterogeneous(&options, out));
}

#[test]
fn graphs_with_types_are_as_asked() {
    let dir = tempfile::tempdir().unwrap();
    let options = HeteroOptions { nodes: 16_000, edges: 80_000, ..HeteroOptions::default() };
    let made = heterogeneous(&options, &dir.path().join("graph")).unwrap();
    let manifest = made.dataset.manifest();
    let counts: Vec<_> = manifest.node_types.iter().map(|t| (t.name.as_str(), t.count)).collect();
    assert_eq!(counts, [("paper", 8000), ("author", 5000), ("venue", 1000), ("topic", 2000)]);
    assert_eq!((manifest.edge_types.len(), manifest.num_edges()), (8, 80_000));
    let Some(Labels::Single { classes, count: 16 }) = made.dataset.labels("paper").unwrap() else {
        panic!("labels of papers")
    };
    assert!(made.dataset.labels("author").unwrap().is_none());
    assert!(made.dataset.features("author").unwrap().is_some());
    assert!(made.dataset.features("venue").unwrap().is_none());
    assert_eq!(made.dataset.split_names("paper").unwrap(), ["train", "valid", "test"]);
    // Papers that are joined by an author in the same community are of one class.
    let same: Triple = "paper:r12:paper".parse().unwrap();
    let many = HeteroOptions { relations: 16, mixing: 0.0, ..options };
    let made = heterogeneous(&many, &dir.path().join("many")).unwrap();
    let mut edges = made.dataset.edges_of(&same).unwrap();
    let mut all = 0;
    edges
        .for_each(&mut |s, d| {
            assert_eq!(classes[s as usize], classes[d as usize]);
            all += 1;
        })
        .unwrap();
    assert_eq!(all, 5000);
    for (name, bad) in [
        ("communities", HeteroOptions { communities: 0, ..HeteroOptions::default() }),
        ("edge types", HeteroOptions { relations: 2, ..HeteroOptions::default() }),
        ("mixing", HeteroOptions { mixing: 1.5, ..HeteroOptions::default() }),
    ] {
        let message = heterogeneous(&bad, &dir.path().join("bad")).unwrap_err().to_string();
        assert!(message.contains(name), "{message}");
    }
}

#[test]
fn rmat_is_as_asked() {
    let dir = tempfile::tempdir().unwrap();
    let made = rmat(&rmat_options(), &dir.path().join("r")).unwrap();
    assert_eq!((made.drawn, made.dataset.manifest().num_edges()), (400_000, 400_000));
    assert_eq!(made.facts.self_loops, 0);
    assert!(made.facts.symmetric && made.facts.max_in_degree > 500, "{:?}", made.facts);
    let report = inspect(&made.dataset).unwrap();
    let nodes = &report.nodes[0];
    let features = nodes.features.as_ref().unwrap();
    assert_eq!((features.width, features.dtype), (7, DType::F16));
    assert_eq!(nodes.labels.as_ref().unwrap().histogram.len(), 5);
    assert_eq!((nodes.splits.len(), nodes.splits[0].count), (1, 3000));
    // Labels are random: edges do not know them.
    let adjusted = report.edges[0].homophily.unwrap().adjusted.unwrap();
    assert!(adjusted.abs() < 0.05, "{adjusted}");
}

#[test]
fn a_seed_chooses_the_graph_and_an_edge_depends_on_its_index_only() {
    let longer = RmatEdges::new(&RmatOptions { edges: 1 << 21, ..RmatOptions::scale(10) }).unwrap();
    let edges = RmatEdges::new(&RmatOptions::scale(10)).unwrap();
    let other = RmatEdges::new(&RmatOptions { seed: 1, ..RmatOptions::scale(10) }).unwrap();
    assert!((0..1000).all(|i| edges.edge(i) == longer.edge(i)));
    assert!((0..1000).any(|i| edges.edge(i) != other.edge(i)));
    let mut stream = DrawnEdges::new(edges.clone());
    for _ in 0..2 {
        let mut i = 0;
        stream
            .for_each(&mut |s, d| {
                assert_eq!((s, d), edges.edge(i));
                i += 1;
            })
            .unwrap();
        assert_eq!(i, stream.num_edges());
    }
}

#[test]
fn communities_are_as_asked() {
    let dir = tempfile::tempdir().unwrap();
    let options = CommunityOptions { nodes: 50_000, communities: 20, ..Default::default() };
    let options = CommunityOptions {
        attributes: Attributes { classes: 10, ..options.attributes.clone() },
        ..options
    };
    let made = community(&options, &dir.path().join("c")).unwrap();
    assert!(made.facts.symmetric && made.facts.self_loops == 0);
    assert_eq!(made.drawn, 50_000 * 25);
    let report = inspect(&made.dataset).unwrap();
    let (nodes, edges) = (&report.nodes[0], &report.edges[0]);
    assert!((22.0..25.0).contains(&edges.in_degrees.mean), "{:?}", edges.in_degrees);
    // A power law: the largest hub is near 60 times the mean, half of the nodes far below it.
    assert!((500..1600).contains(&edges.in_degrees.max), "{:?}", edges.in_degrees);
    assert!(edges.in_degrees.p50 < 18, "{:?}", edges.in_degrees);
    assert!(nodes.isolated < 50);
    // 0.7 within the community, and every tenth of the rest by chance.
    let homophily = edges.homophily.unwrap().edge;
    assert!((0.68..0.75).contains(&homophily), "{homophily}");
    let sizes: Vec<u64> = nodes.splits.iter().map(|s| s.count).collect();
    assert_eq!(sizes, [25_000, 10_000, 15_000]);
    let classes = &nodes.labels.as_ref().unwrap().histogram;
    assert!(classes.iter().all(|&n| n == 5000), "{classes:?}");
}

/// Neighbors must help: the nearest centroid of a node's own row is often wrong, that of the
/// mean over its neighbors nearly always right.
#[test]
fn neighbors_tell_the_class_better_than_the_node_itself() {
    let dir = tempfile::tempdir().unwrap();
    let options = CommunityOptions { nodes: 20_000, ..CommunityOptions::default() };
    let made = community(&options, &dir.path().join("c")).unwrap();
    let Some(Features::Dense(column)) = made.dataset.features(DEFAULT_NODE_TYPE).unwrap() else {
        panic!("dense features were asked for");
    };
    let Some(Labels::Single { classes, count }) = made.dataset.labels(DEFAULT_NODE_TYPE).unwrap()
    else {
        panic!("labels were asked for");
    };
    let (x, width) = (column.values::<f32>().unwrap(), column.width());
    let row = |v: usize| &x[v * width..(v + 1) * width];
    let mut centroids = vec![0.0; count * width];
    for v in 0..20_000 {
        let centroid = &mut centroids[classes[v] as usize * width..][..width];
        centroid.iter_mut().zip(row(v)).for_each(|(c, x)| *c += x);
    }
    centroids.iter_mut().for_each(|c| *c /= 20_000.0 / count as f32);
    let nearest = |x: &[f32]| {
        let score = |c: usize| {
            let centroid = &centroids[c * width..(c + 1) * width];
            centroid.iter().zip(x).map(|(c, x)| c * x - c * c / 2.0).sum::<f32>()
        };
        (0..count).max_by(|&a, &b| score(a).total_cmp(&score(b))).unwrap() as i32
    };
    let csc = made.dataset.csc(&Triple::plain()).unwrap();
    let (mut own, mut around) = (0, 0);
    for v in 0..1000 {
        let mut mean = row(v as usize).to_vec();
        for &u in csc.sources(v) {
            mean.iter_mut().zip(row(u as usize)).for_each(|(m, x)| *m += x);
        }
        mean.iter_mut().for_each(|m| *m /= (csc.degree(v) + 1) as f32);
        own += u32::from(nearest(row(v as usize)) == classes[v as usize]);
        around += u32::from(nearest(&mean) == classes[v as usize]);
    }
    assert!((50..400).contains(&own), "{own} of 1000 by the node's own row");
    assert!(around > 700 && around > 3 * own, "{around} by the mean, {own} by the row, of 1000");
}
