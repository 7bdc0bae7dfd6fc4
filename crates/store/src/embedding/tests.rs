//! Steps against closed forms, and properties of every optimizer.

use std::sync::Arc;

use super::*;
use crate::RowSource;
use gnarl_common::rng::Key;

const LR: f32 = 0.05;

fn optimizers() -> Vec<Arc<dyn SparseOptimizer>> {
    vec![
        Arc::new(SparseAdam::new(0.9, 0.999, 1e-8).unwrap()),
        Arc::new(SparseAdagrad::new(1e-10).unwrap()),
        Arc::new(RowAdagrad::new(1e-10).unwrap()),
    ]
}

fn table(ids: &[u64], optimizer: Arc<dyn SparseOptimizer>) -> Embedding {
    Embedding::new(ids.to_vec(), 3, 0.5, Key::new(9), optimizer).unwrap()
}

fn row(table: &Embedding, id: u64) -> [f32; 3] {
    let mut out = [0.0; 3];
    table.fetch(&[id], &mut out).unwrap();
    out
}

/// The gradients pushed at a step: ids, some twice, and values.
fn push(step: u64) -> (Vec<u64>, Vec<f32>) {
    let key = Key::new(4).with(step);
    let ids: Vec<u64> = (0..8).map(|i| key.below(i, 6)).collect();
    let grads = (0..24).map(|i| key.with(1).unit(i) as f32 - 0.5).collect();
    (ids, grads)
}

fn near(found: [f32; 3], expected: [f64; 3]) {
    for (f, e) in found.into_iter().zip(expected) {
        assert!((f64::from(f) - e).abs() < 1e-5, "{f} is not {e}");
    }
}

/// With a constant gradient `g` the moments are `(1 - β₁ᵗ) g` and `(1 - β₂ᵗ) g²`, so step `t` is
/// `lr · g / (|g| + ε / √(1 - β₂ᵗ))`.
#[test]
fn adam_takes_the_steps_of_its_closed_form() {
    let (eps, grad) = (0.1f64, [0.3f64, -2.0, 0.0]);
    let mut table = table(&[5], Arc::new(SparseAdam::new(0.9, 0.99, eps as f32).unwrap()));
    let mut expected = row(&table, 5).map(f64::from);
    for t in 1..=20 {
        table.update(&[5], &grad.map(|g| g as f32), LR).unwrap();
        let root = (1.0 - 0.99f64.powi(t)).sqrt();
        for (p, g) in expected.iter_mut().zip(grad) {
            *p -= f64::from(LR) * g / (g.abs() + eps / root);
        }
        near(row(&table, 5), expected);
    }
}

/// The formulas of PyTorch's `SparseAdam` in f64, with gradients that change.
#[test]
fn adam_follows_the_formulas_of_pytorch() {
    let mut table = table(&[5], Arc::new(SparseAdam::new(0.9, 0.999, 1e-8).unwrap()));
    let mut expected = row(&table, 5).map(f64::from);
    let (mut m, mut v) = ([0.0; 3], [0.0; 3]);
    for t in 1..=30 {
        let grad: [f32; 3] = std::array::from_fn(|i| Key::new(t).unit(i as u64) as f32 - 0.4);
        table.update(&[5], &grad, LR).unwrap();
        let steps = t as i32;
        let (c1, c2) = (1.0 - 0.9f64.powi(steps), 1.0 - 0.999f64.powi(steps));
        for (i, g) in grad.into_iter().map(f64::from).enumerate() {
            m[i] = 0.9 * m[i] + 0.1 * g;
            v[i] = 0.999 * v[i] + 0.001 * g * g;
            expected[i] -= f64::from(LR) * c2.sqrt() / c1 * m[i] / (v[i].sqrt() + 1e-8);
        }
        near(row(&table, 5), expected);
    }
}

/// With a constant gradient the sum of squares is `t g²`, so step `t` is `lr · g / (√t |g| + ε)`.
#[test]
fn adagrad_takes_the_steps_of_its_closed_form() {
    let (eps, grad) = (0.01f64, [0.3f64, -2.0, 0.0]);
    let mut table = table(&[5], Arc::new(SparseAdagrad::new(eps as f32).unwrap()));
    let mut expected = row(&table, 5).map(f64::from);
    for t in 1..=20 {
        table.update(&[5], &grad.map(|g| g as f32), LR).unwrap();
        for (p, g) in expected.iter_mut().zip(grad) {
            *p -= f64::from(LR) * g / (f64::from(t).sqrt() * g.abs() + eps);
        }
        near(row(&table, 5), expected);
    }
}

#[test]
fn without_gradient_and_eps_adagrad_stays_where_it_is() {
    let mut table = table(&[5], Arc::new(SparseAdagrad::new(0.0).unwrap()));
    let before = row(&table, 5);
    table.update(&[5], &[0.0; 3], LR).unwrap();
    assert_eq!(row(&table, 5), before);
}

#[test]
fn initial_rows_do_not_depend_on_the_split() {
    let ids: Vec<u64> = (0..1000).collect();
    let make = |ids: &[u64]| table(ids, optimizers().remove(0));
    let (whole, odd) = (make(&ids), make(&[999, 3, 501]));
    for id in [999, 3, 501] {
        assert_eq!(row(&whole, id), row(&odd, id));
    }
    let mut rows = vec![0.0; 3000];
    whole.fetch(&ids, &mut rows).unwrap();
    let mean = rows.iter().sum::<f32>() / 3000.0;
    assert!(rows.iter().all(|v| (-0.5..=0.5).contains(v)) && mean.abs() < 0.03, "{mean}");
}

#[test]
fn repeated_ids_are_summed_before_one_update() {
    for (mut twice, mut once) in optimizers()
        .into_iter()
        .zip(optimizers())
        .map(|(a, b)| (table(&[1, 2], a), table(&[1, 2], b)))
    {
        let grads = [1.0, 2.0, 3.0, 0.5, 0.5, 0.5, -4.0, 0.25, 1.0];
        twice.update(&[2, 1, 2], &grads, LR).unwrap();
        once.update(&[1, 2], &[0.5, 0.5, 0.5, -3.0, 2.25, 4.0], LR).unwrap();
        assert_eq!((row(&twice, 1), row(&twice, 2)), (row(&once, 1), row(&once, 2)));
    }
}

/// One owner of all rows against two owners of some each, which receive only their own gradients.
#[test]
fn updates_do_not_depend_on_the_split() {
    for ((a, b), c) in optimizers().into_iter().zip(optimizers()).zip(optimizers()) {
        let mut whole = table(&[0, 1, 2, 3, 4, 5], a);
        let mut parts = [table(&[1, 4], b), table(&[0, 2, 3, 5], c)];
        for step in 0..20 {
            let (ids, grads) = push(step);
            whole.update(&ids, &grads, LR).unwrap();
            for part in &mut parts {
                let own: Vec<usize> =
                    (0..8).filter(|&i| part.ids().row(ids[i]).is_some()).collect();
                let grads: Vec<f32> =
                    own.iter().flat_map(|&i| grads[3 * i..3 * i + 3].to_vec()).collect();
                let ids: Vec<u64> = own.iter().map(|&i| ids[i]).collect();
                if !ids.is_empty() {
                    part.update(&ids, &grads, LR).unwrap();
                }
            }
        }
        for part in &parts {
            part.ids().iter().for_each(|id| assert_eq!(row(part, id), row(&whole, id)));
        }
    }
}

#[test]
fn a_restored_table_goes_on_to_the_same_bits_in_files_too() {
    let dir = tempfile::tempdir().unwrap();
    let home = gnarl_common::Home::Folder(dir.path().into());
    for (a, b) in optimizers().into_iter().zip(optimizers()) {
        let ids = [0, 1, 2, 3, 4, 5];
        let mut whole = table(&ids, a);
        let about = (3, 0.5, Key::new(9));
        let mut resumed = Embedding::in_home(Ids::range(0..6), about, b, &home).unwrap();
        assert_eq!(**whole.values(), **resumed.values());
        for step in 0..20 {
            if step == 10 {
                let (state, steps) = whole.state();
                resumed.restore(whole.values(), state, steps).unwrap();
                let size = whole.state_width();
                resumed.restore_some(4, &whole.values()[12..], &state[4 * size..], &steps[4..]);
                let error = resumed.restore(whole.values(), state, &steps[1..]).unwrap_err();
                assert!(error.to_string().contains("steps"), "{error}");
            }
            let (ids, grads) = push(step);
            whole.update(&ids, &grads, LR).unwrap();
            if step >= 10 {
                resumed.expect(&Nodes::Ids(2..4));
                let held = [&[1..3, 4..5][..], &[4..5, 0..1], &[], &[0..6, 0..6]];
                let held = held[step as usize % 4].iter().cloned().map(Nodes::Ids);
                resumed.hold(&held.collect::<Vec<_>>()).unwrap();
                resumed.update(&ids, &grads, LR).unwrap();
            }
        }
        assert_eq!(row(&whole, 4), row(&resumed, 4), "rows that are held are fetched");
        resumed.hold(&[]).unwrap();
        assert_eq!((**whole.state().0).to_vec(), resumed.state().0.to_vec());
        assert_eq!((**whole.state().1).to_vec(), resumed.state().1.to_vec());
        ids.into_iter().for_each(|id| assert_eq!(row(&whole, id), row(&resumed, id)));
    }
}

/// Rows of parts are held apart from those that are not, which stay in the file.
#[test]
fn rows_of_parts_are_held_and_written_back() {
    let dir = tempfile::tempdir().unwrap();
    let home = gnarl_common::Home::Folder(dir.path().into());
    let map = Arc::new(gnarl_common::IdMap::new(3, &[2, 0, 1, 2, 0, 1]).unwrap());
    let about = (3, 0.5, Key::new(9));
    for (a, b) in optimizers().into_iter().zip(optimizers()) {
        let mut whole = table(&[0, 1, 2, 3, 4, 5], a);
        let ids = Ids::in_parts(map.clone(), 0..3);
        let mut parts = Embedding::in_home(ids, about, b, &home).unwrap();
        for step in 0..12 {
            let held = [&[0, 2][..], &[2, 1], &[], &[0, 1, 2]][step as usize % 4];
            let nodes: Vec<Nodes> = held.iter().map(|&part| Nodes::Part(part)).collect();
            parts.hold(&nodes).unwrap();
            assert_eq!(parts.num_held(), 2 * held.len());
            let (ids, grads) = push(step);
            whole.update(&ids, &grads, LR).unwrap();
            parts.update(&ids, &grads, LR).unwrap();
            (0..6).for_each(|id| assert_eq!(row(&whole, id), row(&parts, id), "step {step}"));
        }
        parts.hold(&[]).unwrap();
        let rows = parts.values().chunks_exact(3).zip(parts.ids().iter());
        rows.for_each(|(found, id)| assert_eq!(found, row(&whole, id)));
        parts.hold(&[Nodes::Ids(0..6)]).unwrap();
        assert_eq!(parts.num_held(), 0, "ids are not consecutive");
    }
}

/// The closed form for a constant gradient: after `t` steps the sum is `t` times the mean square.
#[test]
fn rows_share_the_sum_of_row_adagrad() {
    let mut table = table(&[5], Arc::new(RowAdagrad::new(0.0).unwrap()));
    let mut expected = row(&table, 5).map(f64::from);
    let grad = [0.3f64, -2.0, 0.0];
    let mean = grad.iter().map(|g| g * g).sum::<f64>() / 3.0;
    for t in 1..=20 {
        table.update(&[5], &grad.map(|g| g as f32), LR).unwrap();
        for (p, g) in expected.iter_mut().zip(grad) {
            *p -= f64::from(LR) * g / (f64::from(t) * mean).sqrt();
        }
        near(row(&table, 5), expected);
    }
    assert_eq!(table.state_width(), 1);
}

#[test]
fn bad_input_is_told_and_changes_nothing() {
    let make = |ids: &[u64], width, bound| {
        Embedding::new(ids.to_vec(), width, bound, Key::new(1), optimizers().remove(0))
    };
    let message = |made: Result<Embedding>| made.err().expect("refused").to_string();
    assert!(message(make(&[4, 4], 3, 0.1)).contains("duplicate node 4"));
    assert!(message(make(&[4], 0, 0.1)).contains("at least one value"));
    assert!(message(make(&[4], 3, -1.0)).contains("bound"));
    assert!(SparseAdam::new(1.0, 0.9, 1e-8).is_err() && SparseAdagrad::new(-1.0).is_err());

    let mut table = table(&[1, 2], optimizers().remove(0));
    let before = row(&table, 1);
    let unknown = table.update(&[1, 8], &[1.0; 6], LR).unwrap_err().to_string();
    assert!(unknown.contains("node 8 has no embedding"), "{unknown}");
    assert!(table.update(&[1], &[1.0; 4], LR).is_err());
    assert_eq!(row(&table, 1), before);
}

/// The penalty is a part of the gradient, whatever the rule.
#[test]
fn weight_decay_adds_to_the_gradients_of_rows_that_are_updated() {
    for rule in optimizers() {
        let decayed = Arc::new(WeightDecay::new(rule.clone(), 0.5).unwrap());
        let (mut with, mut without) = (table(&[5, 6], decayed), table(&[5, 6], rule));
        for _ in 0..3 {
            let grad = [0.1f32, -0.2, 0.3];
            let own = row(&without, 5);
            let penalized: Vec<f32> = grad.iter().zip(own).map(|(g, p)| g + 0.5 * p).collect();
            with.update(&[5], &grad, LR).unwrap();
            without.update(&[5], &penalized, LR).unwrap();
        }
        assert_eq!(row(&with, 5), row(&without, 5));
        assert_eq!(row(&with, 6), row(&without, 6), "a row that is left alone keeps its values");
    }
    let adam = optimizers().swap_remove(0);
    assert!(WeightDecay::new(adam, -1.0).is_err());
}
