//! Sampling from parts: the same batches as from the whole graph, however it is cut.

use std::path::Path;
use std::sync::Arc;

use gnarl_common::npy::NpyWriter;
use gnarl_common::rng::Key;
use gnarl_common::{DType, Element, Kind, Result};
use gnarl_graph::blocks::MiniBatch;
use gnarl_graph::{Dataset, DatasetWriter, IdWidth, MANIFEST, Manifest, Triple, inspect};
use gnarl_partition::{PartLayout, PartitionConfig, PartitionedDataset, Parts, partition_dataset};
use gnarl_sample::parts::{
    Answer, HopReply, HopRequest, LocalPart, NeighborService, PartsSampler, Replica, Routes, Rule,
};
use gnarl_sample::{
    ExactSampler, LaborSampler, SampleGraph, Sampler, Scratch, UniformSampler, WeightedSampler,
};
use half::{bf16, f16};

const NODES: u64 = 600;
const FANOUTS: [i64; 3] = [4, -1, 3];

/// Hubs, self loops and isolated nodes; a random weight for each pair of ends.
fn edges() -> Vec<(u64, u64)> {
    let key = Key::new(21);
    let end = |c: u64| (0..3).map(|i| key.with(i).below(c, NODES - 20)).min().unwrap_or(0);
    let mut edges: Vec<_> = (0..6000).map(|e| (end(2 * e), end(2 * e + 1))).collect();
    edges.sort_unstable();
    edges
}

fn simple() -> Vec<(u64, u64)> {
    let mut edges = edges();
    edges.dedup();
    edges
}

fn write(out: &Path, edges: &[(u64, u64)]) -> Result<Dataset> {
    write_as(out, edges, |weight| weight)
}

/// Weights are stored as what `narrow` makes of them.
fn write_as<T: Element>(
    out: &Path,
    edges: &[(u64, u64)],
    narrow: impl Fn(f32) -> T,
) -> Result<Dataset> {
    let mut writer = DatasetWriter::create(out, IdWidth::U32)?;
    writer.add_node_type("_N", NODES);
    let mut list = writer.edge_writer(&Triple::plain(), None)?;
    let mut weights = writer.edge_column::<T>(&Triple::plain(), "weight", &[])?;
    for &(src, dst) in edges {
        list.push(&[src], &[dst])?;
        weights.push(&[narrow(Key::new(1).with(src).unit(dst) as f32)])?;
    }
    let mut columns = list.finish()?;
    columns.push(weights.finish()?);
    writer.add_edge_type(Triple::plain(), columns);
    writer.finish(Default::default())
}

fn cut(dataset: &Dataset, out: &Path, layout: PartLayout, algorithm: &str) -> PartitionedDataset {
    let (algorithm, parts) = (algorithm.into(), Parts::Count(4));
    let config = PartitionConfig { algorithm, parts, layout, ..Default::default() };
    partition_dataset(dataset, &config, out).unwrap().0
}

fn local(parts: &PartitionedDataset) -> Vec<LocalPart> {
    (0..parts.num_parts()).map(|p| LocalPart::open(parts, p).unwrap()).collect()
}

fn services(parts: &[LocalPart]) -> Vec<Arc<dyn NeighborService>> {
    parts.iter().map(|part| Arc::new(part.clone()) as Arc<dyn NeighborService>).collect()
}

fn sampler(graph: &SampleGraph, rule: Rule) -> Box<dyn Sampler> {
    match rule {
        Rule::Uniform => Box::new(UniformSampler::new(graph, &FANOUTS).unwrap()),
        Rule::Labor => Box::new(LaborSampler::new(graph, &FANOUTS).unwrap()),
        Rule::Exact => Box::new(ExactSampler::new(graph, &FANOUTS).unwrap()),
        Rule::Weighted => Box::new(WeightedSampler::new(graph, &FANOUTS).unwrap()),
    }
}

fn assert_same(what: &str, a: &MiniBatch, b: &MiniBatch) {
    assert_eq!(a.input_nodes, b.input_nodes, "{what}");
    assert_eq!(a.targets, b.targets, "{what}");
    for (a, b) in a.blocks.iter().zip(&b.blocks) {
        assert_eq!(a.indptr(), b.indptr(), "{what}");
        assert_eq!((a.indices(), a.weights()), (b.indices(), b.weights()), "{what}");
        assert_eq!((a.ids(), a.degrees()), (b.ids(), b.degrees()), "{what}");
    }
}

/// Compares an epoch of batches from the parts with those from the whole graph.
fn same_batches(dataset: &Dataset, parts: &PartitionedDataset, rules: &[Rule]) {
    let graph = SampleGraph::open(dataset).unwrap();
    let local = local(parts);
    let train: Vec<u32> = (0..NODES as u32).filter(|v| v % 3 == 0).collect();
    for &rule in rules {
        let whole = sampler(&graph, rule);
        let routes = Routes::of(parts).unwrap();
        let divided = PartsSampler::new(rule, &FANOUTS, routes, services(&local)).unwrap();
        let (key, mut scratch) = (Key::new(3).with(1), Scratch::new());
        for seeds in whole.epoch(&train, 50, key) {
            let expected = whole.sample(&seeds, key, &mut Scratch::new()).unwrap();
            let found = divided.sample(&seeds, key, &mut scratch).unwrap();
            let (layout, rule) = (parts.manifest().layout, rule.name());
            assert_same(&format!("{rule} of {layout} parts"), &expected, &found);
        }
    }
}

const ALL: [Rule; 4] = [Rule::Uniform, Rule::Labor, Rule::Exact, Rule::Weighted];

#[test]
fn weights_in_the_order_of_lists_are_those_of_the_rows() {
    let dir = tempfile::tempdir().unwrap();
    let dataset = write(&dir.path().join("whole"), &edges()).unwrap();
    let triple = Triple::plain();
    let csc = dataset.csc(&triple).unwrap();
    assert!(csc.edge.as_ref().unwrap().as_slice().range(0..csc.num_edges()).ne(0..6000));
    let rows = dataset.edge_column(&triple, "weight").unwrap().unwrap();
    let by_rows = SampleGraph::new(csc).unwrap();
    let by_rows = by_rows.with_weights(rows.values::<f32>().unwrap().into()).unwrap();
    let by_lists = SampleGraph::open(&dataset).unwrap();
    assert!(by_lists.num_bytes() < by_rows.num_bytes(), "rows are not read");
    let [a, b] = [by_rows, by_lists].map(|graph| {
        let sampler = WeightedSampler::new(&graph, &FANOUTS).unwrap();
        sampler.sample(&[3, 77, 401], Key::new(4), &mut Scratch::default()).unwrap()
    });
    assert_same("rows against lists", &a, &b);
}

#[test]
fn edge_cut_parts_give_the_batches_of_the_whole_graph() {
    let dir = tempfile::tempdir().unwrap();
    let dataset = write(&dir.path().join("graph"), &edges()).unwrap();
    for algorithm in ["knot", "random"] {
        let out = dir.path().join(algorithm);
        let parts = cut(&dataset, &out, PartLayout::EdgeCut, algorithm);
        same_batches(&dataset, &parts, &ALL);
    }
}

#[test]
fn vertex_cut_parts_give_the_batches_of_the_whole_graph() {
    let dir = tempfile::tempdir().unwrap();
    let dataset = write(&dir.path().join("graph"), &simple()).unwrap();
    for algorithm in ["adadne", "hdrf", "hash-2d"] {
        let out = dir.path().join(algorithm);
        let parts = cut(&dataset, &out, PartLayout::VertexCut, algorithm);
        same_batches(&dataset, &parts, &ALL[1..]);
    }
}

#[test]
fn equal_edges_in_one_part_are_drawn_as_in_the_whole_graph() {
    let dir = tempfile::tempdir().unwrap();
    let dataset = write(&dir.path().join("graph"), &edges()).unwrap();
    let parts = cut(&dataset, &dir.path().join("parts"), PartLayout::VertexCut, "dbh");
    same_batches(&dataset, &parts, &ALL[1..]);
}

/// Copies of the lists of `wanted`.
fn replica(parts: &PartitionedDataset, wanted: &[u32], bytes: u64) -> Replica {
    let (routes, services) = (Routes::of(parts).unwrap(), services(&local(parts)));
    let whole = PartsSampler::new(Rule::Exact, &[-1], routes, services).unwrap();
    Replica::read(&whole, wanted, bytes).unwrap()
}

#[test]
fn copied_lists_give_the_same_batches_and_spare_the_parts() {
    let dir = tempfile::tempdir().unwrap();
    let dataset = write(&dir.path().join("graph"), &simple()).unwrap();
    let graph = SampleGraph::open(&dataset).unwrap();
    let mut hubs: Vec<u32> = (0..NODES as u32).collect();
    hubs.sort_by_key(|&v| std::cmp::Reverse(graph.degree(v)));
    let edges = |of: &[u32]| of.iter().map(|&v| graph.degree(v) as usize).sum::<usize>();
    for (layout, algorithm, rules) in
        [(PartLayout::EdgeCut, "spring", &ALL[..]), (PartLayout::VertexCut, "adadne", &ALL[1..])]
    {
        let parts = cut(&dataset, &dir.path().join(layout.name()), layout, algorithm);
        let some = Arc::new(replica(&parts, &hubs[..40], 1 << 20));
        assert_eq!((some.nodes(), some.edges()), (40, edges(&hubs[..40])));
        let all = Arc::new(replica(&parts, &hubs, 1 << 20));
        assert_eq!((all.nodes(), all.edges()), (NODES as usize, graph.num_edges()));
        for &rule in rules {
            let local = local(&parts);
            let divided = || {
                let routes = Routes::of(&parts).unwrap();
                PartsSampler::new(rule, &FANOUTS, routes, services(&local)).unwrap()
            };
            let asked = || local.iter().map(|part| part.load().nodes).sum::<u64>();
            let seeds: Vec<u32> = (0..NODES as u32).step_by(7).collect();
            let whole = sampler(&graph, rule);
            let mut before = asked();
            let mut asked_more = || asked() - std::mem::replace(&mut before, asked());
            let what = format!("{} of {layout} parts", rule.name());
            let same = |sampler: &PartsSampler| {
                let key = Key::new(5);
                let expected = whole.sample(&seeds, key, &mut Scratch::new()).unwrap();
                let found = sampler.sample(&seeds, key, &mut Scratch::new()).unwrap();
                assert_same(&what, &expected, &found);
            };
            same(&divided());
            let everything = asked_more();
            let drawn = some.load().nodes;
            same(&divided().with_replica(some.clone()));
            let (fewer, drawn) = (asked_more(), some.load().nodes - drawn);
            assert!(drawn > 0 && fewer < everything, "{what}: {fewer} of {everything}");
            if layout == PartLayout::EdgeCut {
                assert_eq!(fewer + drawn, everything, "{what}");
            }
            same(&divided().with_replica(all.clone()));
            assert_eq!(asked_more(), 0, "{what}: nobody is asked");
        }
    }
}

#[test]
fn copies_stay_within_their_memory() {
    let dir = tempfile::tempdir().unwrap();
    let dataset = write(&dir.path().join("graph"), &simple()).unwrap();
    let parts = cut(&dataset, &dir.path().join("parts"), PartLayout::EdgeCut, "random");
    let wanted: Vec<u32> = (0..NODES as u32).rev().collect();
    let mut last = 0;
    for bytes in [0, 100, 2000, 20_000, 40_000, 1 << 20] {
        let copies = replica(&parts, &wanted, bytes);
        assert!(copies.bytes() <= bytes && copies.nodes() >= last, "{bytes}: {}", copies.nodes());
        assert!(copies.bytes() >= 8 * copies.edges() as u64, "an id and a weight for each edge");
        last = copies.nodes();
        let node = wanted[0];
        assert_eq!(copies.has(node), copies.nodes() > 0, "the most wanted comes first");
    }
    assert_eq!(last, NODES as usize);
    let few = replica(&parts, &wanted[..3], 1 << 20);
    let ask = |nodes: Vec<u64>| few.ask(HopRequest::new(nodes, 2, Rule::Exact, Key::new(1)))();
    assert_eq!(ask(vec![wanted[1].into()]).unwrap().asked_degrees.len(), 1);
    let error = ask(vec![wanted[3].into()]).unwrap_err().to_string();
    assert!(error.contains("is not replicated"), "{error}");
}

/// Draws are by the stored weights, and batches carry them, in whole graphs and all kinds of parts.
#[test]
fn weights_of_16_bits_are_drawn_by_and_carried_as_stored() {
    let dir = tempfile::tempdir().unwrap();
    let edges = simple();
    let half = write_as(&dir.path().join("f16"), &edges, f16::from_f32).unwrap();
    let brain = write_as(&dir.path().join("bf16"), &edges, bf16::from_f32).unwrap();
    let rounded = |weight| f16::from_f32(weight).to_f32();
    let same_as_half = write_as(&dir.path().join("f32"), &edges, rounded).unwrap();
    for (name, dataset) in [("f16", &half), ("bf16", &brain)] {
        for (layout, algorithm, rules) in
            [(PartLayout::EdgeCut, "random", &ALL[..]), (PartLayout::VertexCut, "dbh", &ALL[1..])]
        {
            let out = dir.path().join(format!("{name}-{algorithm}"));
            let parts = cut(dataset, &out, layout, algorithm);
            same_batches(dataset, &parts, rules);
            if name == "f16" {
                same_batches(&same_as_half, &parts, rules);
            }
        }
    }
}

#[test]
fn weights_of_other_types_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let dataset = write_as(&dir.path().join("g"), &simple(), f64::from).unwrap();
    let message = SampleGraph::open(&dataset).unwrap_err().to_string();
    assert!(message.contains("weight.npy: edge weights of type f64"), "{message}");
}

/// Rewrites offsets and rows of lists in 64 bits, as they were before they were narrowed.
fn widen(dataset: &Dataset) {
    let path = dataset.dir().join(MANIFEST);
    let mut manifest: Manifest =
        serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    let columns = manifest.edge_types.iter_mut().flat_map(|t| &mut t.columns);
    for spec in columns.filter(|c| matches!(&c.name[..], "csc.indptr" | "csc.edge")) {
        assert_eq!(spec.dtype, DType::U32);
        let values = dataset.edge_column(&Triple::plain(), &spec.name).unwrap().unwrap().ids();
        let mut writer = NpyWriter::<u64>::create(dataset.dir().join(&spec.file), &[]).unwrap();
        writer.push(&values.unwrap()).unwrap();
        (spec.shape, spec.crc32) = writer.finish().unwrap();
        spec.dtype = DType::U64;
    }
    std::fs::write(&path, serde_json::to_string(&manifest).unwrap()).unwrap();
}

#[test]
fn lists_of_64_bits_are_read_as_well() {
    let dir = tempfile::tempdir().unwrap();
    let narrow = write(&dir.path().join("narrow"), &simple()).unwrap();
    let wide = write(&dir.path().join("wide"), &simple()).unwrap();
    widen(&wide);
    let wide = Dataset::open(wide.dir()).unwrap();
    inspect::verify(&wide).unwrap();
    let [a, b] = [&narrow, &wide].map(|d| inspect::inspect(d).unwrap().edges);
    assert_eq!(a, b);
    for (layout, algorithm, rules) in [
        (PartLayout::EdgeCut, "knot", &ALL[..]),
        (PartLayout::EdgeCut, "ldg", &ALL[..]),
        (PartLayout::VertexCut, "adadne", &ALL[1..]),
    ] {
        let parts = cut(&wide, &dir.path().join(algorithm), layout, algorithm);
        same_batches(&narrow, &parts, rules);
        for p in 0..parts.num_parts() {
            widen(&parts.part(p).unwrap());
        }
        same_batches(&wide, &parts, rules);
    }
}

#[test]
fn parts_count_what_they_do() {
    let dir = tempfile::tempdir().unwrap();
    let dataset = write(&dir.path().join("graph"), &simple()).unwrap();
    let parts = cut(&dataset, &dir.path().join("parts"), PartLayout::VertexCut, "adadne");
    let local = local(&parts);
    let routes = Routes::of(&parts).unwrap();
    let sampler = PartsSampler::new(Rule::Exact, &[5], routes, services(&local)).unwrap();
    let batch = sampler.sample(&[0, 1, 2], Key::new(1), &mut Scratch::new()).unwrap();
    let loads: Vec<_> = local.iter().map(LocalPart::load).collect();
    assert_eq!(batch.num_edges(), 15);
    let listed: u64 = loads.iter().map(|load| load.edges_listed).sum();
    let degrees: u32 = batch.blocks[0].degrees()[..3].iter().sum();
    assert_eq!(listed, u64::from(degrees), "every edge of a seed is in one part");
    assert!(loads.iter().all(|load| load.requests <= 1 && load.edges_sent <= 15));
}

/// Of a list that several parts share, each neighbor is drawn as often as any other, the fan-out of them on average, and
/// parts send far fewer edges than by bottom-k.
#[test]
fn shares_of_a_vertex_cut_draw_evenly_and_send_less() {
    let dir = tempfile::tempdir().unwrap();
    let dataset = write(&dir.path().join("graph"), &simple()).unwrap();
    let parts = cut(&dataset, &dir.path().join("parts"), PartLayout::VertexCut, "dbh");
    let graph = SampleGraph::open(&dataset).unwrap();
    let hub = (0..NODES as u32).max_by_key(|&node| graph.degree(node)).unwrap();
    let degree = graph.degree(hub) as f64;
    let (fanout, draws) = (7, 20_000);
    assert!(degree > 40.0);
    let sent = |rule: Rule, check: &mut dyn FnMut(&[u32])| {
        let local = local(&parts);
        let holders = local.iter().filter(|part| {
            let all = HopRequest::new(vec![hub.into()], u32::MAX, Rule::Exact, Key::new(0));
            !part.draw(&all).unwrap().indices.is_empty()
        });
        assert!(holders.count() > 2, "the hub's list is shared");
        let before: u64 = local.iter().map(|part| part.load().edges_sent).sum();
        let routes = Routes::of(&parts).unwrap();
        let sampler = PartsSampler::new(rule, &[fanout], routes, services(&local)).unwrap();
        let mut scratch = Scratch::new();
        for draw in 0..draws {
            let batch = sampler.sample(&[hub], Key::new(draw), &mut scratch).unwrap();
            let again = sampler.sample(&[hub], Key::new(draw), &mut Scratch::new()).unwrap();
            assert_eq!(batch.input_nodes, again.input_nodes, "a function of the key");
            let block = &batch.blocks[0];
            assert_eq!(block.degrees()[0] as f64, degree);
            let heard = block.sources(0).iter().map(|&at| batch.input_nodes[at as usize]);
            check(&heard.collect::<Vec<_>>());
        }
        local.iter().map(|part| part.load().edges_sent).sum::<u64>() - before
    };
    let mut times = vec![0u32; NODES as usize];
    let mut total = 0;
    let by_share = sent(Rule::Uniform, &mut |heard| {
        assert!(heard.is_sorted() && heard.windows(2).all(|pair| pair[0] != pair[1]));
        total += heard.len();
        heard.iter().for_each(|&node| times[node as usize] += 1);
    });
    let mean = total as f64 / draws as f64;
    assert!((mean - fanout as f64).abs() < 0.05, "{mean}");
    let expected = draws as f64 * fanout as f64 / degree;
    let neighbors = graph.sources(hub).unwrap();
    // Deviations of a binomial law; five of them are exceeded once in a million times.
    let deviation = (expected * (1.0 - fanout as f64 / degree)).sqrt();
    for &node in neighbors {
        let off = (f64::from(times[node as usize]) - expected).abs();
        assert!(off < 5.0 * deviation, "{node}: {} of {expected}", times[node as usize]);
    }
    let by_numbers = sent(Rule::Exact, &mut |heard| assert_eq!(heard.len() as i64, fanout));
    assert!(by_numbers as f64 > 1.8 * by_share as f64, "{by_numbers} {by_share}");
}

#[test]
fn nodes_within_the_fan_out_have_all_neighbors_from_their_shares() {
    let dir = tempfile::tempdir().unwrap();
    let dataset = write(&dir.path().join("graph"), &edges()).unwrap();
    let parts = cut(&dataset, &dir.path().join("parts"), PartLayout::VertexCut, "adadne");
    let graph = SampleGraph::open(&dataset).unwrap();
    let local = local(&parts);
    let routes = Routes::of(&parts).unwrap();
    let sampler = PartsSampler::new(Rule::Uniform, &[8], routes, services(&local)).unwrap();
    let few = (0..NODES as u32).filter(|&node| graph.degree(node) <= 8);
    for seed in few {
        let batch = sampler.sample(&[seed], Key::new(3), &mut Scratch::new()).unwrap();
        let block = &batch.blocks[0];
        let heard = block.sources(0).iter().map(|&at| batch.input_nodes[at as usize]);
        assert_eq!(heard.collect::<Vec<_>>(), graph.sources(seed).unwrap());
    }
}

#[test]
fn what_cannot_be_sampled_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let dataset = write(&dir.path().join("graph"), &simple()).unwrap();
    let owned = cut(&dataset, &dir.path().join("owned"), PartLayout::EdgeCut, "random");
    let make = |rule, parts, services| {
        PartsSampler::new(rule, &FANOUTS, Routes::of(parts).unwrap(), services).map(drop)
    };
    let error = make(Rule::Exact, &owned, services(&local(&owned)[1..])).unwrap_err();
    assert!(error.to_string().contains("expected 4 services, one per part; found 3"), "{error}");

    let request = |nodes: Vec<u64>, rule| {
        let (fanout, key) = (2, Key::new(1));
        LocalPart::open(&owned, 0).unwrap().draw(&HopRequest::new(nodes, fanout, rule, key))
    };
    let assignment = owned.assignment("_N").unwrap();
    let at = |part: u32| assignment.iter().position(|&p| p == part).unwrap() as u64;
    for (nodes, text) in [
        (vec![at(1)], "belongs to another part"),
        (vec![NODES], "belongs to another part"),
        (vec![at(0), at(0)], "duplicate node"),
    ] {
        let error = request(nodes, Rule::Exact).unwrap_err();
        assert!(error.to_string().contains(text), "{error}");
        assert!(format!("{error:?}").contains("part 0"), "{error:?}");
    }

    /// Answers whatever it is made of.
    struct Wrong(HopReply);
    impl NeighborService for Wrong {
        fn ask(&self, _: HopRequest) -> Answer {
            let reply = self.0.clone();
            Box::new(move || Ok(reply))
        }
    }
    let good = || request(vec![at(0)], Rule::Exact).unwrap();
    let edge = |change: &dyn Fn(&mut HopReply)| {
        let mut reply = good();
        change(&mut reply);
        let wrong: Vec<Arc<dyn NeighborService>> =
            (0..4).map(|_| Arc::new(Wrong(reply.clone())) as Arc<dyn NeighborService>).collect();
        let routes = Routes::of(&owned).unwrap();
        let sampler = PartsSampler::new(Rule::Exact, &[2], routes, wrong).unwrap();
        sampler.sample(&[at(0) as u32], Key::new(1), &mut Scratch::new())
    };
    edge(&|_| ()).unwrap();
    let changes: [&dyn Fn(&mut HopReply); 6] = [
        &|reply| reply.indptr.push(0),
        &|reply| reply.indptr[1] = 7,
        &|reply| reply.indices[0] = 99,
        &|reply| reply.nodes[0] = NODES,
        &|reply| reply.degrees = Some(Vec::new()),
        &|reply| reply.weights = Some(vec![]),
    ];
    for change in changes {
        assert_eq!(edge(change).unwrap_err().kind(), Kind::InvalidInput);
    }
}

#[test]
fn concurrent_requests_get_the_same_answers() {
    let dir = tempfile::tempdir().unwrap();
    let dataset = write(&dir.path().join("graph"), &simple()).unwrap();
    let parts = cut(&dataset, &dir.path().join("parts"), PartLayout::EdgeCut, "random");
    let part = LocalPart::open(&parts, 2).unwrap();
    let assignment = parts.assignment("_N").unwrap();
    let nodes: Vec<u64> = (0..NODES).filter(|&v| assignment[v as usize] == 2).collect();
    let draw = |seed| {
        let (nodes, key) = (nodes.clone(), Key::new(seed));
        part.draw(&HopRequest::new(nodes, 3, Rule::Weighted, key)).unwrap()
    };
    let expected: Vec<_> = (0..20).map(draw).collect();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..20).for_each(|i| assert_eq!(draw(i), expected[i as usize])));
        }
    });
}
