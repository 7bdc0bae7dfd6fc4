//! Passes row by row and back are passes as a whole, with edge weights and without.

use std::sync::Arc;

use gnarl_common::rng::Key;
use gnarl_graph::blocks::{Block, NodeInfo};
use gnarl_nn::ops::pass::{Operator, Passing};
use gnarl_nn::{Mode, ParamsBuilder, Tape, Tensor};

const NODES: usize = 600;
const COLS: usize = 3;

/// A square block; half of the destinations have twice as many edges in the whole graph.
fn block(weighted: bool, both_ways: bool) -> Block {
    let key = Key::new(7);
    let mut edges: Vec<(u32, u32)> = (0..2000u64)
        .map(|e| (key.below(2 * e, NODES as u64) as u32, key.below(2 * e + 1, NODES as u64) as u32))
        .flat_map(|(d, s)| if both_ways { vec![(d, s), (s, d)] } else { vec![(d, s)] })
        .collect();
    edges.sort_unstable();
    let indptr: Vec<u32> =
        (0..=NODES as u32).map(|d| edges.partition_point(|&(to, _)| to < d) as u32).collect();
    let degrees = indptr.windows(2).enumerate();
    let degrees =
        degrees.map(|(d, w)| (w[1] - w[0]) * if both_ways { 1 } else { 1 + d as u32 % 2 });
    let info = NodeInfo { ids: (0..NODES as u64).collect(), degrees: degrees.collect() };
    let weights =
        weighted.then(|| (0..edges.len() as u64).map(|e| key.normal(e).abs() as f32).collect());
    let indices: Vec<u32> = edges.iter().map(|&(_, s)| s).collect();
    Block::new(NODES, indptr, indices, weights, Arc::new(info)).with_symmetry()
}

fn values(word: u64) -> Tensor {
    let key = Key::new(word);
    let all = (0..(NODES * COLS) as u64).map(|i| key.normal(i) as f32);
    Tensor::from_vec(NODES, COLS, all.collect())
}

#[test]
fn rows_of_a_pass_are_those_of_the_whole() {
    let params = ParamsBuilder::new(Key::new(0)).build();
    for (weighted, both_ways) in [(false, false), (true, false), (false, true), (true, true)] {
        let block = block(weighted, both_ways);
        for operator in [Operator::Gcn, Operator::Sum, Operator::Mean] {
            let (passing, x, grad) = (Passing::new(operator, &block), values(1), values(2));
            let passing = Arc::new(passing);
            let mut tape = Tape::new(&params, Mode::train(Key::new(0)));
            let leaf = tape.leaf(x.clone());
            let y = tape.pass(&passing, leaf);
            let whole = tape.value(y).clone();
            tape.backward_from([(y, grad.clone())], &mut []).unwrap();
            let to_x = tape.grad(leaf).unwrap();
            for first in [0, 250, 599] {
                let mut out = vec![0.0; (NODES - first) * COLS];
                passing.forward(x.data(), COLS, first, &mut out);
                assert_eq!(out, whole.data()[first * COLS..], "{operator:?} from {first}");
                passing.backward(grad.data(), COLS, first, &mut out);
                assert_eq!(out, to_x.data()[first * COLS..], "{operator:?} back from {first}");
            }
            // <P x, g> = <x, Pᵀ g>, in whatever lists the way back is.
            let dot = |a: &Tensor, b: &Tensor| -> f64 {
                a.data().iter().zip(b.data()).map(|(a, b)| f64::from(a * b)).sum()
            };
            let (there, back) = (dot(&whole, &grad), dot(&x, to_x));
            assert!(
                (there - back).abs() < 1e-3 * (1.0 + there.abs()),
                "{operator:?}: {there} {back}"
            );
        }
    }
}
