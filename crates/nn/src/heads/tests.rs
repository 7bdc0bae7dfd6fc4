//! Gradients against finite differences, and the symmetry of each head.

use gnarl_common::rng::Key;

use super::*;
use crate::{Mode, Params, Tape, Tensor};

const SIZES: HeadSizes = HeadSizes { width: 3, features: 0, outputs: 4 };

fn config(name: &str) -> DecoderConfig {
    DecoderConfig { name: name.into(), hidden: 5, layers: 3, ..DecoderConfig::default() }
}

fn rows(word: u64, cols: usize) -> Tensor {
    let values = (0..2 * cols as u64).map(|i| Key::new(word).normal(i) as f32).collect();
    Tensor::from_vec(2, cols, values)
}

/// Logits of two edges, or of their reverses.
fn logits(head: &dyn Head, params: &Params, features: usize, turned: bool) -> Vec<f32> {
    let mut tape = Tape::new(params, Mode::Eval);
    let [mut heads, mut tails] = [tape.dense(rows(1, 3)), tape.dense(rows(2, 3))];
    if turned {
        std::mem::swap(&mut heads, &mut tails);
    }
    let features = (features > 0).then(|| tape.dense(rows(3, features)));
    let out = head.forward(&mut tape, EdgeRows { heads, tails, features });
    tape.value(out).data().to_vec()
}

#[test]
fn gradients_of_parameters_and_ends_are_differences() {
    for (name, features) in [("mlp", 0), ("mlp", 2), ("bilinear", 0), ("distmult", 0)] {
        let mut params = ParamsBuilder::new(Key::new(7));
        let sizes = HeadSizes { features, ..SIZES };
        let head = add(&config(name), sizes, &mut params).unwrap();
        let ends = [
            params.add("h", 2, 3, crate::Init::Normal(1.0)),
            params.add("t", 2, 3, crate::Init::Normal(1.0)),
        ];
        let mut params = params.build();
        let loss = |params: &Params, grads: Option<&mut [f32]>| -> f64 {
            let mut tape = Tape::new(params, Mode::train(Key::new(0)));
            let [heads, tails] = ends.map(|id| tape.param(id));
            let features = (features > 0).then(|| tape.dense(rows(3, features)));
            let out = head.forward(&mut tape, EdgeRows { heads, tails, features });
            let loss = tape.cross_entropy(out, &[0, 1], &[1, 3], None, 1.0);
            let value = f64::from(tape.value(loss).data()[0]);
            if let Some(grads) = grads {
                tape.backward(loss, grads).unwrap();
            }
            value
        };
        let mut grads = vec![0.0; params.len()];
        loss(&params, Some(&mut grads));
        for (i, &grad) in grads.iter().enumerate() {
            let at = params.flat()[i];
            let mut to = |value: f32| {
                params.flat_mut()[i] = value;
                loss(&params, None)
            };
            let difference = (to(at + 1e-2) - to(at - 1e-2)) / 2e-2;
            to(at);
            assert!((difference - f64::from(grad)).abs() < 5e-3, "{name} {i}: {difference} {grad}");
        }
    }
}

#[test]
fn only_distmult_takes_an_edge_for_its_reverse() {
    for name in names() {
        let mut params = ParamsBuilder::new(Key::new(7));
        let head = add(&config(name), SIZES, &mut params).unwrap();
        let params = params.build();
        assert_eq!(head.name(), *name);
        let [there, back] = [false, true].map(|turned| logits(head.as_ref(), &params, 0, turned));
        assert_eq!(there.len(), 8);
        assert_eq!(there == back, *name == "distmult", "{name}");
    }
}

#[test]
fn what_a_head_cannot_do_is_told() {
    let fails = |config: &DecoderConfig, features| {
        let sizes = HeadSizes { features, ..SIZES };
        add(config, sizes, &mut ParamsBuilder::new(Key::new(0))).err().unwrap()
    };
    let error = fails(&config("bilinaer"), 0);
    assert!(error.exit_code() == 2 && error.to_string().contains("'bilinear'"), "{error}");
    let error = fails(&config("distmult"), 2).to_string();
    assert!(error.contains("does not support edge features"), "{error}");
    let none = DecoderConfig { layers: 0, ..config("mlp") };
    assert!(fails(&none, 0).to_string().contains("decoder.layers '0'"));
}
