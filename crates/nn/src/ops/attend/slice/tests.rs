//! Slices against operations on a tape.

use std::sync::Arc;

use gnarl_graph::blocks::NodeInfo;

use super::*;
use crate::{EdgeAttention, Mode, Params, ParamsBuilder, Tape};

const NODES: usize = 40;
const HEADS: usize = 3;
const WIDTH: usize = 5;

/// A graph with lists that are empty, that name a node twice, with loops, and one that is long.
fn block() -> Block {
    let mut lists: Vec<Vec<u32>> = (0..NODES as u64)
        .map(|d| {
            let key = Key::new(3).with(d);
            (0..d % 7).map(|i| key.below(i, NODES as u64) as u32).collect()
        })
        .collect();
    lists[9] = vec![4, 4, 9];
    lists[20] = (0..NODES as u32).chain(0..NODES as u32).chain([20]).collect();
    let mut indptr = vec![0];
    lists.iter().for_each(|list| indptr.push(indptr[indptr.len() - 1] + list.len() as u32));
    let ids = (0..NODES as u64).map(|v| 7 * v).collect();
    let nodes = Arc::new(NodeInfo { ids, degrees: vec![0; NODES] });
    Block::new(NODES, indptr, lists.concat(), None, nodes)
}

fn values(rows: usize, cols: usize, seed: u64) -> Tensor {
    let values = (0..(rows * cols) as u64).map(|i| 2.0 * Key::new(seed).normal(i) as f32);
    Tensor::from_vec(rows, cols, values.collect())
}

/// Some columns of all rows.
fn some(of: &Tensor, columns: &[Range<usize>]) -> Tensor {
    let row = |v: usize| columns.iter().flat_map(move |c| of.row(v)[c.clone()].to_vec());
    let values: Vec<f32> = (0..of.rows()).flat_map(row).collect();
    Tensor::from_vec(of.rows(), values.len() / of.rows(), values)
}

/// Sums and gradients of the messages, the scores of sources and those of destinations by operations on a tape.
fn on_tape(
    params: &Params,
    block: &Block,
    attention: Attention,
    mode: Mode,
    [z, source, destination, grad]: &[Tensor; 4],
) -> [Tensor; 4] {
    let looped = if attention.self_loops { block.with_self_loops() } else { block };
    let mut tape = Tape::new(params, mode);
    let [z, source, destination] = [z, source, destination].map(|t| tape.leaf(t.clone()));
    let constants = EdgeAttention { slope: attention.slope, dropout: attention.dropout };
    let sums = tape.attend(looped, z, (source, destination), constants);
    let found = tape.value(sums).clone();
    tape.backward_from(vec![(sums, grad.clone())], &mut []).unwrap();
    let [z, source, destination] = [z, source, destination].map(|v| tape.grad(v).unwrap().clone());
    [found, z, source, destination]
}

#[test]
fn slices_together_are_the_whole() {
    let block = block();
    let params = ParamsBuilder::new(Key::new(0)).build();
    let cols = HEADS * WIDTH;
    let given = [
        values(NODES, cols, 1),
        values(NODES, HEADS, 2),
        values(NODES, HEADS, 3),
        values(NODES, cols, 4),
    ];
    for (self_loops, dropout) in [(true, 0.0), (false, 0.0), (true, 0.4)] {
        let attention = Attention { heads: HEADS, width: WIDTH, slope: 0.2, self_loops, dropout };
        let mode = Mode::train(Key::new(8));
        let expected = on_tape(&params, &block, attention, mode, &given);
        for cuts in [vec![0, cols], vec![0, 4, 4, 11, cols], (0..=cols).collect()] {
            let mut found = expected.clone().map(|t| Tensor::zeros(t.rows(), t.cols()));
            let mut add = |to: usize, v: usize, first: usize, values: &[f32]| {
                let cols = found[to].cols();
                let out = &mut found[to].data_mut()[v * cols + first..];
                out.iter_mut().zip(values).for_each(|(o, v)| *o += v);
            };
            for cut in cuts.windows(2) {
                let columns = cut[0]..cut[1];
                let slice = AttentionSlice::new(&block, attention, columns.clone(), mode.key(1));
                let heads = heads_in(&columns, WIDTH);
                let scores = |of| some(of, std::slice::from_ref(&heads));
                let parts = [
                    some(&given[0], std::slice::from_ref(&columns)),
                    scores(&given[1]),
                    scores(&given[2]),
                ];
                let row = |v: usize| parts.iter().flat_map(move |part| part.row(v).to_vec());
                let rows = (0..NODES).flat_map(row).collect();
                let width = slice.cols();
                let attended = slice.attend(Tensor::from_vec(NODES, width, rows));
                // Some destinations at a time.
                for some in [0..13, 13..NODES] {
                    let mut out = vec![f32::NAN; some.len() * columns.len()];
                    attended.sums(some.start, &mut out);
                    for v in some.clone() {
                        let at = (v - some.start) * columns.len();
                        add(0, v, columns.start, &out[at..at + columns.len()]);
                    }
                }
                let backward = attended.backward(some(&given[3], std::slice::from_ref(&columns)));
                for some in [0..21, 21..NODES] {
                    let mut out = vec![f32::NAN; some.len() * width];
                    backward.gradients(some.start, &mut out);
                    for v in some.clone() {
                        let row = &out[(v - some.start) * width..][..width];
                        let (z, scores) = row.split_at(columns.len());
                        let (source, destination) = scores.split_at(heads.len());
                        add(1, v, columns.start, z);
                        add(2, v, heads.start, source);
                        add(3, v, heads.start, destination);
                    }
                }
            }
            for (i, (found, expected)) in found.iter().zip(&expected).enumerate() {
                for (at, (a, b)) in found.data().iter().zip(expected.data()).enumerate() {
                    let bound = 2e-5 * (1.0 + b.abs());
                    assert!((a - b).abs() < bound, "{cuts:?} {dropout}: {i}, {at}: {a} {b}");
                }
            }
        }
    }
}
