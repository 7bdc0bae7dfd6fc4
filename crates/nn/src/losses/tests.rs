//! One suite over every loss: known values, finite differences, and masked negatives.

use super::*;
use crate::Tensor;

const POSITIVE: f32 = 0.4;
const NEGATIVES: [f32; 4] = [-1.2, 0.9, 0.1, -0.2];

fn all() -> Vec<Box<dyn Loss>> {
    let build = |name: &&str| {
        let config =
            LossConfig { name: name.to_string(), margin: 0.7, temperature: 0.5, delta: 1.0 };
        config.build().unwrap()
    };
    names().iter().map(build).collect()
}

fn row(loss: &dyn Loss, positive: f32, negatives: &[f32]) -> (f32, f32, Vec<f32>) {
    let mut grads = vec![9.0; negatives.len()];
    let (value, grad) = loss.row(positive, negatives, &mut grads);
    (value, grad, grads)
}

/// Each loss as its formula, in double precision, with the weights of negatives that are not to be
/// differentiated.
fn formula(name: &str, p: f64, n: &[f64], weights: &[f64]) -> f64 {
    let (gamma, tau) = (0.7, 0.5);
    let log_sigmoid = |x: f64| -(1.0 + (-x).exp()).ln();
    let mean = |f: &dyn Fn(f64) -> f64| n.iter().map(|&x| f(x)).sum::<f64>() / n.len() as f64;
    let share = |t: f64| {
        let sum: f64 = n.iter().map(|x| (x / t).exp()).sum();
        -((p / t).exp() / ((p / t).exp() + sum)).ln()
    };
    match name {
        "cross-entropy" => share(1.0),
        "infonce" => share(tau),
        "bce" => -log_sigmoid(p) - mean(&|x| log_sigmoid(-x)),
        "margin" => mean(&|x| (gamma - p + x).max(0.0)),
        "self-adversarial" => {
            let each = n.iter().zip(weights).map(|(&x, w)| w * log_sigmoid(-gamma - x));
            -log_sigmoid(gamma + p) - each.sum::<f64>()
        }
        other => panic!("no formula for {other}"),
    }
}

fn adversarial(n: &[f64]) -> Vec<f64> {
    let sum: f64 = n.iter().map(|x| (0.5 * x).exp()).sum();
    n.iter().map(|x| (0.5 * x).exp() / sum).collect()
}

#[test]
fn losses_and_gradients_are_those_of_the_formulas() {
    let n: Vec<f64> = NEGATIVES.iter().map(|&x| x.into()).collect();
    let p = f64::from(POSITIVE);
    let weights = adversarial(&n);
    let step = 1e-6;
    for loss in all() {
        let name = loss.name();
        let (value, grad, grads) = row(loss.as_ref(), POSITIVE, &NEGATIVES);
        let near = |found: f32, expected: f64, what: &str| {
            assert!(
                (f64::from(found) - expected).abs() < 1e-5,
                "{name} {what}: {found} {expected}"
            );
        };
        near(value, formula(name, p, &n, &weights), "value");
        let by = |f: &dyn Fn(f64) -> f64| (f(step) - f(-step)) / (2.0 * step);
        near(grad, by(&|h| formula(name, p + h, &n, &weights)), "positive");
        for i in 0..n.len() {
            let moved = |h: f64| {
                let mut n = n.clone();
                n[i] += h;
                formula(name, p, &n, &weights)
            };
            near(grads[i], by(&moved), "negative");
        }
    }
}

#[test]
fn masked_negatives_do_not_count() {
    let masked = [NEGATIVES[0], f32::NEG_INFINITY, NEGATIVES[1], NEGATIVES[2], NEGATIVES[3]];
    for loss in all() {
        let (value, grad, mut grads) = row(loss.as_ref(), POSITIVE, &masked);
        assert_eq!(grads.remove(1), 0.0, "{}", loss.name());
        let (value2, grad2, grads2) = row(loss.as_ref(), POSITIVE, &NEGATIVES);
        let close = |a: f32, b: f32| (a - b).abs() < 1e-6;
        assert!(close(value, value2) && close(grad, grad2), "{}", loss.name());
        assert!(grads.iter().zip(&grads2).all(|(&a, &b)| close(a, b)), "{}", loss.name());
        let (value, grad, grads) = row(loss.as_ref(), POSITIVE, &[f32::NEG_INFINITY; 2]);
        assert!(value.is_finite() && grad.is_finite() && grads == [0.0; 2], "{}", loss.name());
    }
}

#[test]
fn large_scores_stay_finite() {
    for loss in all() {
        for positive in [-300.0, 300.0] {
            let (value, grad, grads) = row(loss.as_ref(), positive, &[400.0, -400.0]);
            assert!(value.is_finite() && grad.is_finite(), "{}", loss.name());
            assert!(grads.iter().all(|g| g.is_finite()), "{}", loss.name());
        }
    }
}

#[test]
fn a_batch_is_its_rows() {
    let positive = Tensor::from_vec(130, 1, (0..130).map(|i| i as f32 * 0.01).collect());
    let negative = Tensor::from_vec(130, 3, (0..390).map(|i| 1.0 - i as f32 * 0.01).collect());
    for loss in all() {
        let (sum, to_positive, to_negative) = apply(loss.as_ref(), &positive, &negative);
        let mut expected = 0.0;
        for i in 0..130 {
            let (value, grad, grads) = row(loss.as_ref(), positive.data()[i], negative.row(i));
            expected += f64::from(value);
            assert_eq!((to_positive.data()[i], to_negative.row(i)), (grad, &grads[..]));
        }
        assert!((sum - expected).abs() < 1e-9);
    }
}

#[test]
fn unknown_names_and_values_out_of_range_are_told() {
    let config = LossConfig { name: "self-adversary".into(), ..Default::default() };
    let error = config.build().err().unwrap();
    assert!(error.exit_code() == 2 && error.to_string().contains("'self-adversarial'"), "{error}");
    let config = LossConfig { temperature: 0.0, ..Default::default() };
    assert!(config.build().err().unwrap().to_string().contains("loss.temperature"));
}

#[test]
fn slopes_of_losses_of_numbers_are_differences() {
    for name in values::names() {
        let loss = values::build(name, 0.7).unwrap();
        assert_eq!(loss.name(), *name);
        assert_eq!(loss.of(0.0), (0.0, 0.0));
        for at in [-1.5f32, -0.25, 0.5, 3.0] {
            let difference = (loss.of(at + 1e-2).0 - loss.of(at - 1e-2).0) / 2e-2;
            assert!((difference - loss.of(at).1).abs() < 1e-3, "{name} at {at}: {difference}");
        }
    }
    let config = LossConfig { name: "msee".into(), ..LossConfig::default() };
    let error = config.of_values().err().unwrap();
    assert!(error.exit_code() == 2 && error.to_string().contains("'mse'"), "{error}");
    assert_eq!(LossConfig::default().of_values().unwrap().name(), "mse");
    assert_eq!(LossConfig::default().build().unwrap().name(), "cross-entropy");
}
