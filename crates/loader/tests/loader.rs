//! Loaders over a generated graph: order, threads, ranks, columns.

use std::sync::Arc;

use gnarl_common::Result;
use gnarl_common::rng::Key;
use gnarl_graph::generate::{Attributes, CommunityOptions, community};
use gnarl_graph::{Dataset, Labels};
use gnarl_loader::{
    Batch, BatchEdges, Columns, LabelRows, LoaderGraph, LoaderOptions, Negatives, NeighborLoader,
    NeighborSampler, Neighborhood, SeedEdges,
};
use gnarl_sample::parts::Rule;
use gnarl_sample::{HeteroFanouts, HeteroScratch, TemporalRule};
use gnarl_store::{FeatureStore, MappedFeatures, Normalize};

fn dataset(dir: &std::path::Path) -> Dataset {
    let attributes =
        Attributes { features: 7, classes: 4, train: 0.5, valid: 0.2, ..Default::default() };
    let options = CommunityOptions {
        nodes: 500,
        communities: 4,
        average_degree: 9.0,
        attributes,
        ..Default::default()
    };
    community(&options, &dir.join("graph")).unwrap().dataset
}

fn loader(graph: &Arc<LoaderGraph>, options: LoaderOptions) -> NeighborLoader {
    let seeds = graph.split(0, "train").unwrap();
    let fanouts = HeteroFanouts::new(&[4, 3]);
    NeighborLoader::new(graph.clone(), seeds, (&fanouts, Rule::Uniform), options).unwrap()
}

fn batches(loader: &NeighborLoader, epoch: u64) -> Vec<Batch> {
    loader.epoch(epoch).collect::<Result<_>>().unwrap()
}

/// The rows of a batch's edges.
fn edge_ids(edges: &BatchEdges) -> &[i64] {
    edges.ids.as_deref().unwrap()
}

#[test]
fn batches_are_those_of_one_thread_for_any_number() {
    let dir = tempfile::tempdir().unwrap();
    let graph = Arc::new(LoaderGraph::open(&dataset(dir.path())).unwrap());
    let options = |threads| LoaderOptions {
        batch_size: 16,
        shuffle: true,
        seed: 3,
        threads,
        ..Default::default()
    };
    let alone = batches(&loader(&graph, options(1)), 2);
    for threads in [2, 5] {
        let loader = loader(&graph, options(threads));
        assert_eq!(batches(&loader, 2), alone);
        assert_ne!(batches(&loader, 3), alone, "another epoch");
        // Whatever was sampled before with the same memory.
        assert_eq!(batches(&loader, 2), alone);
    }
    let seeds: usize = alone.iter().map(Batch::num_seeds).sum();
    assert_eq!(seeds, graph.split(0, "train").unwrap().nodes.len());
}

#[test]
fn batches_have_the_columns_of_their_nodes_and_edges_of_the_graph() {
    let dir = tempfile::tempdir().unwrap();
    let dataset = dataset(dir.path());
    let graph = Arc::new(LoaderGraph::open(&dataset).unwrap());
    let features = dataset.features("_N").unwrap().unwrap();
    let features = MappedFeatures::new(features, Normalize::None).unwrap();
    let Some(Labels::Single { classes, .. }) = dataset.labels("_N").unwrap() else { panic!() };
    let lists = dataset.csc(&gnarl_graph::Triple::plain()).unwrap();
    let loader = loader(&graph, LoaderOptions { batch_size: 30, threads: 2, ..Default::default() });
    for batch in batches(&loader, 0) {
        let nodes = &batch.nodes[0];
        let ids: Vec<u32> = nodes.ids.iter().map(|&id| id as u32).collect();
        let mut rows = vec![0.0; ids.len() * 7];
        features.gather_into(&ids, &mut rows).unwrap();
        let found = nodes.features.as_ref().unwrap();
        assert_eq!((&found.values[..], found.width), (&rows[..], 7));
        let expected = ids.iter().map(|&node| classes[node as usize].into()).collect();
        assert_eq!(nodes.labels, Some(LabelRows::Classes(expected)));
        let edges = &batch.edges[0];
        for ((&src, &dst), &edge) in
            edges.sources().iter().zip(edges.destinations()).zip(edge_ids(edges))
        {
            let src = ids[src as usize];
            let dst = ids[dst as usize];
            let place = edge as usize - lists.indptr.get(dst.into()) as usize;
            assert_eq!(lists.sources(dst)[place], src);
        }
        assert_eq!(edges.of_hop.iter().sum::<i64>() as usize, edges.len());
        assert_eq!(nodes.of_hop.iter().sum::<i64>() as usize, ids.len());
    }
}

#[test]
fn a_seed_that_is_given_twice_has_two_nodes_with_the_same_neighbors() {
    let dir = tempfile::tempdir().unwrap();
    let graph = Arc::new(LoaderGraph::open(&dataset(dir.path())).unwrap());
    let seeds = graph.seeds(0, &[7, 9, 7, 11, 7, 9]).unwrap();
    let fanouts = HeteroFanouts::new(&[5, 5]);
    let options = LoaderOptions { batch_size: 6, ..Default::default() };
    let loader =
        NeighborLoader::new(graph.clone(), seeds, (&fanouts, Rule::Uniform), options).unwrap();
    let batch = batches(&loader, 0).remove(0);
    let nodes = &batch.nodes[0];
    let edges = &batch.edges[0];
    assert_eq!(nodes.ids[..6], [7, 9, 7, 11, 7, 9]);
    let sources_of = |node: i64| -> Vec<i64> {
        let all = edges.sources().iter().zip(edges.destinations());
        all.filter(|(_, dst)| **dst == node).map(|(&src, _)| nodes.ids[src as usize]).collect()
    };
    assert!(!sources_of(0).is_empty());
    for (again, first) in [(2, 0), (4, 0), (5, 1)] {
        assert_eq!(sources_of(again), sources_of(first));
    }
    // Those of distinct seeds are as in a batch of them alone.
    let seeds = graph.seeds(0, &[7, 9, 11]).unwrap();
    let options = LoaderOptions { batch_size: 3, ..Default::default() };
    let alone = NeighborLoader::new(graph, seeds, (&fanouts, Rule::Uniform), options).unwrap();
    let alone = batches(&alone, 0).remove(0);
    let distinct = |ids: &[i64]| {
        let mut ids = ids.to_vec();
        ids.sort_unstable();
        ids.dedup();
        ids
    };
    assert_eq!(distinct(&nodes.ids), distinct(&alone.nodes[0].ids));
    assert_eq!(distinct(edge_ids(edges)), distinct(edge_ids(&alone.edges[0])));
    assert_eq!(nodes.of_hop[0], 6);
}

#[test]
fn columns_that_are_not_asked_for_do_not_come() {
    let dir = tempfile::tempdir().unwrap();
    let graph = Arc::new(LoaderGraph::open(&dataset(dir.path())).unwrap());
    let columns = Columns { features: false, labels: false, ..Columns::default() };
    let loader = loader(&graph, LoaderOptions { batch_size: 500, columns, ..Default::default() });
    let batch = batches(&loader, 0).remove(0);
    assert_eq!((&batch.nodes[0].features, &batch.nodes[0].labels), (&None, &None));
}

#[test]
fn an_epoch_may_be_left_in_the_middle() {
    let dir = tempfile::tempdir().unwrap();
    let graph = Arc::new(LoaderGraph::open(&dataset(dir.path())).unwrap());
    let loader = loader(&graph, LoaderOptions { batch_size: 4, threads: 3, ..Default::default() });
    let all = batches(&loader, 0);
    for taken in [0, 1, 5] {
        let some: Vec<Batch> = loader.epoch(0).take(taken).collect::<Result<_>>().unwrap();
        assert_eq!(some, all[..taken]);
    }
}

#[test]
fn wrong_options_and_nodes_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let graph = Arc::new(LoaderGraph::open(&dataset(dir.path())).unwrap());
    let text = graph.seeds(0, &[3, 500]).unwrap_err().to_string();
    assert!(text.contains("input node 1 is 500") && text.contains("500 nodes"), "{text}");
    assert!(graph.seeds(0, &[-1]).unwrap_err().to_string().contains("is -1"));
    let error = graph.split(0, "training").unwrap_err();
    assert!(format!("{error:#}").contains("training"), "{error}");
    let fanouts = HeteroFanouts::new(&[4]);
    let refused = |options, rule| {
        NeighborLoader::new(graph.clone(), graph.all(0), (&fanouts, rule), options)
            .unwrap_err()
            .to_string()
    };
    let options = LoaderOptions { batch_size: 0, ..Default::default() };
    assert!(refused(options, Rule::Uniform).contains("batch_size 0"));
    let options = LoaderOptions { rank: 2, world_size: 2, ..Default::default() };
    assert!(refused(options, Rule::Uniform).contains("rank 2 of 2"));
    assert!(refused(LoaderOptions::default(), Rule::Weighted).contains("weights"));
}

#[test]
fn disjoint_seeds_have_trees_that_do_not_depend_on_the_batch() {
    let dir = tempfile::tempdir().unwrap();
    let graph = Arc::new(LoaderGraph::open(&dataset(dir.path())).unwrap());
    let of_size = |batch_size| {
        loader(
            &graph,
            LoaderOptions {
                batch_size,
                neighborhood: Neighborhood { disjoint: true, ..Default::default() },
                threads: 2,
                ..Default::default()
            },
        )
    };
    let edges = |batches: &[Batch]| {
        let mut all: Vec<(i64, i64)> = Vec::new();
        for batch in batches {
            let trees = batch.nodes[0].trees.as_ref().unwrap();
            assert_eq!(trees.len(), batch.nodes[0].ids.len());
            let ends = batch.edges[0].destinations().iter().zip(edge_ids(&batch.edges[0]));
            all.extend(
                ends.map(|(&at, &edge)| (batch.input_ids[trees[at as usize] as usize], edge)),
            );
        }
        all.sort_unstable();
        all
    };
    assert_eq!(edges(&batches(&of_size(1), 0)), edges(&batches(&of_size(64), 0)));
}

#[test]
fn batches_around_edges_have_these_and_their_negatives() {
    let dir = tempfile::tempdir().unwrap();
    let graph = Arc::new(LoaderGraph::open(&dataset(dir.path())).unwrap());
    let (sources, destinations) = graph.edges_of(0).unwrap();
    let ends = || (graph.seeds(0, &sources).unwrap(), graph.seeds(0, &destinations).unwrap());
    let fanouts = HeteroFanouts::new(&[3, 2]);
    let options =
        || LoaderOptions { batch_size: 40, shuffle: true, threads: 2, ..Default::default() };
    for (negatives, expected) in [
        (Negatives::None, (0, 0)),
        (Negatives::Pairs(0.5), (20, 20)),
        (Negatives::Destinations(3), (0, 120)),
    ] {
        let (from, to) = ends();
        let edges = SeedEdges::new(from, to, negatives).unwrap();
        let of = (&fanouts, Rule::Uniform);
        let loader = NeighborLoader::of_edges(graph.clone(), edges, of, options()).unwrap();
        let batch = batches(&loader, 0).remove(0);
        let links = batch.links.as_ref().unwrap();
        let ids = &batch.nodes[0].ids;
        for ((&src, &dst), &place) in
            links.sources.iter().zip(&links.destinations).zip(&batch.input_ids)
        {
            assert_eq!(ids[src as usize], sources[place as usize]);
            assert_eq!(ids[dst as usize], destinations[place as usize]);
        }
        let found = (links.negative_sources.len(), links.negative_destinations.len());
        assert_eq!((links.sources.len(), found), (40, expected));
        let seeds = batch.nodes[0].of_hop[0];
        let ends = links.negative_sources.iter().chain(&links.negative_destinations);
        assert!(ends.clone().all(|&at| at < seeds));
        assert!(ids[..seeds as usize].is_sorted());
    }
    let (from, to) = ends();
    let times = vec![1; from.nodes.len()];
    let edges = SeedEdges::new(from.at(times).unwrap(), to, Negatives::None).unwrap();
    let refused = NeighborLoader::of_edges(graph, edges, (&fanouts, Rule::Uniform), options());
    assert!(refused.unwrap_err().to_string().contains("sampled in time if, and only if"));
}

#[test]
fn disjoint_edges_have_trees_that_do_not_depend_on_the_batch() {
    let dir = tempfile::tempdir().unwrap();
    let graph = Arc::new(LoaderGraph::open(&dataset(dir.path())).unwrap());
    let (sources, destinations) = graph.edges_of(0).unwrap();
    let fanouts = HeteroFanouts::new(&[3, 2]);
    for negatives in [Negatives::Pairs(2.0), Negatives::Destinations(2)] {
        let of_size = |batch_size, threads| {
            let ends = [&sources, &destinations].map(|ids| graph.seeds(0, &ids[..90]).unwrap());
            let [from, to] = ends;
            let edges = SeedEdges::new(from, to, negatives).unwrap();
            let options = LoaderOptions {
                batch_size,
                neighborhood: Neighborhood { disjoint: true, ..Default::default() },
                threads,
                ..Default::default()
            };
            NeighborLoader::of_edges(graph.clone(), edges, (&fanouts, Rule::Uniform), options)
                .unwrap()
        };
        // The nodes of each edge, and the edges between them.
        let trees = |loader: &NeighborLoader| {
            let mut all: Vec<(i64, i64, bool)> = Vec::new();
            for batch in batches(loader, 0) {
                let nodes = &batch.nodes[0];
                let of: Vec<i64> = nodes
                    .trees
                    .as_ref()
                    .unwrap()
                    .iter()
                    .map(|&tree| batch.input_ids[tree as usize])
                    .collect();
                all.extend(of.iter().zip(&nodes.ids).map(|(&edge, &node)| (edge, node, false)));
                let drawn = batch.edges[0].destinations().iter().zip(edge_ids(&batch.edges[0]));
                all.extend(drawn.map(|(&at, &row)| (of[at as usize], row, true)));
            }
            all.sort_unstable();
            all
        };
        let alone = trees(&of_size(1, 1));
        assert_eq!(trees(&of_size(40, 2)), alone);
        assert!(alone.len() > 90 * 10);
    }
}

#[test]
fn samplers_give_what_loaders_give() {
    let dir = tempfile::tempdir().unwrap();
    let graph = Arc::new(LoaderGraph::open(&dataset(dir.path())).unwrap());
    let all = HeteroFanouts::new(&[-1, -1]);
    let seeds = || graph.seeds(0, &[4, 9, 4, 77]).unwrap();
    let sampler =
        NeighborSampler::new(graph.clone(), (&all, Rule::Uniform), Neighborhood::default(), 1)
            .unwrap();
    let mut scratch = HeteroScratch::new();
    let sampled = sampler.sample(&[seeds()], Key::new(0), &mut scratch).unwrap();
    let options = LoaderOptions { batch_size: 4, ..Default::default() };
    let of = (&all, Rule::Uniform);
    let loader = NeighborLoader::new(graph.clone(), seeds(), of, options).unwrap();
    let loaded = batches(&loader, 0).remove(0);
    assert_eq!(sampled.nodes[0].ids, loaded.nodes[0].ids);
    assert_eq!(sampled.edges[0].ends, loaded.edges[0].ends);
    assert!(sampled.nodes[0].features.is_none() && sampled.nodes[0].labels.is_none());

    // Neighbors follow from the seeds and the key alone.
    let few = HeteroFanouts::new(&[2, 2]);
    let sampler =
        NeighborSampler::new(graph.clone(), (&few, Rule::Uniform), Neighborhood::default(), 1)
            .unwrap();
    let mut sample = |key: u64, nodes: &[i64]| {
        let seeds = graph.seeds(0, nodes).unwrap();
        let batch = sampler.sample(&[seeds], Key::new(key), &mut scratch).unwrap();
        edge_ids(&batch.edges[0]).to_vec()
    };
    let first = sample(1, &[3, 5, 8]);
    assert_ne!(sample(1, &[5, 3, 8]), first);
    assert_ne!(sample(2, &[3, 5, 8]), first);
    assert_eq!(sample(1, &[3, 5, 8]), first);
    let timed = seeds().at(vec![1; 4]).unwrap();
    let refused = sampler.sample(&[timed], Key::new(0), &mut HeteroScratch::new());
    assert!(refused.unwrap_err().to_string().contains("seeds have times"));
}

#[test]
fn time_where_there_is_none_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let graph = Arc::new(LoaderGraph::open(&dataset(dir.path())).unwrap());
    let fanouts = HeteroFanouts::new(&[3]);
    let options = LoaderOptions {
        neighborhood: Neighborhood { time: Some(TemporalRule::Uniform), ..Default::default() },
        ..Default::default()
    };
    let refused = |seeds| {
        let of = (&fanouts, Rule::Uniform);
        NeighborLoader::new(graph.clone(), seeds, of, options.clone()).unwrap_err().to_string()
    };
    assert!(refused(graph.all(0)).contains("have no times"));
    assert!(refused(graph.all(0).at(vec![1; 500]).unwrap()).contains("neither edges nor nodes"));
    assert!(graph.all(0).at(vec![1; 3]).unwrap_err().to_string().contains("3 times for 500"));
}
