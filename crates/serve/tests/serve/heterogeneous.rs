//! Heterogeneous parts: rows of each node type by its own partition policy, and neighbors over each edge type.

use std::path::Path;
use std::sync::Arc;

use gnarl_common::Kind;
use gnarl_common::rng::Key;
use gnarl_graph::{Dataset, DatasetWriter, IdWidth, Triple};
use gnarl_partition::{PartLayout, PartitionConfig, PartitionedDataset, Parts, partition_dataset};
use gnarl_sample::parts::{HopReply, HopRequest, NeighborService, Rule};
use gnarl_serve::{Client, ClientConfig, HeteroRows, PartAccess, ServedPart, Server, ServerConfig};
use gnarl_store::RowSource;

const USERS: u64 = 400;
const SHOPS: u64 = 15;
const WIDTH: usize = 3;

/// Row of a node of the type whose rows begin at `first`.
fn row(first: f32, id: u64) -> [f32; WIDTH] {
    [first + id as f32, first - id as f32, first]
}

/// Users who know users and buy at shops, which have rows too, and areas without any.
fn write(out: &Path) -> Dataset {
    let mut writer = DatasetWriter::create(out, IdWidth::U32).unwrap();
    for (name, count, first) in [("user", USERS, 0.0), ("shop", SHOPS, 1e4)] {
        writer.add_node_type(name, count);
        let mut features = writer.node_column::<f32>(name, "features", &[WIDTH as u64]).unwrap();
        (0..count).for_each(|id| features.push(&row(first, id)).unwrap());
        let column = features.finish().unwrap();
        writer.node_type(name).unwrap().columns.push(column);
    }
    writer.add_node_type("area", 4);
    let key = Key::new(4);
    let mut edges = |triple: &str, (from, to): (u64, u64), count: u64| {
        let triple: Triple = triple.parse().unwrap();
        let mut list = writer.edge_writer(&triple, Some((from, to))).unwrap();
        let (src, dst): (Vec<u64>, Vec<u64>) =
            (0..count).map(|e| (key.below(2 * e, from), key.below(2 * e + 1, to))).unzip();
        list.push(&src, &dst).unwrap();
        let columns = list.finish().unwrap();
        writer.add_edge_type(triple, columns);
    };
    edges("user:knows:user", (USERS, USERS), 2000);
    edges("shop:sold:user", (SHOPS, USERS), 1000);
    edges("area:has:shop", (4, SHOPS), 15);
    writer.finish(Default::default()).unwrap()
}

fn cut(dir: &Path) -> PartitionedDataset {
    let graph = write(&dir.join("graph"));
    let config = PartitionConfig {
        algorithm: "random".into(),
        parts: Parts::Count(3),
        ..Default::default()
    };
    partition_dataset(&graph, &config, &dir.join("parts")).unwrap().0
}

fn held(cut: &PartitionedDataset, part: usize) -> Arc<ServedPart> {
    Arc::new(ServedPart::open(cut, part).unwrap())
}

/// Part 1 here, the others behind a server.
fn parts(cut: &PartitionedDataset) -> (Server, Vec<PartAccess>) {
    let served = vec![held(cut, 0), held(cut, 2)];
    let server = Server::start(served, &ServerConfig::default()).unwrap();
    let deadline = std::time::Duration::from_secs(2);
    let config = ClientConfig { deadline, ..ClientConfig::new(server.uri()) };
    let client = Client::connect(&config).unwrap();
    let parts = vec![
        PartAccess::Remote(client.part(0)),
        PartAccess::Local(held(cut, 1)),
        PartAccess::Remote(client.part(2)),
    ];
    (server, parts)
}

fn fetch(rows: &dyn RowSource, ids: &[u64]) -> gnarl_common::Result<Vec<f32>> {
    let mut out = vec![0.0; ids.len() * WIDTH];
    rows.fetch(ids, &mut out).map(|()| out)
}

fn expected(first: f32, ids: &[u64]) -> Vec<f32> {
    ids.iter().flat_map(|&id| row(first, id)).collect()
}

#[test]
fn rows_of_each_type_are_those_of_the_dataset() {
    let dir = tempfile::tempdir().unwrap();
    let cut = cut(dir.path());
    let (_server, parts) = parts(&cut);
    let users: Vec<u64> = (0..300).map(|i| Key::new(2).below(i, USERS)).collect();
    let shops: Vec<u64> = (0..60).map(|i| Key::new(3).below(i, SHOPS)).collect();
    // Nothing, shops alone, everything is held whole.
    for whole in [0, 1000, 1 << 20] {
        let rows = HeteroRows::open(&cut, &parts, whole).unwrap();
        let of = |ntype| rows.of(ntype).unwrap();
        assert_eq!((of("user").width(), of("shop").width()), (WIDTH, WIDTH));
        assert_eq!(fetch(of("user"), &users).unwrap(), expected(0.0, &users), "{whole}");
        assert_eq!(fetch(of("shop"), &shops).unwrap(), expected(1e4, &shops), "{whole}");
        for (ntype, count) in [("user", USERS), ("shop", SHOPS)] {
            let text = fetch(of(ntype), &[count]).unwrap_err().to_string();
            assert!(text.contains(&format!("node {count} is not one of {count}")), "{text}");
            assert!(of(ntype).fetch(&[0], &mut [0.0]).is_err());
        }
        let error = rows.of("area").err().unwrap();
        assert!(format!("{error:?}").contains("user, shop"), "{error:?}");
    }
}

#[test]
fn small_types_are_held_whole_and_ask_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let cut = cut(dir.path());
    let (server, parts) = parts(&cut);
    let rows = HeteroRows::open(&cut, &parts, 1000).unwrap();
    drop(server);
    let shops: Vec<u64> = (0..SHOPS).rev().collect();
    assert_eq!(fetch(rows.of("shop").unwrap(), &shops).unwrap(), expected(1e4, &shops));
    let owner = cut.assignment("user").unwrap();
    let of = |part: u32| (0..USERS).filter(|&v| owner[v as usize] == part).collect::<Vec<_>>();
    let users = rows.of("user").unwrap();
    assert_eq!(fetch(users, &of(1)).unwrap(), expected(0.0, &of(1)), "these are here");
    let error = fetch(users, &of(2)[..1]).unwrap_err();
    assert_eq!(error.kind(), Kind::Rank);
    assert!(error.to_string().contains("part 2"), "{error}");
}

#[test]
fn a_typed_part_says_what_it_has_and_lacks() {
    let dir = tempfile::tempdir().unwrap();
    let cut = cut(dir.path());
    let (_server, parts) = parts(&cut);
    for part in &parts {
        let abouts = part.describe().unwrap();
        let names: Vec<_> = abouts.iter().map(|a| (a.ntype.as_str(), a.feature_width)).collect();
        assert_eq!(names, [("user", WIDTH), ("shop", WIDTH), ("area", 0)]);
    }
    let PartAccess::Remote(remote) = &parts[0] else { panic!("part 0 is served") };
    let text = format!("{:?}", remote.features(&[0]).unwrap_err());
    assert!(text.contains("several types") && text.contains("user, shop, area"), "{text}");
    let text = format!("{:?}", remote.begin_features(Some("shops"), vec![0])().unwrap_err());
    assert!(text.contains("no nodes of type 'shops'"), "{text}");
    let known = "user:knows:user, shop:sold:user, area:has:shop";
    let text = format!("{:?}", parts[1].neighbors(None).err().unwrap());
    assert!(text.contains("edges of several types") && text.contains(known), "{text}");
    let hop = HopRequest::new(vec![0], 2, Rule::Exact, Key::new(1));
    let error = remote.ask(hop.clone())().unwrap_err();
    assert_eq!(error.kind(), Kind::Usage);
    assert!(error.to_string().contains("edges of several types"), "{error}");
    let other = "user:meets:user".parse().unwrap();
    for part in &parts {
        let asked = part.neighbors(Some(&other)).and_then(|neighbors| neighbors.ask(hop.clone())());
        let text = format!("{:?}", asked.err().unwrap());
        assert!(text.contains("no edges of type 'user:meets:user'"), "{text}");
    }
}

#[test]
fn servers_draw_over_each_edge_type_what_the_part_draws_here() {
    let dir = tempfile::tempdir().unwrap();
    let graph = write(&dir.path().join("graph"));
    for (layout, algorithm) in [(PartLayout::EdgeCut, "random"), (PartLayout::VertexCut, "dbh")] {
        let (algorithm, parts) = (algorithm.into(), Parts::Count(3));
        let config = PartitionConfig { algorithm, parts, layout, ..Default::default() };
        let out = dir.path().join(layout.to_string());
        let cut = partition_dataset(&graph, &config, &out).unwrap().0;
        let part = held(&cut, 2);
        let server = Server::start(vec![part.clone()], &ServerConfig::default()).unwrap();
        let client = Client::connect(&ClientConfig::new(server.uri())).unwrap();
        let remote = PartAccess::Remote(client.part(2));
        let owner = cut.assignment("user").unwrap();
        let nodes: Vec<u64> = (0..USERS).filter(|&v| owner[v as usize] == 2).collect();
        for edge_type in ["user:knows:user", "shop:sold:user"] {
            let triple: Triple = edge_type.parse().unwrap();
            let (nodes, key) = (nodes.clone(), Key::new(1));
            let hop = HopRequest::new(nodes.clone(), 2, Rule::Exact, key);
            let here = part.neighbors(Some(&triple)).unwrap().draw(&hop).unwrap();
            let there = remote.neighbors(Some(&triple)).unwrap().ask(hop)().unwrap();
            assert!(here.indices.len() > nodes.len() / 2, "{layout} {edge_type}");
            let heard = |reply: &HopReply| -> Vec<u64> {
                reply.indices.iter().map(|&at| reply.nodes[at as usize]).collect()
            };
            assert_eq!(heard(&here), heard(&there));
            assert_eq!((&here.indptr, &here.numbers), (&there.indptr, &there.numbers));
            assert_eq!((&here.asked_degrees, &here.degrees), (&there.asked_degrees, &None));
        }
        assert!(part.load().edges_sent > 0);
    }
}
