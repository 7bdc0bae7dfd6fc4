//! Attention as one operation against the operations it is made of.

use gnarl_nn::{Activation, EdgeAttention, Tape, Var};

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
            assert!(expected.1.iter().chain(&expected.2).any(|&gradient| gradient != 0.0));
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
    let largest = expected.iter().fold(0.0f32, |most, value| most.max(value.abs()));
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() <= 2e-6 * largest, "{found} {expected}");
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
