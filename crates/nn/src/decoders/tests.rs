//! One suite over every decoder: scores against their formulas, either endpoint as the query, and
//! gradients against finite differences.

use gnarl_common::rng::Key;

use super::*;
use crate::Tensor;
use crate::losses::LossConfig;

const DIM: usize = 20;
const RELATIONS: usize = 3;

fn config(name: &str, degree: usize) -> DecoderConfig {
    DecoderConfig { name: name.into(), degree, hidden: 7, ..Default::default() }
}

/// Every decoder, TransE with both of its degrees.
fn all() -> Vec<(String, Box<dyn Decoder>, Params)> {
    let names = names().iter().map(|name| (*name, 1)).chain([("transe", 2)]);
    let build = |(name, degree): (&str, usize)| {
        let (decoder, mut params) = build(&config(name, degree), DIM, RELATIONS, key()).unwrap();
        // Biases and relations that start at 0 would hide mistakes.
        let noise = key().with(1);
        for (i, value) in params.flat_mut().iter_mut().enumerate() {
            *value += 0.1 * noise.normal(i as u64) as f32;
        }
        (format!("{name} of degree {degree}"), decoder, params)
    };
    names.map(build).collect()
}

fn key() -> Key {
    Key::new(7)
}

fn rows(count: usize, width: usize) -> Tensor {
    let key = key().with(2);
    let values = (0..(count * width) as u64).map(|i| 0.5 * key.normal(i) as f32).collect();
    Tensor::from_vec(count, width, values)
}

/// The score of a triple as the papers write it.
fn formula(
    decoder: &dyn Decoder,
    degree: usize,
    params: &Params,
    h: &[f32],
    r: u32,
    t: &[f32],
) -> f64 {
    let relation = |name: &str| {
        let id = params.find(name).unwrap();
        let width = params.shape(id).1;
        params.get(id)[r as usize * width..][..width]
            .iter()
            .map(|&v| f64::from(v))
            .collect::<Vec<_>>()
    };
    let (h, t): (Vec<f64>, Vec<f64>) =
        (h.iter().map(|&v| v.into()).collect(), t.iter().map(|&v| v.into()).collect());
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    match decoder.name() {
        "dot" => dot(&h, &t),
        "cosine" => dot(&h, &t) / (dot(&h, &h) * dot(&t, &t)).sqrt(),
        "distmult" => {
            let r = relation("relation");
            (0..DIM).map(|k| h[k] * r[k] * t[k]).sum()
        }
        "complex" => {
            let r = relation("relation");
            let term = |k: usize| {
                let (a, b) =
                    (h[k] * r[k] - h[DIM + k] * r[DIM + k], h[k] * r[DIM + k] + h[DIM + k] * r[k]);
                a * t[k] + b * t[DIM + k]
            };
            (0..DIM).map(term).sum()
        }
        "rotate" => {
            let r = relation("relation.angle");
            let term = |k: usize| {
                let (cos, sin) = (r[k].cos(), r[k].sin());
                let (a, b) = (h[k] * cos - h[DIM + k] * sin, h[k] * sin + h[DIM + k] * cos);
                (a - t[k]).hypot(b - t[DIM + k])
            };
            -(0..DIM).map(term).sum::<f64>()
        }
        "transe" => {
            let r = relation("relation");
            let apart = (0..DIM).map(|k| (h[k] + r[k] - t[k]).abs());
            match degree {
                1 => -apart.sum::<f64>(),
                _ => -apart.map(|d| d * d).sum::<f64>().sqrt(),
            }
        }
        "mlp" => {
            let matrix = |name: &str| params.get(params.find(name).unwrap()).to_vec();
            let a = matrix("decoder.head");
            let b = matrix("decoder.tail");
            let bias = matrix("decoder.bias");
            let w = matrix("decoder.out");
            let r = relation("relation");
            let unit = |j: usize| {
                let column = |m: &[f32], x: &[f64]| -> f64 {
                    (0..DIM).map(|k| x[k] * f64::from(m[k * 7 + j])).sum()
                };
                let sum = column(&a, &h) + column(&b, &t) + r[j] + f64::from(bias[j]);
                f64::from(w[j]) * sum.max(0.0)
            };
            (0..7).map(unit).sum::<f64>() + f64::from(w[7])
        }
        other => panic!("no formula for {other}"),
    }
}

#[test]
fn scores_are_those_of_the_formulas_from_either_side() {
    let relations = [2, 0, 1, 1, 2];
    for (name, decoder, params) in all() {
        let degree = if name.ends_with('2') { 2 } else { 1 };
        let heads = rows(5, decoder.width());
        let tails = {
            let all = rows(10, decoder.width());
            Tensor::from_vec(5, decoder.width(), all.data()[5 * decoder.width()..].to_vec())
        };
        for side in Side::BOTH {
            let (given, own) = if side == Side::Tail { (&heads, &tails) } else { (&tails, &heads) };
            let query = decoder.query(&params, side, given, &relations);
            let candidates = decoder.candidate(&params, side, own);
            let groups = Groups::shared(5, 5);
            let scores = score(decoder.similarity(&params), &query, &candidates, &groups);
            for i in 0..5 {
                for j in 0..5 {
                    let (h, t) = if side == Side::Tail { (i, j) } else { (j, i) };
                    let (h, t) = (heads.row(h), tails.row(t));
                    let expected = formula(decoder.as_ref(), degree, &params, h, relations[i], t);
                    let found = f64::from(scores.row(i)[j]);
                    let close = (found - expected).abs() < 1e-4 * (1.0 + expected.abs());
                    assert!(close, "{name}, {side:?}: {found}, not {expected}");
                }
            }
        }
    }
}

/// Six entities, four triples, candidates for heads shared, for tails in two groups, one masked.
fn batch() -> LinkBatch {
    let heads =
        Candidates { rows: vec![5, 4, 0], groups: Groups::shared(4, 3), masked: vec![[0, 2]] };
    let tails = Candidates {
        rows: vec![1, 5, 3, 4],
        groups: Groups::new(vec![0, 0, 1, 1], 2),
        masked: vec![],
    };
    LinkBatch {
        heads: vec![0, 1, 2, 0],
        relations: vec![0, 2, 1, 0],
        tails: vec![2, 3, 3, 1],
        negatives: vec![(Side::Head, heads), (Side::Tail, tails)],
    }
}

#[test]
fn gradients_are_finite_differences() {
    let (batch, step) = (batch(), 2e-3f32);
    let loss = LossConfig::default().build().unwrap();
    for (name, decoder, params) in all() {
        let rows = rows(6, decoder.width());
        let value = |params: &Params, rows: &Tensor| {
            let mut grads = vec![0.0; params.len()];
            batch.loss(decoder.as_ref(), loss.as_ref(), 0.01, params, rows, &mut grads).unwrap().sum
        };
        let mut grads = vec![0.0; params.len()];
        let found =
            batch.loss(decoder.as_ref(), loss.as_ref(), 0.01, &params, &rows, &mut grads).unwrap();
        assert_eq!(found.weight, 8.0);
        let near = |found: f32, up: f64, down: f64, what: String| {
            let expected = (up - down) / (2.0 * f64::from(step));
            let error = (f64::from(found) - expected).abs();
            assert!(
                error < 4e-3 * (1.0 + expected.abs()),
                "{name}, {what}: {found}, not {expected}"
            );
        };
        for i in 0..rows.data().len() {
            let moved = |by: f32| {
                let mut rows = rows.clone();
                rows.data_mut()[i] += by;
                value(&params, &rows)
            };
            near(found.rows.data()[i], moved(step), moved(-step), format!("row value {i}"));
        }
        for i in 0..params.len() {
            let moved = |by: f32| {
                let mut params = params.clone();
                params.flat_mut()[i] += by;
                value(&params, &rows)
            };
            near(grads[i], moved(step), moved(-step), format!("parameter {i}"));
        }
    }
}

#[test]
fn results_do_not_depend_on_threads() {
    let count = 700u64;
    let draw =
        |word: u64| (0..count).map(|i| key().with(word).below(i, 50) as u32).collect::<Vec<u32>>();
    let relations = (0..count).map(|i| (i % 3) as u32).collect();
    let candidates = Candidates {
        rows: (0..40).collect(),
        groups: Groups::shared(count as usize, 40),
        masked: vec![],
    };
    let negatives = vec![(Side::Tail, candidates)];
    let batch = LinkBatch { heads: draw(3), relations, tails: draw(4), negatives };
    let loss = LossConfig::default().build().unwrap();
    for (name, decoder, params) in all() {
        let rows = rows(50, decoder.width());
        let run = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let mut grads = vec![0.0; params.len()];
            let found = pool.install(|| {
                batch.loss(decoder.as_ref(), loss.as_ref(), 0.0, &params, &rows, &mut grads)
            });
            (found.unwrap(), grads)
        };
        assert_eq!(run(1), run(3), "{name}");
    }
}

#[test]
fn equal_rows_have_gradients() {
    let same = LinkBatch { heads: vec![0; 4], tails: vec![0; 4], ..batch() };
    let loss = LossConfig::default().build().unwrap();
    for (name, decoder, params) in all() {
        for rows in [rows(6, decoder.width()), Tensor::zeros(6, decoder.width())] {
            let mut grads = vec![0.0; params.len()];
            let found = same
                .loss(decoder.as_ref(), loss.as_ref(), 0.1, &params, &rows, &mut grads)
                .unwrap();
            let finite = found.rows.data().iter().chain(&grads).all(|g| g.is_finite());
            assert!(finite && found.sum.is_finite(), "{name}");
        }
    }
}

#[test]
fn mistakes_are_told() {
    let fails = |config: DecoderConfig| build(&config, DIM, RELATIONS, key()).err().unwrap();
    let error = fails(config("distmul", 1));
    assert!(error.exit_code() == 2 && error.to_string().contains("'distmult'"), "{error}");
    let error = fails(config("transe", 3));
    assert!(error.to_string().contains("decoder.degree"), "{error}");
    let (decoder, params) = build(&config("complex", 1), DIM, RELATIONS, key()).unwrap();
    let loss = LossConfig::default().build().unwrap();
    let narrow = rows(6, DIM);
    let error = batch().loss(decoder.as_ref(), loss.as_ref(), 0.0, &params, &narrow, &mut []);
    assert!(error.unwrap_err().to_string().contains("of width 40"));
}
