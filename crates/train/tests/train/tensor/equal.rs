//! Columns shared out over ranks give what one process computes.

use std::path::Path;

use gnarl_config::{Parts, RunConfig, Strategy};
use gnarl_nn::models::Aggregator;
use gnarl_train::{Begin, eval_run, run};

use super::{config, generate, train};

/// Odd numbers of nodes, features and hidden columns, and fewer classes than ranks.
fn graph(dir: &Path) {
    generate(dir, 701, 21, 3);
}

/// The weights of a finished run.
pub fn weights(config: &RunConfig) -> Vec<f32> {
    let bytes = std::fs::read(config.output.dir.join("model.safetensors")).unwrap();
    let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let mut all: Vec<_> = tensors.tensors();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    let values = all.iter().flat_map(|(_, view)| view.data().as_chunks::<4>().0);
    values.map(|bytes| f32::from_le_bytes(*bytes)).collect()
}

pub fn largest_difference(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

/// Losses, scores and weights of `model` are those of one process that samples all neighbors, and so
/// are the gradients of a step.
pub fn same_for_any_number_of_ranks(model: &str, change: impl Fn(&mut RunConfig)) {
    let dir = tempfile::tempdir().unwrap();
    graph(dir.path());
    let make = |name: &str| {
        let mut config = config(dir.path(), name, model);
        change(&mut config);
        config
    };
    one_step_moves_weights_alike(&make);
    runs_end_alike(&make, "accuracy", 1e-9);
}

/// Losses, scores and weights of runs that `make` names are those of one process that samples all
/// neighbors.
pub fn runs_end_alike(make: &dyn Fn(&str) -> RunConfig, score: &str, tolerance: f64) {
    let whole = make("whole");
    let expected = train(&whole).summary;
    let last = expected.losses.len() - 1;
    assert!(expected.losses[last] < expected.losses[0], "it learns: {:?}", expected.losses);
    for workers in 1..=4 {
        let mut sliced = make(&format!("sliced-{workers}"));
        sliced.train.strategy = Strategy::Tensor;
        sliced.train.workers = workers;
        let found = train(&sliced).summary;
        let name = format!("{} on {workers}", sliced.model.name);
        let apart = expected.losses.iter().zip(&found.losses).map(|(a, b)| (a - b).abs());
        let apart = apart.fold(0.0, f64::max);
        assert!(apart < 1e-4, "{name}: {:?} {:?}", expected.losses, found.losses);
        for (expected, found) in [(&expected.test, &found.test), (&expected.valid, &found.valid)] {
            let apart = (expected[score] - found[score]).abs();
            assert!(apart < tolerance, "{name}: {expected:?} {found:?}");
        }
        let apart = largest_difference(&weights(&whole), &weights(&sliced));
        assert!(apart < 1e-3, "{name}: weights differ by {apart}");
        let judged = eval_run(&sliced.output.dir, None).unwrap();
        let apart = (judged.test[score] - found.test[score]).abs();
        assert!(apart < tolerance, "{name}: judged {:?}, was {:?}", judged.test, found.test);
    }
}

/// A step of gradient descent with rate 1: what weights differ in is what gradients differ in.
pub fn one_step_moves_weights_alike(make: &dyn Fn(&str) -> RunConfig) {
    let step = |strategy: Strategy, workers: usize| {
        let mut config = make(&format!("step-{workers}-{strategy:?}"));
        (config.train.strategy, config.train.workers) = (strategy, workers);
        (config.train.epochs, config.train.lr) = (1, 1.0);
        config.optimizer.name = "sgd".into();
        train(&config);
        weights(&config)
    };
    let expected = step(Strategy::Gradient, 1);
    for workers in 1..=4 {
        let apart = largest_difference(&expected, &step(Strategy::Tensor, workers));
        assert!(apart < 1e-4, "{workers} ranks: gradients differ by {apart}");
    }
}

#[test]
fn gcn_is_the_same_for_any_number_of_ranks() {
    same_for_any_number_of_ranks("gcn", |_| ());
}

#[test]
fn mean_sage_is_the_same_for_any_number_of_ranks() {
    same_for_any_number_of_ranks("sage", |_| ());
}

#[test]
fn max_pool_sage_is_the_same_for_any_number_of_ranks() {
    same_for_any_number_of_ranks("sage", |c| c.model.aggregator = Aggregator::MaxPool);
}

#[test]
fn gin_is_the_same_for_any_number_of_ranks() {
    same_for_any_number_of_ranks("gin", |c| c.train.lr = 0.003);
}

#[test]
fn ngnn_is_the_same_for_any_number_of_ranks() {
    same_for_any_number_of_ranks("ngnn", |c| c.model.layers = 3);
    same_for_any_number_of_ranks("ngnn", |c| c.model.aggregator = Aggregator::MaxPool);
}

/// Heads are cut by the shares of columns: 20 columns of 4 heads over 3 ranks.
#[test]
fn gat_is_the_same_for_any_number_of_ranks() {
    same_for_any_number_of_ranks("gat", |_| ());
}

#[test]
fn a_perceptron_is_the_same_for_any_number_of_ranks() {
    same_for_any_number_of_ranks("mlp", |_| ());
}

#[test]
fn what_cannot_train_by_columns_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    graph(dir.path());
    let refused = |name: &str, change: &dyn Fn(&mut RunConfig)| {
        let mut config = config(dir.path(), name, "sage");
        config.train.strategy = Strategy::Tensor;
        config.train.workers = 2;
        change(&mut config);
        let error = config.check().and_then(|()| run(&config, Begin::Fresh, &|_| ()).map(drop));
        let error = error.unwrap_err();
        assert_eq!(error.exit_code(), 2, "{error}");
        error.to_string()
    };
    let lstm = refused("lstm", &|c| c.model.aggregator = Aggregator::Lstm);
    assert!(lstm.contains("the recurrence mixes all features"), "{lstm}");
    let decoupled = refused("decoupled", &|c| c.model.decoupled = true);
    assert!(decoupled.contains("'sage' has no decoupled form"), "{decoupled}");
    let ngnn = refused("ngnn", &|c| {
        (c.model.name, c.model.aggregator) = ("ngnn".into(), Aggregator::Lstm);
    });
    assert!(ngnn.contains("'ngnn' with aggregator 'lstm'"), "{ngnn}");
    let parts = refused("parts", &|c| c.partition.parts = Parts::Count(2));
    assert!(parts.contains("not parts"), "{parts}");
}
