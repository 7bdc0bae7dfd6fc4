//! One suite over every way to choose negatives, and what each promises.

use std::collections::BTreeSet;
use std::sync::Arc;

use gnarl_common::IdMap;
use gnarl_common::rng::Key;
use gnarl_graph::triples::{FilteredSet, Side, Triples};
use gnarl_sample::negatives::*;

const NODES: u32 = 40;
const COUNT: usize = 12;

/// 90 edges of three relations.
fn edges() -> Triples {
    let key = Key::new(3);
    let mut edges = Triples::default();
    for i in 0..90 {
        let node = |word: u64| key.with(word).below(i, NODES.into()) as u32;
        edges.push(node(0), key.with(1).below(i, 3) as u32, node(2));
    }
    edges
}

/// The part of each node.
fn owner() -> Arc<IdMap> {
    let parts: Vec<u32> = (0..NODES).map(|node| node % 3).collect();
    Arc::new(IdMap::new(3, &parts).unwrap())
}

fn degrees(edges: &Triples) -> Vec<u32> {
    let mut degrees = vec![0; NODES as usize];
    edges.heads.iter().chain(&edges.tails).for_each(|&node| degrees[node as usize] += 1);
    degrees
}

/// The endpoints of each relation, some edges at a time.
fn typed(edges: &Triples) -> Typed {
    let mut ends = EndsByRelation::default();
    for start in (0..edges.len() as u32).step_by(7) {
        let some: Vec<u32> = (start..edges.len().min(start as usize + 7) as u32).collect();
        ends.add(&edges.at(&some));
    }
    Typed::new(ends, COUNT)
}

/// A table of candidates with a row for each edge.
fn table(edges: &Triples, word: u64) -> Vec<u32> {
    let key = Key::new(5).with(word);
    (0..(edges.len() * COUNT) as u64).map(|i| key.below(i, NODES.into()) as u32).collect()
}

fn samplers() -> Vec<Box<dyn NegativeSampler>> {
    let edges = edges();
    let tables = [table(&edges, 0), table(&edges, 1)];
    vec![
        Box::new(Uniform::new(NODES, COUNT)),
        Box::new(Joint::new(NODES, COUNT)),
        Box::new(InBatch),
        Box::new(Local::new(owner(), COUNT)),
        Box::new(ByDegree::new(&degrees(&edges), 0.75, COUNT)),
        Box::new(typed(&edges)),
        Box::new(All::new(NODES)),
        Box::new(FromFile::new(tables, edges.len(), COUNT, NODES).unwrap()),
    ]
}

/// A batch of the first edges, and what is drawn for a share of it.
fn draw(
    sampler: &dyn NegativeSampler,
    share: std::ops::Range<usize>,
    side: Side,
    key: Key,
) -> Drawn {
    let places: Vec<u32> = (0..30).map(|i| (7 * i) % 90).collect();
    let triples = edges().at(&places);
    sampler.draw(&Positives { triples: &triples, places: &places, times: &[], share }, side, key)
}

/// The candidates of each edge, those masked left out.
fn counted(drawn: &Drawn) -> Vec<Vec<u32>> {
    let masked: BTreeSet<[u32; 2]> = drawn.masked.iter().copied().collect();
    let of = |edge: usize| {
        let all = drawn.of(edge).iter().enumerate();
        let kept = all.filter(|(column, _)| !masked.contains(&[edge as u32, *column as u32]));
        kept.map(|(_, &id)| id).collect()
    };
    (0..drawn.groups.len()).map(of).collect()
}

#[test]
fn what_an_edge_meets_does_not_depend_on_the_share() {
    for sampler in samplers() {
        for side in Side::BOTH {
            let whole = counted(&draw(sampler.as_ref(), 0..30, side, Key::new(1)));
            let shares = [0..11, 11..11, 11..29, 29..30];
            let parts =
                shares.map(|share| counted(&draw(sampler.as_ref(), share, side, Key::new(1))));
            assert_eq!(parts.concat(), whole, "{}", sampler.name());
        }
    }
}

#[test]
fn candidates_are_nodes_and_right_ends_are_masked() {
    for sampler in samplers() {
        for side in Side::BOTH {
            let drawn = draw(sampler.as_ref(), 0..30, side, Key::new(1));
            let places: Vec<u32> = (0..30).map(|i| (7 * i) % 90).collect();
            let triples = edges().at(&places);
            assert_eq!(drawn.groups.len(), 30, "{}", sampler.name());
            assert!(drawn.ids.iter().all(|&id| id < NODES), "{}", sampler.name());
            assert!(drawn.masked.is_sorted(), "{}", sampler.name());
            for (edge, kept) in counted(&drawn).iter().enumerate() {
                let right = triples.ends(side)[edge];
                assert!(!kept.contains(&right), "{}", sampler.name());
                let all = drawn.of(edge).iter().filter(|&&id| id != right).count();
                assert_eq!(kept.len(), all, "{}: nothing else is masked", sampler.name());
            }
        }
    }
}

#[test]
fn filtered_candidates_make_no_known_edge() {
    let known = Arc::new(FilteredSet::new(&[&edges()]));
    for inner in samplers() {
        let name = inner.name();
        let plain = counted(&draw(inner.as_ref(), 0..30, Side::Tail, Key::new(1)));
        let sampler = Filtered::new(inner, known.clone());
        let places: Vec<u32> = (0..30).map(|i| (7 * i) % 90).collect();
        let triples = edges().at(&places);
        let drawn = draw(&sampler, 0..30, Side::Tail, Key::new(1));
        let mut fewer = 0;
        for (edge, kept) in counted(&drawn).iter().enumerate() {
            let (head, relation) = (triples.heads[edge], triples.relations[edge]);
            let ends = known.ends(Side::Tail, head, relation);
            assert!(kept.iter().all(|id| !ends.contains(id)), "{name}");
            let expected: Vec<u32> =
                plain[edge].iter().copied().filter(|id| !ends.contains(id)).collect();
            assert_eq!(*kept, expected, "{name}");
            fewer += plain[edge].len() - kept.len();
        }
        assert!(fewer > 0 || name != "all", "{name}: something is filtered");
    }
}

#[test]
fn random_ones_differ_between_batches_and_sides() {
    for sampler in samplers() {
        let ids = |side, key| draw(sampler.as_ref(), 0..30, side, Key::new(key)).ids;
        let fixed = ["in-batch", "all", "file"].contains(&sampler.name());
        assert_eq!(ids(Side::Tail, 1) == ids(Side::Tail, 2), fixed, "{}", sampler.name());
        assert!(sampler.name() == "all" || ids(Side::Tail, 1) != ids(Side::Head, 1));
    }
}

#[test]
fn local_candidates_are_of_the_known_ends_part() {
    let sampler = Local::new(owner(), COUNT);
    let drawn = draw(&sampler, 0..30, Side::Head, Key::new(1));
    let tails = edges().at(&(0..30).map(|i| (7 * i) % 90).collect::<Vec<_>>()).tails;
    for (edge, tail) in tails.iter().enumerate() {
        assert!(drawn.of(edge).iter().all(|id| id % 3 == tail % 3));
    }
    assert_eq!(drawn.ids.len(), 3 * COUNT, "edges of a part share them");
}

#[test]
fn typed_candidates_are_seen_at_that_side_of_the_relation() {
    let all = edges();
    let drawn = draw(&typed(&all), 0..30, Side::Tail, Key::new(1));
    let relations = all.at(&(0..30).map(|i| (7 * i) % 90).collect::<Vec<_>>()).relations;
    for (edge, relation) in relations.iter().enumerate() {
        let seen: BTreeSet<u32> = (0..all.len())
            .filter(|&i| all.relations[i] == *relation)
            .map(|i| all.tails[i])
            .collect();
        assert!(drawn.of(edge).iter().all(|id| seen.contains(id)));
    }
}

#[test]
fn draws_by_degree_are_as_frequent_as_their_weights() {
    let degrees: Vec<u32> = vec![0, 1, 16, 81, 0, 16];
    let sampler = ByDegree::new(&degrees, 0.75, 100_000);
    let drawn = draw(&sampler, 0..1, Side::Tail, Key::new(2));
    let mut counts = [0f64; 6];
    drawn.ids.iter().for_each(|&id| counts[id as usize] += 1.0);
    assert_eq!((counts[0], counts[4]), (0.0, 0.0));
    let weights = [0.0, 1.0, 8.0, 27.0, 0.0, 8.0];
    let chi: f64 = (0..6)
        .filter(|&i| weights[i] > 0.0)
        .map(|i| {
            (counts[i] - 100_000.0 * weights[i] / 44.0).powi(2) / (100_000.0 * weights[i] / 44.0)
        })
        .sum();
    assert!(chi < 16.3, "chi-square {chi} exceeds the 0.1 % point of 3 degrees of freedom");
    let none = ByDegree::new(&[0, 0], 0.75, 50);
    assert!(draw(&none, 0..1, Side::Tail, Key::new(2)).ids.iter().all(|&id| id < 2));
}

#[test]
fn tables_that_do_not_fit_are_told() {
    let fails =
        |heads: Vec<u32>| FromFile::new([heads, vec![0; 6]], 3, 2, 5).err().unwrap().to_string();
    assert!(
        fails(vec![0; 5]).contains("candidates for heads: expected 2 for each of 3 edges, found 5")
    );
    assert!(fails(vec![0, 1, 2, 5, 0, 0]).contains("row 1: candidate 5 does not exist"));
}
