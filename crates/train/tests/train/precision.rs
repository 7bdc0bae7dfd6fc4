//! Products of bf16: as accurate as those of f32, and the same for any number of threads and ranks.

use gnarl_config::{Precision, RunConfig, Strategy};
use gnarl_train::{Begin, Summary, run};

use super::bench::Bench;

fn trained(config: &RunConfig) -> Summary {
    config.check().unwrap();
    run(config, Begin::Restart, &|_| ()).unwrap().summary
}

/// Seeds whose accuracies are averaged: small graphs have few nodes to test with.
const SEEDS: u64 = 5;

/// Asserts that a model learns what it learns with f32, by other losses.
fn learns_as_well(bench: &Bench, model: &str, strategy: Strategy) {
    let mut config = bench.config(model);
    config.model.name = model.into();
    config.train.strategy = strategy;
    config.train.epochs = 12;
    if model == "gin" {
        // Sums over neighbors without a normalization: at the usual rate losses leap, with f32 as well.
        config.train.lr = 0.001;
    }
    let mut exact = 0.0;
    let mut rounded = 0.0;
    for seed in 0..SEEDS {
        config.train.seed = seed;
        config.train.precision = Precision::F32;
        let of_f32 = trained(&config);
        config.train.precision = Precision::Bf16;
        let of_bf16 = trained(&config);
        assert_ne!(of_f32.losses, of_bf16.losses, "{model}: products are rounded");
        // What is rounded otherwise leads elsewhere in time: the first epochs are near, the last as good.
        let both = of_f32.losses.iter().zip(&of_bf16.losses).enumerate();
        for (epoch, (of_f32, of_bf16)) in both {
            let bound = if epoch < 3 { 0.03 } else { 0.25 };
            let difference = (of_f32 - of_bf16).abs();
            assert!(difference < bound * of_f32, "{model}, {epoch}: {of_bf16} for {of_f32}");
        }
        exact += of_f32.test["accuracy"] / SEEDS as f64;
        rounded += of_bf16.test["accuracy"] / SEEDS as f64;
    }
    assert!((exact - rounded).abs() < 0.03, "{model}: {rounded} for {exact}");
}

#[test]
fn models_learn_as_well_as_with_f32() {
    let bench = Bench::new();
    for model in ["sage", "gcn", "gat", "gin"] {
        learns_as_well(&bench, model, Strategy::Gradient);
    }
    learns_as_well(&bench, "gcn", Strategy::Tensor);
}

#[test]
fn losses_are_those_of_any_number_of_threads() {
    let bench = Bench::new();
    let of = [("sage", Strategy::Gradient), ("gcn", Strategy::Gradient), ("gcn", Strategy::Tensor)];
    for (model, strategy) in of {
        let mut config = bench.config("threads");
        config.train.precision = Precision::Bf16;
        config.train.strategy = strategy;
        config.model.name = model.into();
        let expected = trained(&config);
        config.train.threads = 5;
        let found = trained(&config);
        assert_eq!((&found.losses, &found.test), (&expected.losses, &expected.test));
        config.train.workers = 2;
        let two = trained(&config);
        config.train.threads = 2;
        let slow = trained(&config);
        assert_eq!((&two.losses, &two.test), (&slow.losses, &slow.test));
    }
}

#[test]
fn runs_without_an_encoder_say_that_it_does_not_apply() {
    use gnarl_config::{Applied, TaskKind};

    let mut config = RunConfig::default();
    config.task.kind = TaskKind::LinkPrediction;
    config.model.name = "none".into();
    config.embedding.dim = 8;
    config.train.precision = Precision::Bf16;
    let lines = Applied { run: &config, heterogeneous: false, tables: true }.unused();
    assert!(lines.iter().any(|line| line.contains("train.precision")), "{lines:?}");
}
