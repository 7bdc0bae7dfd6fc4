//! Attention as one operation against the operations it is made of.

use std::sync::Arc;

use gnarl_common::rng::Key;
use gnarl_graph::blocks::{Block, NodeInfo};
use gnarl_nn::{
    Activation, EdgeAttention, Gat, Init, Mode, ParamsBuilder, Precision, Tape, Tensor, Var,
};

use crate::common::{Case, Scene, endpoints, gat};

const DROPPED: f32 = 0.3;

/// A form of attention, given the scores of both endpoints.
type Form = for<'b> fn(&mut Tape<'b>, &'b Scene, Var) -> Var;

fn coefficients<'b>(tape: &mut Tape<'b>, scene: &'b Scene, x: Var) -> Var {
    let (source, destination) = endpoints(tape, scene, x);
    let scores = tape.sddmm_add(&scene.block, source, destination);
    let scores = tape.activation(scores, Activation::LeakyRelu(0.2));
    let attention = tape.edge_softmax(&scene.block, scores);
    tape.edge_dropout(&scene.block, attention, DROPPED)
}

fn constants() -> EdgeAttention {
    EdgeAttention { slope: 0.2, dropout: DROPPED }
}

/// A GAT layer from the projections of all sources.
fn gat_of_parts<'b>(tape: &mut Tape<'b>, scene: &'b Scene, x: Var) -> Var {
    let layer = gat(scene, DROPPED);
    let z = tape.linear(x, layer.weight, None, Activation::None);
    let source = tape.head_scores(z, layer.source);
    let own = tape.head_rows(z, scene.block.num_dst());
    let destination = tape.head_scores(own, layer.destination);
    let joined = tape.attend(&scene.block, z, (source, destination), constants());
    let bias = tape.param(layer.bias.expect("the layer has a bias"));
    let y = tape.add_row(joined, bias);
    tape.activation(y, Activation::Elu)
}

/// The forms, and what they are made of; the fourth one alone reads nothing that learns but parameters.
const BOTH: [(Form, Form); 5] = [
    (
        |t, s, x| {
            let endpoints = endpoints(t, s, x);
            t.attend(&s.block, x, endpoints, constants())
        },
        |t, s, x| {
            let weights = coefficients(t, s, x);
            t.spmm_weighted(&s.block, x, weights)
        },
    ),
    (
        |t, s, x| {
            let endpoints = endpoints(t, s, x);
            let rows = t.dense(s.leaf.clone());
            t.attend(&s.block, rows, endpoints, constants())
        },
        |t, s, x| {
            let weights = coefficients(t, s, x);
            let rows = t.dense(s.leaf.clone());
            t.spmm_weighted(&s.block, rows, weights)
        },
    ),
    (
        |t, s, x| t.gat(&s.block, x, gat(s, DROPPED), Activation::Elu),
        |t, s, x| gat_of_parts(t, s, x),
    ),
    (
        |t, s, _| {
            let rows = t.dense(s.leaf.clone());
            t.gat(&s.block, rows, gat(s, DROPPED), Activation::Elu)
        },
        |t, s, _| {
            let rows = t.dense(s.leaf.clone());
            gat_of_parts(t, s, rows)
        },
    ),
    (
        |t, s, x| {
            let own = t.head_rows(x, s.block.num_dst());
            t.attend_dynamic(&s.block, (x, own), s.id("attention"), constants())
        },
        |t, s, x| {
            let own = t.head_rows(x, s.block.num_dst());
            let sums = t.sddmm_add(&s.block, x, own);
            let sums = t.activation(sums, Activation::LeakyRelu(0.2));
            let scores = t.head_scores(sums, s.id("attention"));
            let attention = t.edge_softmax(&s.block, scores);
            let attention = t.edge_dropout(&s.block, attention, DROPPED);
            t.spmm_weighted(&s.block, x, attention)
        },
    ),
];

/// Forms of attention alone to the last bit, gradients included; layers and the dynamic form but for the order of sums.
#[test]
fn one_operation_gives_what_its_parts_give() {
    for (sources, destinations, columns) in [(700, 300, 6), (40, 40, 34)] {
        let scene = Scene::new(sources, destinations, columns, 8);
        for (form, (one, parts)) in BOTH.into_iter().enumerate() {
            let found = scene.gradients(one as Case);
            let expected = scene.gradients(parts as Case);
            let learnt = if form == 3 { &expected.1 } else { &expected.2 };
            assert!(learnt.iter().any(|&gradient| gradient != 0.0));
            if form < 2 {
                assert!(found == expected, "form {form}");
            } else {
                close(&[found.0], &[expected.0]);
                close(&found.1, &expected.1);
                close(&found.2, &expected.2);
            }
        }
    }
}

fn close(found: &[f32], expected: &[f32]) {
    within(found, expected, 2e-6);
}

/// A layer of five heads over lists of up to 90 edges: in one pass, from projections of all sources, in evaluation, and by
/// products of bf16.
#[test]
fn a_layer_of_many_heads_gives_what_its_parts_give() {
    const HEADS: usize = 5;
    const INPUT: usize = 35;
    const WIDTH: usize = 7;
    let key = Key::new(4);
    let mut builder = ParamsBuilder::new(key);
    let init = Init::XavierUniform;
    let layer = Gat {
        weight: builder.add("weight", INPUT, HEADS * WIDTH, init),
        source: builder.add("source", HEADS, WIDTH, init),
        destination: builder.add("destination", HEADS, WIDTH, init),
        bias: Some(builder.add("bias", 1, HEADS * WIDTH, init)),
        slope: 0.2,
        dropout: 0.0,
    };
    let params = builder.build();
    let (block, x) = long_lists(key, INPUT);
    let act = Activation::Elu;
    let attention = EdgeAttention { slope: 0.2, dropout: 0.0 };
    let of_parts = |tape: &mut Tape<'_>, x: Var| {
        let z = tape.linear(x, layer.weight, None, Activation::None);
        let source = tape.head_scores(z, layer.source);
        let own = tape.head_rows(z, DESTINATIONS);
        let destination = tape.head_scores(own, layer.destination);
        (z, (source, destination))
    };
    let train = Mode::train(Key::new(3));
    let bf16 = Mode::Train { key: Key::new(3), precision: Precision::Bf16 };
    let run = |mode: Mode, in_one: bool| {
        let mut tape = Tape::new(&params, mode);
        let rows = tape.leaf(x.clone());
        let y = if in_one {
            tape.gat(&block, rows, layer, act)
        } else {
            let (z, endpoints) = of_parts(&mut tape, rows);
            let joined = tape.attend(&block, z, endpoints, attention);
            let bias = tape.param(layer.bias.expect("a bias"));
            let y = tape.add_row(joined, bias);
            tape.activation(y, act)
        };
        let found = tape.value(y).data().to_vec();
        let left = tape.dense(Tensor::from_vec(1, DESTINATIONS, vec![1.0; DESTINATIONS]));
        let column = tape.dense(Tensor::from_vec(HEADS * WIDTH, 1, vec![0.5; HEADS * WIDTH]));
        let sums = tape.matmul(left, y);
        let loss = tape.matmul(sums, column);
        let mut grads = vec![0.0; params.len()];
        if !matches!(mode, Mode::Eval) {
            tape.backward(loss, &mut grads).unwrap();
            grads.extend(tape.grad(rows).expect("a gradient of the leaf").data());
        }
        (found, grads)
    };
    let expected = run(train, false);
    let found = run(train, true);
    within(&found.0, &expected.0, 1e-5);
    within(&found.1, &expected.1, 1e-5);
    assert_eq!(run(Mode::Eval, true).0, found.0);
    let rounded = run(bf16, true);
    assert_ne!(rounded.0, found.0);
    within(&rounded.0, &expected.0, 0.02);
    within(&rounded.1, &expected.1, 0.02);
}

const DESTINATIONS: usize = 300;

/// A block with lists of 0, 1, 30, 33 and 90 edges in turns, and rows of its sources.
fn long_lists(key: Key, cols: usize) -> (Block, Tensor) {
    const SOURCES: usize = 700;
    let mut indptr = vec![0u32];
    let mut indices = Vec::new();
    for d in 0..DESTINATIONS {
        let degree = [0, 1, 30, 33, 90][d % 5];
        let draw = |i| key.with(d as u64).below(i, SOURCES as u64) as u32;
        indices.extend((0..degree).map(draw));
        indptr.push(indices.len() as u32);
    }
    let nodes = NodeInfo { ids: (0..SOURCES as u64).collect(), degrees: vec![9; SOURCES] };
    let values = (0..(SOURCES * cols) as u64).map(|i| key.normal(i) as f32).collect();
    let block = Block::new(SOURCES, indptr, indices, None, Arc::new(nodes));
    (block, Tensor::from_vec(SOURCES, cols, values))
}

fn within(found: &[f32], expected: &[f32], share: f32) {
    let largest = expected.iter().fold(0.0f32, |most, value| most.max(value.abs()));
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() <= share * largest, "{found} {expected}");
    }
}

/// Scores far from each other, whose exponentials alone are not finite.
#[test]
fn large_scores_have_finite_sums() {
    let mut scene = Scene::new(40, 20, 6, 9);
    scene.leaf.data_mut().iter_mut().for_each(|value| *value *= 400.0);
    for (one, _) in BOTH {
        let (loss, _, grads) = scene.gradients(one as Case);
        assert!(loss.is_finite() && grads.iter().all(|g| g.is_finite()));
    }
}
