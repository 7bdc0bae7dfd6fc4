//! Limits of servers: clients that ask for much, or are silent, harm no other one.

use std::io::Read;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gnarl_common::Kind;
use gnarl_common::rng::Key;
use gnarl_graph::generate::{CommunityOptions, community};
use gnarl_partition::{PartLayout, PartitionConfig, PartitionedDataset, Parts, partition_dataset};
use gnarl_sample::parts::{HopRequest, LocalPart, NeighborService, Rule};
use gnarl_serve::{Client, ClientConfig, Limits, RemotePart, ServedPart, Server, ServerConfig};
use gnarl_store::{FeatureStore, MappedFeatures, Normalize};

/// A graph, and its parts.
struct Cut {
    _dir: tempfile::TempDir,
    features: MappedFeatures,
    parts: PartitionedDataset,
}

fn cut(nodes: u64, layout: PartLayout) -> Cut {
    let dir = tempfile::tempdir().unwrap();
    let options = CommunityOptions { nodes, communities: 8, ..Default::default() };
    let graph = community(&options, &dir.path().join("graph")).unwrap().dataset;
    let algorithm = if layout == PartLayout::VertexCut { "dbh" } else { "ldg" }.into();
    let config =
        PartitionConfig { algorithm, parts: Parts::Count(2), layout, ..Default::default() };
    let (parts, _) = partition_dataset(&graph, &config, &dir.path().join("parts")).unwrap();
    let features = graph.features("_N").unwrap().unwrap();
    let features = MappedFeatures::new(features, Normalize::None).unwrap();
    Cut { _dir: dir, features, parts }
}

fn serve(cut: &Cut, limits: Limits) -> Server {
    let part = Arc::new(ServedPart::open(&cut.parts, 0).unwrap());
    Server::start(vec![part], &ServerConfig { limits, ..ServerConfig::default() }).unwrap()
}

fn client(server: &Server) -> RemotePart {
    Client::connect(&ClientConfig::new(server.uri())).unwrap().part(0)
}

fn own(cut: &Cut) -> Vec<u64> {
    let assignment = cut.parts.assignment("_N").unwrap();
    (0..assignment.len() as u64).filter(|&v| assignment[v as usize] == 0).collect()
}

#[test]
fn rows_of_many_pieces_are_those_of_the_dataset() {
    let cut = cut(2000, PartLayout::EdgeCut);
    let server = serve(&cut, Limits { memory: 256 << 20, ..Limits::default() });
    let own = own(&cut);
    let nodes: Vec<u64> = own.iter().copied().cycle().take(200_000).collect();
    let bytes = nodes.len() * cut.features.width() * 4;
    assert!(bytes > 3 * (4 << 20), "{bytes} bytes are one piece");
    let ids: Vec<u32> = nodes.iter().map(|&v| v as u32).collect();
    assert_eq!(client(&server).features(&nodes).unwrap(), cut.features.gather(&ids).unwrap());
}

#[test]
fn neighbors_of_many_pieces_are_those_of_one() {
    for layout in [PartLayout::EdgeCut, PartLayout::VertexCut] {
        let cut = cut(60_000, layout);
        let server = serve(&cut, Limits::default());
        let remote = client(&server);
        let local = LocalPart::open(&cut.parts, 0).unwrap();
        let nodes = match layout {
            PartLayout::VertexCut => (0..60_000).collect(),
            _ => own(&cut),
        };
        for (rule, fanout) in [
            (Rule::Uniform, 6),
            (Rule::Labor, 6),
            (Rule::Exact, 6),
            (Rule::Uniform, u32::MAX),
            (Rule::Exact, u32::MAX),
        ] {
            let request = HopRequest::new(nodes.clone(), fanout, rule, Key::new(3));
            let here = local.ask(request.clone())().unwrap();
            let there = remote.ask(request)().unwrap();
            assert!(
                here.indices.len() * 28 > 4 << 20,
                "{} edges are one piece",
                here.indices.len()
            );
            assert_eq!(there.indptr, here.indptr, "{rule:?} {fanout}");
            assert_eq!(there.asked_degrees, here.asked_degrees, "{rule:?} {fanout}");
            let ids = |reply: &gnarl_sample::parts::HopReply| -> Vec<u64> {
                reply.indices.iter().map(|&i| reply.nodes[i as usize]).collect()
            };
            assert_eq!(ids(&there), ids(&here), "{rule:?} {fanout}");
        }
    }
}

#[test]
fn calls_that_ask_for_too_much_are_told() {
    let cut = cut(200, PartLayout::EdgeCut);
    let own = own(&cut);
    let server = serve(&cut, Limits { ids: own.len(), ..Limits::default() });
    client(&server).features(&own).unwrap();
    let more: Vec<u64> = own.iter().chain(&own[..1]).copied().collect();
    let error = client(&server).features(&more).unwrap_err();
    assert_eq!(error.kind(), Kind::Limit, "{error}");
    let text = error.to_string();
    assert!(text.contains(&format!("at most {}", own.len())), "{text}");
}

#[test]
fn too_low_limits_are_usage_errors() {
    let cut = cut(200, PartLayout::EdgeCut);
    let part = Arc::new(ServedPart::open(&cut.parts, 0).unwrap());
    for limits in [
        Limits { memory: 1 << 20, ..Limits::default() },
        Limits { ids: 0, ..Limits::default() },
        Limits { connections: 0, ..Limits::default() },
    ] {
        let config = ServerConfig { limits, ..ServerConfig::default() };
        let error = Server::start(vec![part.clone()], &config).err().unwrap();
        assert_eq!(error.kind(), Kind::Usage, "{error}");
    }
}

#[test]
fn large_calls_of_many_clients_all_get_through_little_memory() {
    let cut = cut(2000, PartLayout::EdgeCut);
    let server = serve(&cut, Limits { memory: 256 << 20, ..Limits::default() });
    let nodes: Vec<u64> = own(&cut).iter().copied().cycle().take(150_000).collect();
    let ids: Vec<u32> = nodes.iter().map(|&v| v as u32).collect();
    let expected = cut.features.gather(&ids).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..24 {
            scope.spawn(|| {
                let part = client(&server);
                for _ in 0..3 {
                    assert!(part.features(&nodes).unwrap() == expected);
                }
            });
        }
    });
}

#[test]
fn silent_clients_give_their_places_to_others() {
    let cut = cut(200, PartLayout::EdgeCut);
    let server = serve(&cut, Limits { connections: 8, ..Limits::default() });
    let own = own(&cut);
    let connect = || TcpStream::connect(server.address()).unwrap();
    let before: Vec<TcpStream> = (0..40).map(|_| connect()).collect();
    // Less than the time that silent clients are given when nobody waits.
    let config =
        ClientConfig { deadline: Duration::from_secs(5), ..ClientConfig::new(server.uri()) };
    let part = Client::connect(&config).unwrap().part(0);
    part.features(&own).unwrap();
    let after: Vec<TcpStream> = (0..40).map(|_| connect()).collect();
    part.features(&own).unwrap();
    let closed = before.into_iter().chain(after).filter(|mut stream| {
        stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        // A server of HTTP/2 greets first.
        let mut greeting = [0; 256];
        loop {
            match stream.read(&mut greeting) {
                Ok(0) => break true,
                Ok(_) => {}
                Err(e) => break e.kind() == std::io::ErrorKind::ConnectionReset,
            }
        }
    });
    let closed = closed.count();
    assert!(closed >= 70, "{closed} of 80 silent connections were closed");
}

#[test]
fn nodes_beyond_a_call_are_asked_for_in_several() {
    let cut = cut(200, PartLayout::EdgeCut);
    let server = serve(&cut, Limits { ids: 1 << 20, ..Limits::default() });
    let nodes: Vec<u64> = own(&cut).iter().copied().cycle().take((1 << 20) + 7).collect();
    let ids: Vec<u32> = nodes.iter().map(|&v| v as u32).collect();
    assert!(client(&server).features(&nodes).unwrap() == cut.features.gather(&ids).unwrap());
}

#[test]
fn more_clients_than_places_all_get_through() {
    let cut = cut(200, PartLayout::EdgeCut);
    let server = serve(&cut, Limits { connections: 3, ..Limits::default() });
    let own = own(&cut);
    std::thread::scope(|scope| {
        for _ in 0..9 {
            scope.spawn(|| {
                let part = client(&server);
                // Busy for longer than a turn, so that those who wait get theirs.
                let start = Instant::now();
                while start.elapsed() < Duration::from_millis(1500) {
                    part.features(&own).unwrap();
                }
            });
        }
    });
}
