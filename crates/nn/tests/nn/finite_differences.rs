//! Every operation's gradients against central differences of its forward pass.

use crate::common::{CASES, Case, Scene};
use gnarl_common::rng::Key;
use gnarl_nn::{Mode, Tape};

/// The loss with the leaf and the parameters as they are in `scene`.
fn value(scene: &Scene, case: Case) -> f64 {
    let mut tape = Tape::new(&scene.params, Mode::train(Key::new(3)));
    let x = tape.leaf(scene.leaf.clone());
    let loss = scene.loss(&mut tape, case, x);
    tape.value(loss).data()[0] as f64
}

/// The difference quotient with respect to the value that `at` picks.
fn quotient(scene: &mut Scene, case: Case, step: f32, at: impl Fn(&mut Scene) -> &mut f32) -> f64 {
    let before = *at(scene);
    *at(scene) = before + step;
    let (up, high) = (value(scene, case), *at(scene));
    *at(scene) = before - step;
    let (down, low) = (value(scene, case), *at(scene));
    *at(scene) = before;
    (up - down) / (high as f64 - low as f64)
}

fn check(name: &str, case: Case, scene: &mut Scene) {
    let (_, of_params, of_leaf) = scene.gradients(case);
    let all = of_params.iter().chain(&of_leaf).fold(1.0f64, |m, g| m.max(g.abs() as f64));
    let mut wrong = Vec::new();
    for i in 0..of_params.len() + of_leaf.len() {
        let n = of_params.len();
        let expected = if i < n { of_params[i] } else { of_leaf[i - n] } as f64;
        // A kink of ReLU or of the maximum may lie within one step; it does not within both.
        let close = [4e-3f32, 4e-4].iter().any(|&step| {
            let got = quotient(scene, case, step, |s| {
                if i < n { &mut s.params.flat_mut()[i] } else { &mut s.leaf.data_mut()[i - n] }
            });
            (got - expected).abs() < 4e-3 * all
        });
        if !close {
            wrong.push((i, expected));
        }
    }
    assert!(wrong.is_empty(), "{name}: gradients off at (position, value) {wrong:?}");
}

#[test]
fn gradients_match_difference_quotients() {
    for (src, dst, cols) in [(9, 4, 4), (1, 1, 6), (5, 5, 18)] {
        for (name, case) in CASES {
            check(name, *case, &mut Scene::new(src, dst, cols, 11));
        }
    }
}

#[test]
fn empty_blocks_are_fine() {
    for (name, case) in CASES {
        for (src, dst) in [(0, 0), (3, 0)] {
            let (loss, ..) = Scene::new(src, dst, 4, 1).gradients(*case);
            assert!(loss.is_finite(), "{name} with {src} sources, {dst} destinations");
        }
    }
}
