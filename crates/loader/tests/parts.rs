//! Loaders over parts, on this machine and behind a server: batches equal those of the whole graph.
#![cfg(feature = "serve")]

use std::path::Path;
use std::sync::Arc;

use gnarl_common::{Kind, Result};
use gnarl_graph::generate::{Attributes, HeteroOptions, RmatOptions, heterogeneous, rmat};
use gnarl_graph::{Dataset, Triple};
use gnarl_loader::{
    Batch, BatchMaker, LoaderGraph, LoaderOptions, Negatives, NeighborLoader, Neighborhood,
    PartsOptions, SeedEdges,
};
use gnarl_partition::{PartLayout, PartitionConfig, PartitionedDataset, Parts, partition_dataset};
use gnarl_sample::parts::Rule;
use gnarl_sample::{HeteroFanouts, TemporalRule};
use gnarl_serve::{DeferredBatches, ServedPart, Server, ServerConfig};

fn homogeneous(dir: &Path) -> Dataset {
    let attributes = Attributes { features: 5, classes: 3, train: 0.5, ..Default::default() };
    let options =
        RmatOptions { nodes: 600, edges: 5000, coalesce: true, attributes, ..Default::default() };
    rmat(&options, &dir.join("graph")).unwrap().dataset
}

fn cut(dataset: &Dataset, layout: PartLayout, dir: &Path) -> PartitionedDataset {
    let algorithm = if layout == PartLayout::EdgeCut { "ldg" } else { "adadne" };
    let config = PartitionConfig {
        algorithm: algorithm.into(),
        parts: Parts::Count(3),
        layout,
        ..Default::default()
    };
    partition_dataset(dataset, &config, dir).unwrap().0
}

fn options() -> LoaderOptions {
    LoaderOptions { batch_size: 40, shuffle: true, seed: 7, threads: 2, ..Default::default() }
}

fn batches(graph: &Arc<LoaderGraph>, node_type: usize, of: (&HeteroFanouts, Rule)) -> Vec<Batch> {
    let loader = NeighborLoader::new(graph.clone(), graph.all(node_type), of, options()).unwrap();
    loader.epoch(1).collect::<Result<_>>().unwrap()
}

/// The batches without what parts do not tell: the rows of edges.
fn without_rows(mut batches: Vec<Batch>) -> Vec<Batch> {
    for edges in batches.iter_mut().flat_map(|batch| &mut batch.edges) {
        edges.ids = None;
    }
    batches
}

#[test]
fn batches_of_parts_are_those_of_the_whole_graph() {
    let dir = tempfile::tempdir().unwrap();
    let dataset = homogeneous(dir.path());
    let whole = Arc::new(LoaderGraph::open(&dataset).unwrap());
    for (layout, rules) in [
        (PartLayout::EdgeCut, &[Rule::Uniform, Rule::Labor, Rule::Exact][..]),
        (PartLayout::VertexCut, &[Rule::Labor, Rule::Exact]),
    ] {
        let place = dir.path().join(layout.to_string());
        cut(&dataset, layout, &place);
        let parts = LoaderGraph::open_parts(&place, &PartsOptions::default()).unwrap();
        let parts = Arc::new(parts);
        assert_eq!(parts.num_edges(0), whole.num_edges(0));
        for &rule in rules {
            for fanouts in [[4, 3], [1, 0], [-1, 2], [-1, -1]] {
                let fanouts = HeteroFanouts::new(&fanouts);
                let expected = without_rows(batches(&whole, 0, (&fanouts, rule)));
                let found = batches(&parts, 0, (&fanouts, rule));
                assert!(found[0].edges[0].ids.is_none());
                assert_eq!(found, expected, "{layout} {}", rule.name());
            }
        }
    }
}

#[test]
fn batches_around_edges_and_repeated_seeds_are_those_of_the_whole_graph() {
    let dir = tempfile::tempdir().unwrap();
    let dataset = homogeneous(dir.path());
    let whole = Arc::new(LoaderGraph::open(&dataset).unwrap());
    let place = dir.path().join("parts");
    cut(&dataset, PartLayout::EdgeCut, &place);
    let parts = Arc::new(LoaderGraph::open_parts(&place, &PartsOptions::default()).unwrap());
    let (sources, destinations) = whole.edges_of(0).unwrap();
    assert!(parts.edges_of(0).unwrap_err().to_string().contains("need the whole graph"));
    let fanouts = HeteroFanouts::new(&[3, 2]);
    let of = (&fanouts, Rule::Uniform);
    let links = |graph: &Arc<LoaderGraph>| -> Vec<Batch> {
        let [from, to] = [&sources, &destinations].map(|ids| graph.seeds(0, &ids[..200]).unwrap());
        let edges = SeedEdges::new(from, to, Negatives::Pairs(1.0)).unwrap();
        let loader = NeighborLoader::of_edges(graph.clone(), edges, of, options()).unwrap();
        without_rows(loader.epoch(0).collect::<Result<_>>().unwrap())
    };
    assert_eq!(links(&parts), links(&whole));
    let again = |graph: &Arc<LoaderGraph>| -> Vec<Batch> {
        let seeds = graph.seeds(0, &[5, 9, 5, 5, 300, 9]).unwrap();
        let loader = NeighborLoader::new(graph.clone(), seeds, of, options()).unwrap();
        without_rows(loader.epoch(0).collect::<Result<_>>().unwrap())
    };
    assert_eq!(again(&parts), again(&whole));
    for options in [
        LoaderOptions {
            neighborhood: Neighborhood { disjoint: true, ..Default::default() },
            ..options()
        },
        LoaderOptions {
            neighborhood: Neighborhood { time: Some(TemporalRule::Uniform), ..Default::default() },
            ..options()
        },
    ] {
        let seeds = parts.all(0).at(vec![0; 600]).unwrap();
        let refused = NeighborLoader::new(parts.clone(), seeds, of, options);
        assert!(refused.unwrap_err().to_string().contains("neither in time"));
    }
}

#[test]
fn shared_lists_are_not_drawn_from_uniformly() {
    let dir = tempfile::tempdir().unwrap();
    let dataset = homogeneous(dir.path());
    let place = dir.path().join("parts");
    cut(&dataset, PartLayout::VertexCut, &place);
    let parts = Arc::new(LoaderGraph::open_parts(&place, &PartsOptions::default()).unwrap());
    let of = (&HeteroFanouts::new(&[3]), Rule::Uniform);
    let refused = NeighborLoader::new(parts.clone(), parts.all(0), of, options());
    assert!(refused.unwrap_err().to_string().contains("share lists"));
    // All of them are.
    let of = (&HeteroFanouts::new(&[-1]), Rule::Uniform);
    let whole = Arc::new(LoaderGraph::open(&dataset).unwrap());
    assert_eq!(batches(&parts, 0, of), without_rows(batches(&whole, 0, of)));
}

#[test]
fn served_parts_of_a_heterogeneous_graph_give_its_batches() {
    let dir = tempfile::tempdir().unwrap();
    let attributes = Attributes { features: 6, classes: 3, train: 0.5, ..Default::default() };
    let options = HeteroOptions { nodes: 800, edges: 8000, attributes, ..Default::default() };
    let dataset = heterogeneous(&options, &dir.path().join("graph")).unwrap().dataset;
    let whole = Arc::new(LoaderGraph::open(&dataset).unwrap());
    for layout in [PartLayout::EdgeCut, PartLayout::VertexCut] {
        let place = dir.path().join(layout.to_string());
        let made = cut(&dataset, layout, &place);
        let held = [1, 2].map(|part| Arc::new(ServedPart::open(&made, part).unwrap()));
        let server = Server::start(held.to_vec(), &ServerConfig::default()).unwrap();
        for part in [1, 2] {
            std::fs::remove_dir_all(place.join(format!("part-{part}"))).unwrap();
        }
        let missing = LoaderGraph::open_parts(&place, &PartsOptions::default()).unwrap_err();
        assert!(missing.to_string().contains("part 1 is neither in"), "{missing}");
        for cache in [0, 1 << 20] {
            let servers = vec![server.uri().to_owned()];
            let options = PartsOptions { servers, cache, ..Default::default() };
            let parts = Arc::new(LoaderGraph::open_parts(&place, &options).unwrap());
            assert_eq!(parts.schema().edge_types(), whole.schema().edge_types());
            let triple: &Triple = &parts.schema().edge_types()[0];
            let fanouts = HeteroFanouts::new(&[3, 2]).with(triple.clone(), &[-1, 1]);
            for node_type in 0..whole.schema().node_types().len() {
                let of = (&fanouts, Rule::Exact);
                let expected = without_rows(batches(&whole, node_type, of));
                assert_eq!(batches(&parts, node_type, of), expected, "{layout}");
            }
        }
    }
}

/// A server of all parts in `place` that makes batches of them, and these.
fn batch_server(made: &PartitionedDataset, place: &Path) -> (Server, Arc<BatchMaker>) {
    let graph = LoaderGraph::open_parts(place, &PartsOptions::default()).unwrap();
    let maker = Arc::new(BatchMaker::new(Arc::new(graph), 2));
    let deferred = DeferredBatches::default();
    deferred.fill(maker.clone());
    let held = (0..3).map(|part| Arc::new(ServedPart::open(made, part).unwrap()));
    let config = ServerConfig::default();
    (Server::of_partition(made, held.collect(), Some(deferred), &config).unwrap(), maker)
}

/// A folder with what describes the parts, and the graph in it whose batches servers make.
fn served(place: &Path, servers: &[&Server]) -> Arc<LoaderGraph> {
    let lean = place.with_extension("lean");
    std::fs::create_dir_all(lean.join("nodes")).unwrap();
    let made = PartitionedDataset::open(place).unwrap();
    for name in gnarl_partition::describing_files(&made).unwrap() {
        std::fs::copy(place.join(&name), lean.join(&name)).unwrap();
    }
    let servers = servers.iter().map(|server| server.uri()).collect();
    let options = PartsOptions { servers, batches: true, ..Default::default() };
    Arc::new(LoaderGraph::open_parts(&lean, &options).unwrap())
}

#[test]
fn batch_servers_make_the_batches_of_the_graph() {
    let dir = tempfile::tempdir().unwrap();
    let attributes = Attributes { features: 6, classes: 3, train: 0.5, ..Default::default() };
    let hetero = HeteroOptions { nodes: 800, edges: 8000, attributes, ..Default::default() };
    let hetero = heterogeneous(&hetero, &dir.path().join("hetero")).unwrap().dataset;
    for (name, dataset) in [("a", homogeneous(dir.path())), ("b", hetero)] {
        let whole = Arc::new(LoaderGraph::open(&dataset).unwrap());
        for layout in [PartLayout::EdgeCut, PartLayout::VertexCut] {
            let place = dir.path().join(format!("{name}-{layout}"));
            let made = cut(&dataset, layout, &place);
            let [(first, one), (second, other)] = [(); 2].map(|()| batch_server(&made, &place));
            let remote = served(&place, &[&first, &second]);
            let triple: &Triple = &whole.schema().edge_types()[0];
            let fanouts = HeteroFanouts::new(&[3, 2]).with(triple.clone(), &[-1, 1]);
            for rule in [Rule::Exact, Rule::Labor] {
                for node_type in 0..whole.schema().node_types().len() {
                    let of = (&fanouts, rule);
                    let expected = without_rows(batches(&whole, node_type, of));
                    assert_eq!(batches(&remote, node_type, of), expected, "{layout}");
                }
            }
            let (sources, destinations) = whole.edges_of(0).unwrap();
            let (src, dst) = whole.schema().ends(0);
            for (negatives, leaves_out) in [
                (Negatives::None, false),
                (Negatives::Pairs(1.5), true),
                (Negatives::Destinations(2), false),
            ] {
                let links = |graph: &Arc<LoaderGraph>| -> Vec<Batch> {
                    let from = graph.seeds(src, &sources[..150]).unwrap();
                    let to = graph.seeds(dst, &destinations[..150]).unwrap();
                    let edges = SeedEdges::new(from, to, negatives).unwrap();
                    let edges = if leaves_out { edges.leaving_out(0, Some(0)) } else { edges };
                    let of = (&fanouts, Rule::Exact);
                    let loader = NeighborLoader::of_edges(graph.clone(), edges, of, options());
                    without_rows(loader.unwrap().epoch(0).collect::<Result<_>>().unwrap())
                };
                assert_eq!(links(&remote), links(&whole), "{layout} {negatives:?}");
            }
            assert!(one.made() > 10 && other.made() > 10, "in turns");
        }
    }
}

#[test]
fn the_other_server_stands_in_for_one_that_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let dataset = homogeneous(dir.path());
    let place = dir.path().join("parts");
    let made = cut(&dataset, PartLayout::EdgeCut, &place);
    let [(first, _), (second, _)] = [(); 2].map(|()| batch_server(&made, &place));
    let remote = served(&place, &[&first, &second]);
    let of = (&HeteroFanouts::new(&[4, 3]), Rule::Uniform);
    let whole = Arc::new(LoaderGraph::open(&dataset).unwrap());
    let expected = without_rows(batches(&whole, 0, of));
    let loader = NeighborLoader::new(remote.clone(), remote.all(0), of, options()).unwrap();
    let mut epoch = loader.epoch(1);
    let mut found = vec![epoch.next().unwrap().unwrap()];
    drop(first);
    found.extend(epoch.map(|batch| batch.unwrap()));
    assert_eq!(found, expected);
    drop(second);
    let servers = PartsOptions { servers: vec![], batches: true, ..Default::default() };
    let error = LoaderGraph::open_parts(&place, &servers).unwrap_err();
    assert_eq!(error.kind(), Kind::Usage);
    assert!(error.to_string().contains("no servers that make batches"), "{error}");
}

#[test]
fn servers_that_make_no_batches_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let dataset = homogeneous(dir.path());
    let place = dir.path().join("parts");
    let made = cut(&dataset, PartLayout::EdgeCut, &place);
    let held = (0..3).map(|part| Arc::new(ServedPart::open(&made, part).unwrap()));
    let server = Server::start(held.collect(), &ServerConfig::default()).unwrap();
    let options = PartsOptions { servers: vec![server.uri()], batches: true, ..Default::default() };
    let error = LoaderGraph::open_parts(&place, &options).unwrap_err();
    assert_eq!(error.kind(), Kind::Usage);
    assert!(error.to_string().contains("no server makes batches"), "{error}");
}
