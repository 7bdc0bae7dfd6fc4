//! Temporal sampling in heterogeneous graphs: nothing of the future over any edge type, and for one type what the sampler
//! without types gives.

use gnarl_common::rng::Key;
use gnarl_graph::{Csc, Dataset, DatasetWriter, IdWidth, Triple};
use gnarl_sample::{
    HeteroFanouts, HeteroSampleGraph, HeteroScratch, HeteroTemporalSampler, SampleGraph, Scratch,
    TemporalRule, TemporalSampler,
};
use proptest::prelude::*;

const RULES: [TemporalRule; 2] = [TemporalRule::Recent, TemporalRule::Uniform];
const USERS: u64 = 20;
const ITEMS: u64 = 12;
/// Edge types and whether their edges have times. Users have times, items have none.
const EDGES: [(&str, bool); 4] = [
    ("user:rates:item", true),
    ("user:owns:item", false),
    ("item:near:item", false),
    ("item:seen:user", true),
];

fn count(name: &str) -> u64 {
    if name == "user" { USERS } else { ITEMS }
}

fn user_time(user: u64) -> i64 {
    Key::new(4).below(user, 20) as i64 - 10
}

fn timed(dataset: &Dataset) -> HeteroSampleGraph {
    HeteroSampleGraph::open(dataset).unwrap().with_times_of(dataset).unwrap()
}

/// Times of an edge and of its source.
type Facts = (Option<i64>, Option<i64>);

/// Some edges of each type between random ends, at random times.
fn write(seed: u64, dir: &std::path::Path) -> Dataset {
    let mut writer = DatasetWriter::create(dir, IdWidth::U32).unwrap();
    for name in ["user", "item"] {
        writer.add_node_type(name, count(name));
    }
    let mut times = writer.node_column::<i64>("user", "time", &[]).unwrap();
    (0..USERS).for_each(|user| times.push(&[user_time(user)]).unwrap());
    let times = times.finish().unwrap();
    writer.node_type("user").unwrap().columns.push(times);
    for (number, (name, timed)) in (0..).zip(EDGES) {
        let triple: Triple = name.parse().unwrap();
        let key = Key::new(seed).with(number);
        let limits = (count(&triple.src), count(&triple.dst));
        let mut list = writer.edge_writer(&triple, Some(limits)).unwrap();
        let mut times = writer.edge_column::<i64>(&triple, "time", &[]).unwrap();
        for edge in 0..60 {
            let (src, dst) = (key.below(3 * edge, limits.0), key.below(3 * edge + 1, limits.1));
            list.push(&[src], &[dst]).unwrap();
            times.push(&[key.below(3 * edge + 2, 30) as i64 - 15]).unwrap();
        }
        let mut columns = list.finish().unwrap();
        let times = times.finish().unwrap();
        columns.extend(timed.then_some(times));
        writer.add_edge_type(triple, columns);
    }
    writer.finish(Default::default()).unwrap()
}

/// For each edge of the dataset of a type, its ends and times, in the order of rows.
fn facts(dataset: &Dataset, name: &str, timed: bool) -> Vec<(u32, u32, Facts)> {
    let triple: Triple = name.parse().unwrap();
    let ends = |side: &str| dataset.edge_column(&triple, side).unwrap().unwrap().ids().unwrap();
    let times = dataset.edge_column(&triple, "time").unwrap().map(|c| c.values::<i64>().unwrap());
    assert_eq!(times.is_some(), timed);
    let (src, dst) = (ends("src"), ends("dst"));
    let of_source = |src: u64| (triple.src == "user").then(|| user_time(src));
    let each = src.iter().zip(dst.iter()).enumerate();
    each.map(|(row, (&src, &dst))| {
        (src as u32, dst as u32, (times.as_ref().map(|times| times[row]), of_source(src)))
    })
    .collect()
}

proptest! {
    #[test]
    fn no_edge_is_later_than_its_seed(seed: u64, key: u64, times in prop::collection::vec(-20i64..20, 6)) {
        let dir = tempfile::tempdir().unwrap();
        let dataset = write(seed, &dir.path().join("graph"));
        let graph = timed(&dataset);
        let all: Vec<_> = EDGES.map(|(name, timed)| facts(&dataset, name, timed)).to_vec();
        let known = |(edge, source): Facts| edge.max(source).unwrap_or(i64::MIN);
        for rule in RULES {
            let fanouts = HeteroFanouts::new(&[2, -1, 3]);
            let sampler = HeteroTemporalSampler::new(&graph, &fanouts, rule).unwrap();
            let users: Vec<u32> = (0..times.len() as u32).collect();
            let seeds = [(0, &*users, &*times), (1, &*users, &*times)];
            let found = sampler.sample_at(&seeds, Key::new(key), &mut HeteroScratch::new()).unwrap();
            let (input, at) = (&found.batch.input_nodes, &found.times);
            for (block, edge_times) in found.batch.blocks.iter().zip(&found.edge_times) {
                for (edge_type, relation) in block.relations().iter().enumerate() {
                    let (src, dst) = graph.schema().ends(edge_type);
                    let number = EDGES.iter().position(|(name, _)| {
                        *name == graph.schema().edge_types()[edge_type].to_string()
                    }).unwrap();
                    for row in 0..relation.num_dst() {
                        let (node, time) = (input[dst][row], at[dst][row]);
                        let permitted = all[number].iter().filter(|(_, to, of)| *to == node && known(*of) <= time);
                        prop_assert_eq!(relation.degrees()[row] as usize, permitted.count());
                        let first = relation.indptr()[row] as usize;
                        for (edge, &source) in relation.sources(row).iter().enumerate() {
                            prop_assert!(edge_times[edge_type][first + edge] <= time);
                            prop_assert_eq!(at[src][source as usize], time, "a node is read at its seed's time");
                            let pair = (input[src][source as usize], node);
                            prop_assert!(all[number].iter().any(|(from, to, of)| (*from, *to) == pair
                                && known(*of) == edge_times[edge_type][first + edge]));
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn one_type_gives_what_the_sampler_without_types_gives() {
    let key = Key::new(3);
    let edges: Vec<(u32, u32)> =
        (0..400).map(|e| (key.below(2 * e, 50) as u32, key.below(2 * e + 1, 50) as u32)).collect();
    let times = |e: u64| key.with(1).below(e, 30) as i64;
    let dir = tempfile::tempdir().unwrap();
    let mut writer = DatasetWriter::create(dir.path().join("graph"), IdWidth::U32).unwrap();
    writer.add_node_type("_N", 50);
    let triple = Triple::plain();
    let mut list = writer.edge_writer(&triple, None).unwrap();
    let mut column = writer.edge_column::<i64>(&triple, "time", &[]).unwrap();
    for (row, &(src, dst)) in (0..).zip(&edges) {
        list.push(&[src.into()], &[dst.into()]).unwrap();
        column.push(&[times(row)]).unwrap();
    }
    let mut columns = list.finish().unwrap();
    columns.push(column.finish().unwrap());
    writer.add_edge_type(triple, columns);
    let dataset = writer.finish(Default::default()).unwrap();
    let plain = SampleGraph::open(&dataset).unwrap();
    let typed = timed(&dataset);
    for rule in RULES {
        let plain = TemporalSampler::new(&plain, &[3, 2], rule).unwrap();
        let fanouts = HeteroFanouts::new(&[3, 2]);
        let typed = HeteroTemporalSampler::new(&typed, &fanouts, rule).unwrap();
        let (seeds, at, key) = ([4, 9, 4, 30], [10, 20, 5, 40], Key::new(8));
        let expected = plain.sample_at(&seeds, &at, key, &mut Scratch::new()).unwrap();
        let seeds = [(0, &seeds[..], &at[..])];
        let found = typed.sample_at(&seeds, key, &mut HeteroScratch::new()).unwrap();
        assert_eq!(found.batch.input_nodes[0], expected.batch.input_nodes);
        assert_eq!(
            (&found.times[0], &found.batch.targets[0].1),
            (&expected.times, &expected.batch.targets)
        );
        for (found, expected) in found.batch.blocks.iter().zip(&expected.batch.blocks) {
            let found = &found.relations()[0];
            assert_eq!((found.indptr(), found.indices()), (expected.indptr(), expected.indices()));
            assert_eq!(found.degrees(), &expected.degrees()[..expected.num_dst()]);
        }
    }
}

#[test]
fn what_cannot_be_sampled_is_told() {
    let graph = HeteroSampleGraph::new().with_nodes("a", 3).unwrap();
    let lists = Csc::from_edges(3, &[(1, 0)]);
    let graph = graph.with_edges(&"a:b:a".parse().unwrap(), lists).unwrap();
    let fanouts = HeteroFanouts::new(&[2]);
    let error = HeteroTemporalSampler::new(&graph, &fanouts, TemporalRule::Recent).unwrap_err();
    assert!(error.to_string().contains("requires times of edges or nodes"), "{error}");
    let dir = tempfile::tempdir().unwrap();
    let dataset = write(1, &dir.path().join("graph"));
    let graph = timed(&dataset);
    let sampler = HeteroTemporalSampler::new(&graph, &fanouts, TemporalRule::Recent).unwrap();
    let mut scratch = HeteroScratch::new();
    let mut fails = |seeds: &[(usize, &[u32], &[i64])]| {
        sampler.sample_at(seeds, Key::new(0), &mut scratch).unwrap_err().to_string()
    };
    assert!(fails(&[(0, &[1], &[])]).contains("expected 1 times, one per seed; found 0"));
    assert!(fails(&[(0, &[1], &[2]), (0, &[1], &[2])]).contains("duplicate seeds of type 'user'"));
    assert!(fails(&[(1, &[12], &[2])]).contains("seed 12"));
}
