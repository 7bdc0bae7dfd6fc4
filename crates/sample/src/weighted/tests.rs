//! The scan with early rejection against one that computes all waiting times.

use gnarl_graph::Csc;
use half::f16;

use super::*;
use crate::bottom_k::Numbered;
use crate::neighbors::Choose;
use crate::{SampleGraph, Scratch};

#[test]
fn waiting_times_are_logarithms() {
    for number in (0..u32::MAX - 99_991).step_by(99_991).chain([0, 1, u32::MAX - 1, u32::MAX]) {
        let u = (f64::from(number) + 0.5) / 4_294_967_296.0;
        let (found, expected) = (waiting_time(number, 3.0), -u.ln() / 3.0);
        assert!((f64::from(found) / expected - 1.0).abs() < 1e-6, "{number}: {found}");
        assert!(f64::from(least_2_24(number)) / 16_777_216.0 <= -u.ln(), "{number}");
    }
}

#[test]
fn useless_weights_wait_for_ever() {
    for weight in [0.0, -0.0, -1.0, f32::NAN, f32::NEG_INFINITY] {
        assert_eq!(waiting_time(5, weight), f32::INFINITY);
    }
}

/// Distributions of weights.
const KINDS: [fn(Key) -> f32; 8] = [
    |key| key.unit(0) as f32,
    // Few edges have all the weight.
    |key| key.unit(0).powi(-3) as f32,
    // Most waiting times are infinite, in all possible ways.
    |key| match key.below(0, 12) {
        0 => key.unit(1) as f32,
        1 => f32::NAN,
        2 => -1.0,
        3 => f32::NEG_INFINITY,
        4 => -0.0,
        _ => 0.0,
    },
    // Some waiting times are 0, and tie.
    |key| if key.below(0, 9) == 0 { f32::INFINITY } else { 1.0 },
    // Times too small for a normal number, many of them 0 or equal.
    |key| if key.below(0, 2) == 0 { f32::MAX } else { 1e36 },
    // Times too large, and close to it.
    |key| if key.below(0, 2) == 0 { f32::from_bits(1) } else { 1e-37 },
    |_| 0.0,
    |key| f32::from_bits(key.u64(0) as u32),
];

/// A graph of one list: sources that repeat now and then, and their weights.
fn list(degree: u64, kind: fn(Key) -> f32, key: Key) -> SampleGraph {
    let sources = (0..degree).map(|i| i + key.with(0).below(i, 2));
    let edges: Vec<_> = sources.map(|source| (source as u32, 0)).collect();
    let weights: Vec<f32> = (0..degree).map(|i| kind(key.with(1).with(i))).collect();
    let graph = SampleGraph::new(Csc::from_edges(degree as usize + 1, &edges)).unwrap();
    graph.with_weights(weights.into()).unwrap()
}

/// The list with weights in rows of another order.
fn shuffled(graph: &SampleGraph, key: Key) -> SampleGraph {
    let mut rows: Vec<u64> = (0..graph.num_edges() as u64).collect();
    key.shuffle(&mut rows);
    let mut weights = vec![0.0; rows.len()];
    for (position, &row) in rows.iter().enumerate() {
        weights[row as usize] = graph.view().weights.unwrap().get(position);
    }
    let csc = Csc { edge: Some(rows.into()), ..graph.csc().clone() };
    SampleGraph::new(csc).unwrap().with_weights(weights.into()).unwrap()
}

/// The list with weights in half precision.
fn halved(graph: &SampleGraph) -> SampleGraph {
    let weights = graph.view().weights.unwrap();
    let half = (0..graph.num_edges()).map(|edge| f16::from_f32(weights.get(edge)));
    SampleGraph::new(graph.csc().clone())
        .unwrap()
        .with_weights(half.collect::<Vec<_>>().into())
        .unwrap()
}

/// The smallest by a sort of all times, equal ones in the order of the list.
fn sorted(graph: &SampleGraph, key: Key, wanted: usize) -> Vec<(u32, u32)> {
    let (view, list) = (graph.view(), graph.view().list(0).unwrap());
    let hash = Hash::new(key.with(0));
    let mut times = Vec::new();
    for from in (0..list.1 as usize).step_by(LANES) {
        let mut hashes = [0; LANES];
        hash.all_edges(view, list, from, &mut hashes);
        let left = LANES.min(list.1 as usize - from);
        for (i, &number) in hashes[..left].iter().enumerate() {
            let weight = view.weights.unwrap().get(from + i);
            times.push((waiting_time(number, weight).to_bits(), (from + i) as u32));
        }
    }
    times.sort_unstable();
    times.truncate(wanted);
    times.sort_unstable_by_key(|&(_, position)| position);
    times
}

#[test]
fn what_is_left_out_is_not_among_the_smallest() {
    for case in 0..2_000 {
        let key = Key::new(case);
        let degree = 2 + key.below(0, [40, 300, 5_000][case as usize % 3]);
        let kind = KINDS[key.below(1, KINDS.len() as u64) as usize];
        let wanted = 1 + key.below(2, degree.min(80) - 1) as usize;
        let graph = list(degree, kind, key.with(3));
        let graph = if case % 2 == 0 { graph } else { halved(&graph) };
        let expected = sorted(&graph, key, wanted);
        for graph in [&graph, &shuffled(&graph, key.with(4))] {
            let (view, mut positions) = (graph.view(), vec![0; wanted]);
            let list = view.list(0).unwrap();
            let mut chooser = Numbered::new(Weighted::chooser(view, key).unwrap());
            chooser.choose(view, 0, list, &mut Scratch::new(), &mut positions);
            chooser.chosen(view, 0, list, &positions);
            let found = chooser.numbers.iter().zip(&positions);
            let found: Vec<_> = found.map(|(&number, &position)| (number, position)).collect();
            assert_eq!(found, expected, "case {case}: {wanted} of {degree}");
        }
    }
}
