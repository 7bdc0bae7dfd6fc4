//! Sampling as of times from parts: the batches of the whole graph, and a clear refusal of draws that parts which share lists
//! cannot make together.

use std::path::Path;
use std::sync::Arc;

use gnarl_common::rng::Key;
use gnarl_graph::blocks::MiniBatch;
use gnarl_graph::{Dataset, DatasetWriter, IdWidth, Triple};
use gnarl_partition::{PartLayout, PartitionConfig, PartitionedDataset, Parts, partition_dataset};
use gnarl_sample::parts::{
    AsOf, HopRequest, LocalPart, NeighborService, Routes, Rule, TemporalPartsSampler,
};
use gnarl_sample::{
    EdgeServices, HeteroBatch, HeteroFanouts, HeteroSampleGraph, HeteroScratch,
    HeteroTemporalPartsSampler, HeteroTemporalSampler, SampleGraph, Sampler, Scratch, TemporalDraw,
    TemporalRule, TemporalSampler, local_parts,
};

const PARTS: usize = 3;
const RULES: [TemporalRule; 2] = [TemporalRule::Recent, TemporalRule::Uniform];
/// Layouts, and whether edges are drawn by numbers of their own.
const WAYS: [(PartLayout, bool); 3] =
    [(PartLayout::EdgeCut, false), (PartLayout::EdgeCut, true), (PartLayout::VertexCut, true)];
const FANOUTS: [i64; 3] = [3, -1, 2];
/// Nodes of each type, and whether they have times.
const NODES: [(&str, u64, bool); 2] = [("user", 200, true), ("item", 80, false)];
/// Edges of each type, and whether they have times.
const EDGES: [(&str, u64, bool); 4] = [
    ("user:rates:item", 1500, true),
    ("item:rated_by:user", 1500, true),
    ("user:knows:user", 900, false),
    ("item:near:item", 300, false),
];

/// Hubs, and edges that repeat at other times and at the same.
fn write(out: &Path, nodes: &[(&str, u64, bool)], edges: &[(&str, u64, bool)]) -> Dataset {
    let mut writer = DatasetWriter::create(out, IdWidth::U32).unwrap();
    let count = |name: &str| nodes.iter().find(|(known, ..)| *known == name).unwrap().1;
    for &(name, count, timed) in nodes {
        writer.add_node_type(name, count);
        if timed {
            let mut times = writer.node_column::<i64>(name, "time", &[]).unwrap();
            let of = |node| Key::new(8).below(node, 60) as i64 - 30;
            (0..count).for_each(|node| times.push(&[of(node)]).unwrap());
            let times = times.finish().unwrap();
            writer.node_type(name).unwrap().columns.push(times);
        }
    }
    for (number, &(name, edges, timed)) in (0..).zip(edges) {
        let (triple, key): (Triple, _) = (name.parse().unwrap(), Key::new(5).with(number));
        let limits = (count(&triple.src), count(&triple.dst));
        let mut list = writer.edge_writer(&triple, Some(limits)).unwrap();
        let mut times = writer.edge_column::<i64>(&triple, "time", &[]).unwrap();
        let mut weights = writer.edge_column::<f32>(&triple, "weight", &[]).unwrap();
        for edge in 0..edges {
            let end = |at: u64, limit: u64| {
                (0..2).map(|i| key.with(i).below(3 * edge + at, limit - 2)).min().unwrap()
            };
            list.push(&[end(0, limits.0)], &[end(1, limits.1)]).unwrap();
            times.push(&[key.below(3 * edge + 2, 40) as i64 - 20]).unwrap();
            weights.push(&[edge as f32]).unwrap();
        }
        let mut columns = list.finish().unwrap();
        let (times, weights) = (times.finish().unwrap(), weights.finish().unwrap());
        columns.extend(timed.then_some(times));
        columns.extend((number == 0).then_some(weights));
        writer.add_edge_type(triple, columns);
    }
    writer.finish(Default::default()).unwrap()
}

fn cut(dataset: &Dataset, out: &Path, layout: PartLayout) -> PartitionedDataset {
    let algorithm = if layout == PartLayout::EdgeCut { "ldg" } else { "adadne" };
    let (algorithm, parts) = (algorithm.into(), Parts::Count(PARTS));
    let config = PartitionConfig { algorithm, parts, layout, ..Default::default() };
    partition_dataset(dataset, &config, out).unwrap().0
}

fn draws(exact: bool) -> [TemporalDraw; 2] {
    RULES.map(|rule| TemporalDraw { rule, exact })
}

fn services(cut: &PartitionedDataset) -> Vec<Arc<dyn NeighborService>> {
    let open = |part| Arc::new(LocalPart::open(cut, part).unwrap()) as Arc<dyn NeighborService>;
    (0..PARTS).map(open).collect()
}

fn typed_services(cut: &PartitionedDataset) -> Vec<EdgeServices> {
    let parts: Vec<_> = (0..PARTS).map(|part| local_parts(cut, part).unwrap()).collect();
    let types = cut.edge_types().unwrap();
    let of = |(number, edges): (usize, &gnarl_partition::PartitionedEdges)| {
        let service = |part: &Vec<(Triple, LocalPart)>| {
            Arc::new(part[number].1.clone()) as Arc<dyn NeighborService>
        };
        EdgeServices { parts: parts.iter().map(service).collect(), weighted: edges.is_weighted() }
    };
    types.iter().enumerate().map(of).collect()
}

fn seeds(batch: u64, count: u64) -> (Vec<u32>, Vec<i64>) {
    let key = Key::new(7).with(batch);
    let pair = |i: u64| (key.below(2 * i, count) as u32, key.below(2 * i + 1, 50) as i64 - 25);
    (0..40).map(pair).unzip()
}

fn assert_same(a: &MiniBatch, b: &MiniBatch) {
    assert_eq!((&a.input_nodes, &a.targets), (&b.input_nodes, &b.targets));
    for (a, b) in a.blocks.iter().zip(&b.blocks) {
        assert_eq!((a.indptr(), a.indices(), a.weights()), (b.indptr(), b.indices(), b.weights()));
        assert_eq!((a.ids(), a.degrees()), (b.ids(), b.degrees()));
    }
}

#[test]
fn parts_give_the_batches_of_the_whole_graph() {
    let dir = tempfile::tempdir().unwrap();
    for (number, (of_nodes, of_edges)) in
        [(true, true), (true, false), (false, true)].into_iter().enumerate()
    {
        let path = |name: &str| dir.path().join(format!("{name}-{number}"));
        let edges = ("_N:_E:_N", 2500, of_edges);
        let dataset = write(&path("graph"), &[("_N", 300, of_nodes)], &[edges]);
        let graph = SampleGraph::open(&dataset).unwrap();
        let parts = [PartLayout::EdgeCut, PartLayout::VertexCut]
            .map(|layout| cut(&dataset, &path(&layout.to_string()), layout));
        let parts = |layout| &parts[usize::from(layout == PartLayout::VertexCut)];
        let ways = WAYS.into_iter().flat_map(|(layout, exact)| draws(exact).map(|d| (layout, d)));
        for (layout, draw) in ways {
            let whole = TemporalSampler::new(&graph, &FANOUTS, draw).unwrap().with_seeds_at_end();
            let routes = Routes::of(parts(layout)).unwrap();
            let divided =
                TemporalPartsSampler::new(draw, &FANOUTS, routes, services(parts(layout)));
            let divided = divided.unwrap();
            let mut scratch = Scratch::new();
            for batch in 0..6 {
                let (nodes, times) = seeds(batch, 300);
                let key = Key::new(batch);
                let expected = whole.sample_as_of(&nodes, &times, key, &mut scratch).unwrap();
                let found = divided.sample_as_of(&nodes, &times, key, &mut scratch).unwrap();
                assert_same(&expected, &found);
                let expected = whole.sample(&nodes, key, &mut scratch).unwrap();
                let found = divided.sample(&nodes, key, &mut scratch).unwrap();
                assert_same(&expected, &found);
            }
        }
    }
}

#[test]
fn typed_parts_give_the_batches_of_the_whole_graph() {
    let dir = tempfile::tempdir().unwrap();
    let dataset = write(&dir.path().join("graph"), &NODES, &EDGES);
    let graph = HeteroSampleGraph::open(&dataset).unwrap().with_times_of(&dataset).unwrap();
    let fanouts = HeteroFanouts::new(&FANOUTS).with("item:near:item".parse().unwrap(), &[0, 2, 0]);
    let ways = WAYS.into_iter().flat_map(|(layout, exact)| draws(exact).map(|d| (layout, d)));
    for (way, (layout, draw)) in ways.enumerate() {
        let parts = cut(&dataset, &dir.path().join(format!("parts-{way}")), layout);
        let schema = Arc::new(parts.schema().unwrap());
        let number = |name: &str| schema.node_type(name).unwrap();
        let whole = HeteroTemporalSampler::new(&graph, &fanouts, draw).unwrap();
        let routes = schema.node_types().iter().map(|name| Routes::of_type(&parts, name).unwrap());
        let (routes, edges) = (routes.collect(), typed_services(&parts));
        let divided =
            HeteroTemporalPartsSampler::new(schema.clone(), (draw, &fanouts), routes, edges);
        let divided = divided.unwrap();
        let mut scratch = HeteroScratch::new();
        for batch in 0..6 {
            let (users, items) = (seeds(2 * batch, 200), seeds(2 * batch + 1, 80));
            let seeds =
                [(number("user"), &*users.0, &*users.1), (number("item"), &*items.0, &*items.1)];
            let expected = whole.sample_at(&seeds, Key::new(batch), &mut scratch).unwrap().batch;
            let found = divided.sample_at(&seeds, Key::new(batch), &mut scratch).unwrap();
            assert_same_types(&expected, &found);
        }
    }
}

fn assert_same_types(whole: &HeteroBatch, found: &HeteroBatch) {
    assert_eq!((&whole.ids, &whole.targets), (&found.ids, &found.targets));
    assert_eq!(whole.input_nodes, found.input_nodes);
    for (whole, found) in whole.blocks.iter().zip(&found.blocks) {
        assert_eq!((whole.num_dst(), whole.num_src()), (found.num_dst(), found.num_src()));
        for (whole, found) in whole.relations().iter().zip(found.relations()) {
            assert_eq!((whole.indptr(), whole.indices()), (found.indptr(), found.indices()));
            assert_eq!((whole.weights(), whole.degrees()), (found.weights(), found.degrees()));
        }
    }
}

/// Edges of equal times, which chance decides about, are drawn from every part of a list.
#[test]
fn numbers_of_edges_choose_evenly_and_no_later_than_the_seed() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = DatasetWriter::create(dir.path().join("star"), IdWidth::U32).unwrap();
    writer.add_node_type("_N", 41);
    let triple: Triple = "_N:_E:_N".parse().unwrap();
    let mut list = writer.edge_writer(&triple, Some((41, 41))).unwrap();
    let mut times = writer.edge_column::<i64>(&triple, "time", &[]).unwrap();
    for source in 1..=40 {
        list.push(&[source], &[0]).unwrap();
        // Ten are too late, ten earlier than the other twenty.
        times.push(&[[5, 7, 7, 9][source as usize % 4]]).unwrap();
    }
    let mut columns = list.finish().unwrap();
    columns.push(times.finish().unwrap());
    writer.add_edge_type(triple, columns);
    let dataset = writer.finish(Default::default()).unwrap();
    let parts = cut(&dataset, &dir.path().join("parts"), PartLayout::VertexCut);
    let time = |source: u32| [5, 7, 7, 9][source as usize % 4];
    for rule in RULES {
        let routes = Routes::of(&parts).unwrap();
        let sampler = TemporalPartsSampler::new(rule.exact(), &[6], routes, services(&parts));
        let (sampler, mut scratch) = (sampler.unwrap(), Scratch::new());
        let (mut drawn, epochs) = (vec![0; 41], 1500);
        for epoch in 0..epochs {
            let batch = sampler.sample_as_of(&[0], &[8], Key::new(epoch), &mut scratch).unwrap();
            assert_eq!(batch.blocks[0].num_edges(), 6);
            batch.input_nodes[1..].iter().for_each(|&source| drawn[source as usize] += 1);
        }
        let allowed = |source: &u32| match rule {
            TemporalRule::Recent => time(*source) == 7,
            TemporalRule::Uniform => time(*source) <= 7,
        };
        let (among, never): (Vec<u32>, Vec<u32>) = (1..=40).partition(allowed);
        assert!(never.iter().all(|&source| drawn[source as usize] == 0), "{rule:?} {drawn:?}");
        let expected = 6.0 * epochs as f64 / among.len() as f64;
        let squares =
            among.iter().map(|&source| (drawn[source as usize] as f64 - expected).powi(2));
        // Draws without replacement vary less than independent ones.
        let chi = squares.sum::<f64>() / expected;
        assert!(chi < 2.0 * among.len() as f64, "{rule:?}: {chi} {drawn:?}");
    }
}

#[test]
fn shares_are_drawn_from_by_numbers_of_edges_only() {
    let dir = tempfile::tempdir().unwrap();
    let nodes = [("_N", 300, true)];
    let dataset = write(&dir.path().join("graph"), &nodes, &[("_N:_E:_N", 2500, true)]);
    let parts = cut(&dataset, &dir.path().join("parts"), PartLayout::VertexCut);
    let routes = Routes::of(&parts).unwrap();
    let refused =
        TemporalPartsSampler::new(TemporalRule::Recent, &FANOUTS, routes, services(&parts));
    let text = format!("{:?}", refused.map(|_| ()).unwrap_err());
    assert!(text.contains("whole lists") && text.contains("'exact'"), "{text}");
    let as_of = Some(AsOf { times: vec![0], rule: TemporalRule::Recent });
    let request = HopRequest { as_of, ..HopRequest::new(vec![1], 2, Rule::Uniform, Key::new(1)) };
    let text = format!("{:?}", LocalPart::open(&parts, 0).unwrap().draw(&request).unwrap_err());
    assert!(text.contains("has shares") && text.contains("'exact'"), "{text}");
}

/// Partitions written before parts had them.
#[test]
fn missing_times_of_nodes_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let nodes = [("_N", 300, true)];
    let dataset = write(&dir.path().join("graph"), &nodes, &[("_N:_E:_N", 2500, true)]);
    let parts = cut(&dataset, &dir.path().join("parts"), PartLayout::VertexCut);
    let manifest = parts.dir().join("part-0/topology/part.json");
    let mut text: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&manifest).unwrap()).unwrap();
    text["columns"].as_array_mut().unwrap().retain(|column| column["name"] != "time");
    std::fs::write(&manifest, text.to_string()).unwrap();
    let as_of = Some(AsOf { times: vec![0], rule: TemporalRule::Recent });
    let request = HopRequest { as_of, ..HopRequest::new(vec![1], 2, Rule::Exact, Key::new(1)) };
    let text = format!("{:?}", LocalPart::open(&parts, 0).unwrap().draw(&request).unwrap_err());
    assert!(
        text.contains("lacks the times") && text.contains("partition the graph again"),
        "{text}"
    );
    assert!(LocalPart::open(&parts, 1).unwrap().draw(&request).is_ok());
}

#[test]
fn requests_that_do_not_fit_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let dataset =
        write(&dir.path().join("graph"), &[("_N", 300, true)], &[("_N:_E:_N", 2500, true)]);
    let parts = cut(&dataset, &dir.path().join("parts"), PartLayout::EdgeCut);
    let routes = Routes::of(&parts).unwrap();
    let owner = routes.owner(1);
    let request = |times: &[i64]| HopRequest {
        as_of: Some(AsOf { times: times.to_vec(), rule: TemporalRule::Uniform }),
        ..HopRequest::new(vec![1], 2, Rule::Exact, Key::new(1))
    };
    let draw = |part: usize, times: &[i64]| {
        let found = LocalPart::open(&parts, part).unwrap().draw(&request(times));
        found.map(|_| ()).map_err(|e| format!("{e:?}"))
    };
    assert_eq!(draw(owner, &[3]), Ok(()));
    assert!(draw(owner, &[]).unwrap_err().contains("0 times of 1 nodes"));
    assert!(draw((owner + 1) % PARTS, &[3]).unwrap_err().contains("belongs to another part"));
}
