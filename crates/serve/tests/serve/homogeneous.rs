//! Parts behind servers: the same neighbors and rows as from the files, and clear errors.

use std::sync::Arc;
use std::time::{Duration, Instant};

use gnarl_common::rng::Key;
use gnarl_common::{DType, Kind};
use gnarl_graph::Dataset;
use gnarl_graph::generate::{CommunityOptions, community};
use gnarl_partition::{PartLayout, PartitionConfig, PartitionedDataset, Parts, partition_dataset};
use gnarl_sample::parts::{HopRequest, LocalPart, NeighborService, PartsSampler, Routes, Rule};
use gnarl_sample::{Sampler, Scratch};
use gnarl_serve::{
    Client, ClientConfig, DividedRows, PartAccess, ServedPart, Server, ServerConfig, Tls,
};
use gnarl_store::cache::CachePolicy;
use gnarl_store::embedding::{Embedding, SparseAdagrad};
use gnarl_store::{FeatureStore, MappedFeatures, Normalize, RowSource, Rows};

const PARTS: usize = 3;

struct Cut {
    _dir: tempfile::TempDir,
    graph: Dataset,
    parts: PartitionedDataset,
}

fn cut(layout: PartLayout, algorithm: &str) -> Cut {
    cut_of(DType::F32, layout, algorithm)
}

/// Parts of a graph whose features are stored in this type.
fn cut_of(dtype: DType, layout: PartLayout, algorithm: &str) -> Cut {
    let dir = tempfile::tempdir().unwrap();
    let mut options = CommunityOptions { nodes: 800, communities: 8, ..Default::default() };
    options.attributes.dtype = dtype;
    community(&options, &dir.path().join("graph")).unwrap();
    let graph = Dataset::open(dir.path().join("graph")).unwrap();
    let (algorithm, count) = (algorithm.into(), Parts::Count(PARTS));
    let config = PartitionConfig { algorithm, parts: count, layout, ..Default::default() };
    let (parts, _) = partition_dataset(&graph, &config, &dir.path().join("parts")).unwrap();
    Cut { _dir: dir, graph, parts }
}

fn held(parts: &PartitionedDataset, which: &[usize]) -> Vec<Arc<ServedPart>> {
    which.iter().map(|&p| Arc::new(ServedPart::open(parts, p).unwrap())).collect()
}

fn client(server: &Server) -> Client {
    Client::connect(&ClientConfig::new(server.uri())).unwrap()
}

fn own(parts: &PartitionedDataset, part: u32) -> Vec<u64> {
    let assignment = parts.assignment("_N").unwrap();
    (0..assignment.len() as u64).filter(|&v| assignment[v as usize] == part).collect()
}

fn hop(nodes: Vec<u64>) -> HopRequest {
    HopRequest::new(nodes, 3, Rule::Exact, Key::new(5))
}

#[test]
fn remote_parts_give_the_batches_of_local_ones() {
    for (layout, algorithm, rule) in [
        (PartLayout::EdgeCut, "spring", Rule::Uniform),
        (PartLayout::EdgeCut, "spring", Rule::Labor),
        (PartLayout::VertexCut, "adadne", Rule::Exact),
    ] {
        let cut = cut(layout, algorithm);
        let servers = [&[0, 2][..], &[1]]
            .map(|which| Server::start(held(&cut.parts, which), &ServerConfig::default()).unwrap());
        let clients = servers.each_ref().map(client);
        let remote: Vec<Arc<dyn NeighborService>> = vec![
            Arc::new(clients[0].part(0)),
            Arc::new(clients[1].part(1)),
            Arc::new(clients[0].part(2)),
        ];
        let local: Vec<Arc<dyn NeighborService>> =
            (0..PARTS).map(|p| Arc::new(LocalPart::open(&cut.parts, p).unwrap()) as _).collect();
        let sampler = |services| {
            let routes = Routes::of(&cut.parts).unwrap();
            PartsSampler::new(rule, &[4, -1], routes, services).unwrap()
        };
        let (local, remote) = (sampler(local), sampler(remote));
        for seed in 0..5 {
            let (seeds, key) = ([3 * seed, 700, 45], Key::new(seed.into()));
            let take = |s: &PartsSampler| s.sample(&seeds, key, &mut Scratch::new());
            let (a, b) = (take(&local).unwrap(), take(&remote).unwrap());
            assert_eq!(a.input_nodes, b.input_nodes);
            for (a, b) in a.blocks.iter().zip(&b.blocks) {
                assert_eq!((a.indptr(), a.indices()), (b.indptr(), b.indices()));
                assert_eq!((a.weights(), a.degrees()), (b.weights(), b.degrees()));
            }
        }
    }
}

#[test]
fn rows_are_those_of_the_dataset() {
    for (layout, algorithm) in [(PartLayout::EdgeCut, "spring"), (PartLayout::VertexCut, "dbh")] {
        let cut = cut(layout, algorithm);
        let all = cut.graph.features("_N").unwrap().unwrap();
        let all = MappedFeatures::new(all, Normalize::None).unwrap();
        let server = Server::start(held(&cut.parts, &[1]), &ServerConfig::default()).unwrap();
        let mut nodes = own(&cut.parts, 1);
        nodes.reverse();
        let ids: Vec<u32> = nodes.iter().map(|&v| v as u32).collect();
        assert_eq!(client(&server).part(1).features(&nodes).unwrap(), all.gather(&ids).unwrap());
        assert_eq!(client(&server).part(1).features(&[]).unwrap(), Rows::Dense(vec![]));
    }
}

#[test]
fn features_travel_in_the_type_they_are_stored_in() {
    let sent = [DType::F32, DType::F16, DType::BF16].map(|dtype| {
        let cut = cut_of(dtype, PartLayout::EdgeCut, "spring");
        let all = cut.graph.features("_N").unwrap().unwrap();
        let all = MappedFeatures::new(all, Normalize::None).unwrap();
        let server = Server::start(held(&cut.parts, &[1]), &ServerConfig::default()).unwrap();
        let nodes = own(&cut.parts, 1);
        let ids: Vec<u32> = nodes.iter().map(|&v| v as u32).collect();
        assert_eq!(client(&server).part(1).features(&nodes).unwrap(), all.gather(&ids).unwrap());
        server.traffic().sent as f64 / nodes.len() as f64
    });
    assert!(sent[0] > 400.0 && sent[0] < 440.0, "{sent:?}");
    assert!(sent[1..].iter().all(|&sent| sent > 200.0 && sent < 240.0), "{sent:?}");
}

#[test]
fn rows_come_from_wherever_the_parts_are_with_and_without_a_cache() {
    let cut = cut(PartLayout::EdgeCut, "spring");
    let all = cut.graph.features("_N").unwrap().unwrap();
    let all = MappedFeatures::new(all, Normalize::None).unwrap();
    let server = Server::start(held(&cut.parts, &[0, 2]), &ServerConfig::default()).unwrap();
    let client = client(&server);
    let divided = || {
        let parts = vec![
            PartAccess::Remote(client.part(0)),
            PartAccess::Local(Arc::new(ServedPart::open(&cut.parts, 1).unwrap())),
            PartAccess::Remote(client.part(2)),
        ];
        DividedRows::new("_N", Routes::of(&cut.parts).unwrap(), parts, all.width()).unwrap()
    };
    let nodes: Vec<u64> = (0..300).map(|i| Key::new(2).below(i, 800)).collect();
    let ids: Vec<u32> = nodes.iter().map(|&v| v as u32).collect();
    let expected = all.gather(&ids).unwrap();
    let mut out = vec![0.0; nodes.len() * all.width()];
    divided().fetch(&nodes, &mut out).unwrap();
    assert_eq!(Rows::Dense(out.clone()), expected);
    let cached = CachePolicy::Lru.build(divided(), 200_000, |_| Ok(vec![])).unwrap();
    for _ in 0..2 {
        out.fill(0.0);
        cached.fetch(&nodes, &mut out).unwrap();
        assert_eq!(Rows::Dense(out.clone()), expected);
    }
    assert!(cached.hit_rate() > 0.3, "{:?}", cached.stats());
    let error = divided().fetch(&[800], &mut out[..all.width()]).unwrap_err().to_string();
    assert!(error.contains("node 800 is not one of 800"), "{error}");
    assert!(divided().fetch(&[1], &mut out[..1]).is_err());
}

#[test]
fn wrong_requests_are_answered_with_what_is_wrong() {
    let cut = cut(PartLayout::EdgeCut, "spring");
    let server = Server::start(held(&cut.parts, &[0]), &ServerConfig::default()).unwrap();
    let client = client(&server);
    let foreign = own(&cut.parts, 2)[0];
    let error = client.part(0).features(&[foreign]).unwrap_err();
    assert_eq!(error.kind(), Kind::InvalidInput);
    let text = error.to_string();
    assert!(text.contains(&format!("node {foreign} is not one of part 0's own")), "{text}");
    let error = client.part(1).ask(hop(vec![1]))().unwrap_err();
    assert_eq!(error.kind(), Kind::Usage);
    let text = error.to_string();
    assert!(text.contains("does not have part 1") && text.contains("this server has: 0"), "{text}");
    let error = client.part(0).ask(hop(vec![foreign]))().unwrap_err().to_string();
    assert!(error.contains("belongs to another part") && error.contains("part 0"), "{error}");
}

#[test]
fn tokens_and_certificates_are_asked_for() {
    let cut = cut(PartLayout::EdgeCut, "spring");
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".into()]).unwrap();
    let certificate = made.cert.pem().into_bytes();
    let key = made.signing_key.serialize_pem().into_bytes();
    let config = ServerConfig {
        token: Some("open sesame".into()),
        tls: Some(Tls { certificate: certificate.clone(), key }),
        ..Default::default()
    };
    let server = Server::start(held(&cut.parts, &[0]), &config).unwrap();
    let nodes = own(&cut.parts, 0);
    let ask = |token: Option<&str>, certificate| {
        let deadline = Duration::from_secs(2);
        let token = token.map(String::from);
        let config =
            ClientConfig { token, certificate, deadline, ..ClientConfig::new(server.uri()) };
        Client::connect(&config).unwrap().part(0).features(&nodes)
    };
    ask(Some("open sesame"), Some(certificate.clone())).unwrap();
    for (token, text) in [(None, "no token was given"), (Some("open"), "the token is wrong")] {
        let error = ask(token, Some(certificate.clone())).unwrap_err();
        assert_eq!(error.kind(), Kind::Usage);
        assert!(error.to_string().contains(text), "{error}");
    }
    let error = ask(Some("open sesame"), None).unwrap_err();
    assert_eq!(error.kind(), Kind::Rank, "an unknown certificate: {error}");
    let plain = ClientConfig {
        deadline: Duration::from_secs(1),
        token: Some("open sesame".into()),
        ..ClientConfig::new(server.uri().replace("https", "http"))
    };
    Client::connect(&plain).unwrap().part(0).features(&nodes).unwrap_err();
}

#[test]
fn a_server_that_comes_back_is_found_again() {
    let cut = cut(PartLayout::EdgeCut, "spring");
    let start = |listen| {
        let config = ServerConfig { listen, ..Default::default() };
        Server::start(held(&cut.parts, &[0]), &config)
    };
    let first = start(ServerConfig::default().listen).unwrap();
    let (address, client) = (first.address(), client(&first));
    let nodes = own(&cut.parts, 0);
    let expected = client.part(0).ask(hop(nodes.clone()))().unwrap();
    drop(first);
    let answer = client.part(0).ask(hop(nodes.clone()));
    std::thread::sleep(Duration::from_millis(300));
    let second = loop {
        // The port may not be free at once.
        match start(address) {
            Ok(server) => break server,
            Err(_) => std::thread::sleep(Duration::from_millis(50)),
        }
    };
    assert_eq!(answer().unwrap(), expected);
    assert_eq!(second.address(), address);
}

#[test]
fn a_server_that_stays_away_is_named() {
    let cut = cut(PartLayout::EdgeCut, "spring");
    let server = Server::start(held(&cut.parts, &[0]), &ServerConfig::default()).unwrap();
    let uri = server.uri();
    drop(server);
    let deadline = Duration::from_millis(400);
    let config = ClientConfig { deadline, ..ClientConfig::new(&uri) };
    let start = Instant::now();
    let error = Client::connect(&config).unwrap().part(2).features(&[1]).unwrap_err();
    assert!(start.elapsed() < Duration::from_secs(30), "the deadline ends the wait");
    assert_eq!(error.kind(), Kind::Rank);
    let text = error.to_string();
    assert!(text.contains(&format!("no reply from {uri} within 0.4 s")), "{text}");
    assert!(text.contains("part 2"), "{text}");
}

#[test]
fn a_taken_address_is_a_usage_error() {
    let cut = cut(PartLayout::EdgeCut, "spring");
    let server = Server::start(held(&cut.parts, &[0]), &ServerConfig::default()).unwrap();
    let config = ServerConfig { listen: server.address(), ..Default::default() };
    let error = Server::start(vec![], &config).err().unwrap();
    assert_eq!(error.kind(), Kind::Usage);
    assert!(error.to_string().contains(&server.address().to_string()), "{error}");
    for uri in ["nonsense uri", "", "http://"] {
        let error = Client::connect(&ClientConfig::new(uri)).err();
        assert!(error.is_none_or(|e| e.kind() == Kind::Usage), "{uri}");
    }
}

#[test]
fn more_calls_than_places_all_get_through() {
    let cut = cut(PartLayout::EdgeCut, "spring");
    let server = Server::start(held(&cut.parts, &[0]), &ServerConfig::default()).unwrap();
    let config = ClientConfig { in_flight: 2, ..ClientConfig::new(server.uri()) };
    let part = Client::connect(&config).unwrap().part(0);
    let nodes = own(&cut.parts, 0);
    let answers: Vec<_> = (0..50).map(|_| part.ask(hop(nodes.clone()))).collect();
    let replies: Vec<_> = answers.into_iter().map(|answer| answer().unwrap()).collect();
    assert!(replies.windows(2).all(|pair| pair[0] == pair[1]));
}

#[test]
fn pushed_gradients_step_learnt_rows_once() {
    let cut = cut(PartLayout::EdgeCut, "spring");
    let nodes = own(&cut.parts, 1);
    let table = || {
        let adagrad = Arc::new(SparseAdagrad::new(1e-10).unwrap());
        Embedding::new(nodes.clone(), 3, 0.1, Key::new(4), adagrad).unwrap()
    };
    let held = ServedPart::open(&cut.parts, 1).unwrap().with_embedding(table()).unwrap();
    let server = Server::start(vec![Arc::new(held)], &ServerConfig::default()).unwrap();
    let part = client(&server).part(1);
    assert!(part.describe().unwrap()[0].columns.contains(&"embedding".to_string()));
    let (few, mut expected) = ([nodes[5], nodes[0], nodes[5]], table());
    let rows = |table: &Embedding| {
        let mut rows = vec![0.0; 9];
        table.fetch(&few, &mut rows).unwrap();
        rows
    };
    assert_eq!(part.embedding(&few).unwrap(), rows(&expected));
    let grads: Vec<f32> = (0..9).map(|i| i as f32 - 3.0).collect();
    for step in 1..4 {
        expected.update(&few, &grads, 0.1).unwrap();
        for _ in 0..2 {
            // The second time it was taken already.
            assert_eq!(part.push(&few, &grads, 0.1, (7, step)).unwrap(), rows(&expected));
        }
    }
    let foreign = own(&cut.parts, 0)[0];
    assert!(part.push(&[foreign], &grads[..3], 0.1, (7, 4)).is_err());
    assert!(part.push(&few, &grads[..6], 0.1, (7, 4)).is_err());
    assert_eq!(part.embedding(&few).unwrap(), rows(&expected), "nothing changed");
    let other = ServedPart::open(&cut.parts, 0).unwrap().with_embedding(table());
    assert!(other.err().unwrap().to_string().contains("is not one of part 0's own"));
}
