//! The decoupled forms of models against their formulas, written out over a small graph.

use std::sync::Arc;

use gnarl_common::rng::Key;
use gnarl_graph::blocks::{Block, NodeInfo};
use gnarl_nn::models::{self, ModelConfig};
use gnarl_nn::{Activation, Mode, Params, Tape, Tensor};

/// In-neighbors of each node; node 2 has none, node 3 hears itself.
const LISTS: [&[u32]; 6] = [&[1, 3], &[0, 5, 4], &[], &[3, 0, 5], &[1], &[1, 3]];
const CLASSES: usize = 3;

fn block() -> Arc<Block> {
    let mut indptr = vec![0];
    LISTS.iter().for_each(|list| indptr.push(indptr[indptr.len() - 1] + list.len() as u32));
    let degrees = LISTS.iter().map(|list| list.len() as u32).collect();
    let nodes = NodeInfo { ids: (0..6).collect(), degrees };
    Arc::new(Block::new(6, indptr, LISTS.concat(), None, Arc::new(nodes)))
}

fn input() -> Tensor {
    Tensor::from_vec(6, 4, (0..24).map(|i| Key::new(5).normal(i) as f32).collect())
}

fn config(name: &str) -> ModelConfig {
    ModelConfig {
        name: name.into(),
        decoupled: true,
        propagations: Some(3),
        teleport: 0.2,
        hidden: 5,
        out_heads: 2,
        dropout: 0.0,
        in_dim: 4,
        out_dim: CLASSES,
        ..ModelConfig::default()
    }
}

fn output(config: &ModelConfig, params: &Params) -> Tensor {
    let (model, _) = models::build(config, Key::new(1)).unwrap();
    let blocks = vec![block(); config.blocks()];
    let mut tape = Tape::new(params, Mode::Eval);
    let x = tape.dense(input());
    let y = model.forward(&mut tape, &blocks, x).unwrap();
    tape.take(y)
}

/// What the dense layers make: a perceptron's output with the same weights.
fn rows(config: &ModelConfig, params: &Params, activation: Activation) -> Vec<Vec<f64>> {
    let activation = Some(activation);
    let mlp = ModelConfig { name: "mlp".into(), decoupled: false, activation, ..config.clone() };
    let (_, mut weights) = models::build(&mlp, Key::new(1)).unwrap();
    for id in weights.ids().collect::<Vec<_>>() {
        let same = params.find(&weights.spec(id).name).unwrap();
        weights.get_mut(id).copy_from_slice(params.get(same));
    }
    let y = output(&mlp, &weights);
    (0..6).map(|v| y.row(v).iter().map(|&value| f64::from(value)).collect()).collect()
}

/// `H' = 0.8 P H + 0.2 H⁰`, `times`, with `P` as a weight for each pair of nodes.
fn propagate(first: &[Vec<f64>], p: &[[f64; 6]; 6], times: usize) -> Vec<Vec<f64>> {
    let step = |h: Vec<Vec<f64>>, _| {
        let value = |d: usize, c: usize| {
            let passed: f64 = (0..6).map(|s| p[d][s] * h[s][c]).sum();
            0.8 * passed + 0.2 * first[d][c]
        };
        (0..6).map(|d| (0..CLASSES).map(|c| value(d, c)).collect()).collect()
    };
    (0..times).fold(first.to_vec(), step)
}

fn assert_close(got: &Tensor, expected: &[Vec<f64>]) {
    for (v, expected) in expected.iter().enumerate() {
        for (got, expected) in got.row(v).iter().zip(expected) {
            assert!((f64::from(*got) - expected).abs() < 1e-5, "node {v}: {got}, not {expected}");
        }
    }
}

#[test]
fn gcn_is_a_perceptron_and_normalised_sums() {
    let config = config("gcn");
    let (_, params) = models::build(&config, Key::new(1)).unwrap();
    let degree = |v: usize| LISTS[v].len() as f64 + 1.0;
    let mut p = [[0.0; 6]; 6];
    for (d, list) in LISTS.iter().enumerate() {
        p[d][d] = 1.0 / degree(d);
        list.iter()
            .for_each(|&s| p[d][s as usize] += 1.0 / (degree(d) * degree(s as usize)).sqrt());
    }
    let first = rows(&config, &params, Activation::Relu);
    assert_close(&output(&config, &params), &propagate(&first, &p, 3));
}

#[test]
fn gat_attends_by_what_the_perceptron_made() {
    let config = config("gat");
    let (_, params) = models::build(&config, Key::new(1)).unwrap();
    let first = rows(&config, &params, Activation::Elu);
    let attention = params.get(params.find("attention").unwrap());
    // Four columns: two heads as sources, two as destinations.
    let score = |v: usize, column: usize| -> f64 {
        (0..CLASSES).map(|c| first[v][c] * f64::from(attention[4 * c + column])).sum()
    };
    let mut p = [[0.0; 6]; 6];
    for (d, list) in LISTS.iter().enumerate() {
        let own = (!list.contains(&(d as u32))).then_some(d as u32);
        for head in 0..2 {
            let weight = |s: usize| {
                let sum = score(s, head) + score(d, 2 + head);
                if sum > 0.0 { sum.exp() } else { (0.2 * sum).exp() }
            };
            let sources = || list.iter().chain(&own).map(|&s| s as usize);
            let total: f64 = sources().map(weight).sum();
            sources().for_each(|s| p[d][s] += weight(s) / total / 2.0);
        }
    }
    assert_close(&output(&config, &params), &propagate(&first, &p, 3));
}

/// A fixed random combination of the output, and its gradient.
fn loss(config: &ModelConfig, params: &Params) -> (f64, Vec<f32>) {
    let (model, _) = models::build(config, Key::new(1)).unwrap();
    let blocks = vec![block(); config.blocks()];
    let mut tape = Tape::new(params, Mode::train(Key::new(3)));
    let x = tape.dense(input());
    let y = model.forward(&mut tape, &blocks, x).unwrap();
    let random = |key: u64, n| (0..n).map(|i| Key::new(key).normal(i) as f32).collect();
    let left = tape.dense(Tensor::from_vec(1, 6, random(8, 6)));
    let right = tape.dense(Tensor::from_vec(CLASSES, 1, random(9, CLASSES as u64)));
    let row = tape.matmul(left, y);
    let loss = tape.matmul(row, right);
    let mut grads = vec![0.0; params.len()];
    let value = f64::from(tape.value(loss).data()[0]);
    tape.backward(loss, &mut grads).unwrap();
    (value, grads)
}

#[test]
fn gradients_match_difference_quotients() {
    for name in ["gcn", "gat"] {
        let config = config(name);
        let (_, mut params) = models::build(&config, Key::new(1)).unwrap();
        let (_, grads) = loss(&config, &params);
        let largest = grads.iter().fold(1f64, |m, g| m.max(f64::from(g.abs())));
        for (i, &expected) in grads.iter().enumerate() {
            // A kink of the activation may lie within one step; it does not within both.
            let close = [4e-3f32, 4e-4].iter().any(|step| {
                let before = params.flat()[i];
                let mut at = |by: f32| {
                    params.flat_mut()[i] = before + by;
                    (loss(&config, &params).0, f64::from(params.flat()[i]))
                };
                let ((up, high), (down, low)) = (at(*step), at(-step));
                at(0.0);
                ((up - down) / (high - low) - f64::from(expected)).abs() < 4e-3 * largest
            });
            assert!(close, "{name}: the gradient of weight {i} is not {expected}");
        }
    }
}

#[test]
fn what_has_no_decoupled_form_is_refused() {
    let refused = |change: &dyn Fn(&mut ModelConfig)| {
        let mut config = config("gcn");
        change(&mut config);
        let error = models::build(&config, Key::new(1)).err().unwrap();
        assert_eq!(error.exit_code(), 2);
        error.to_string()
    };
    for name in ["gin", "sage", "sgc"] {
        let text = refused(&|c| c.name = name.into());
        assert!(text.contains(&format!("model '{name}' has no decoupled form")), "{text}");
        assert!(text.contains("gcn and gat"), "{text}");
    }
    assert!(refused(&|c| c.propagations = Some(0)).contains("model.propagations '0'"));
    assert!(refused(&|c| c.teleport = 1.0).contains("model.teleport '1'"));
}
