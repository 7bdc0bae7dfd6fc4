//! Embeddings in files, and training by buckets of edges: the same numbers as in memory, on one rank as on several, resumed
//! too.

use std::panic::{AssertUnwindSafe, catch_unwind};

use gnarl_config::{Parts, RowOptimizer, RowStore, RunConfig, Strategy};
use gnarl_train::{Begin, eval_run, run};

use super::bench::{Bench, model, train};

/// A run with its embeddings in files, by buckets.
fn config(bench: &Bench, name: &str) -> RunConfig {
    let mut config = bench.config(name);
    config.embedding.optimizer = RowOptimizer::RowAdagrad;
    config.sample.buckets = 3;
    config.train.checkpoint_seconds = 0.0;
    config.partition.algorithm = "random".into();
    config.partition.parts = Parts::Count(3);
    config
}

/// Names of the files of owners.
fn owned(config: &RunConfig) -> Vec<String> {
    let entries = std::fs::read_dir(config.output.dir.join("embeddings")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

#[test]
fn embeddings_in_files_are_those_in_memory() {
    let bench = Bench::new();
    for (workers, optimizer, buckets, in_memory) in [
        (1, RowOptimizer::Adam, 0, 2),
        (1, RowOptimizer::RowAdagrad, 3, 2),
        (3, RowOptimizer::Adagrad, 3, 2),
        (3, RowOptimizer::RowAdagrad, 5, 3),
    ] {
        let mut config = config(&bench, "rows");
        config.train.workers = workers;
        config.embedding.optimizer = optimizer;
        config.sample.buckets = buckets;
        config.sample.buckets_in_memory = in_memory;
        let memory = train(&config).summary;
        let rows = model(&config);
        config.embedding.store = RowStore::File;
        let files = train(&config).summary;
        assert_eq!(files.losses, memory.losses, "{workers}");
        assert_eq!((&files.test, &files.valid), (&memory.test, &memory.valid), "{workers}");
        assert_eq!(model(&config), rows, "{workers}");
        let name = |rank| format!("table-0.epoch-4.rank-{rank}-of-{workers}.safetensors");
        assert_eq!(owned(&config), (0..workers).map(name).collect::<Vec<_>>());
        let found = eval_run(&config.output.dir, None).unwrap();
        assert_eq!(found.test, memory.test, "{workers}");
    }
}

#[test]
fn buckets_make_the_same_losses_for_any_number_of_workers_and_learn() {
    let bench = Bench::new();
    let mut config = config(&bench, "buckets");
    config.train.epochs = 20;
    let alone = train(&config).summary;
    assert!(alone.losses[19] < 0.8 * alone.losses[0], "{:?}", alone.losses);
    for workers in [2, 4] {
        config.train.workers = workers;
        let together = train(&config).summary;
        let near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-4;
        assert!(alone.losses.iter().zip(&together.losses).all(near), "{:?}", together.losses);
    }
    config.train.workers = 1;
    config.sample.buckets = 0;
    assert_ne!(train(&config).summary.losses, alone.losses, "another order");
}

#[test]
fn a_run_with_embeddings_in_files_resumes_to_the_same_numbers() {
    let bench = Bench::new();
    for (workers, eval_every) in [(1, 1), (3, 1), (2, 0)] {
        let mut config = config(&bench, "whole");
        config.embedding.store = RowStore::File;
        config.train.epochs = 6;
        config.train.workers = workers;
        config.train.eval_every = eval_every;
        let whole = train(&config).summary;
        let rows = model(&config);
        let config = RunConfig { output: bench.config("halves").output, ..config };
        let stopped = catch_unwind(AssertUnwindSafe(|| {
            run(&config, Begin::Restart, &|record| assert!(record.epoch < 4, "on purpose"))
        }));
        assert!(!matches!(stopped, Ok(Ok(_))), "the run was stopped");
        // The run ends after the evaluation of its fourth epoch, before which there was a checkpoint.
        let last = if eval_every == 1 { "epoch-4-unevaluated" } else { "epoch-3.rank" };
        assert!(owned(&config).iter().all(|name| name.contains(last)), "{:?}", owned(&config));
        // What a killed process leaves is removed.
        let left = config.output.dir.join("embeddings/table-0.epoch-4.safetensors.tmp-abc123");
        std::fs::write(&left, "half").unwrap();
        let resumed = run(&config, Begin::Resume, &|_| ()).unwrap().summary;
        assert_eq!(resumed.losses, whole.losses, "{workers}");
        assert_eq!((resumed.test, resumed.best_epoch), (whole.test, whole.best_epoch), "{workers}");
        assert_eq!(model(&config), rows, "{workers}");
        assert!(!left.exists());
    }
}

#[test]
fn a_run_resumes_from_files_to_memory_and_back() {
    let bench = Bench::new();
    let mut config = config(&bench, "moved");
    config.train.epochs = 6;
    let whole = train(&config).summary;
    config.train.epochs = 2;
    train(&config);
    for (store, epochs) in [(RowStore::File, 4), (RowStore::Memory, 6)] {
        config.embedding.store = store;
        config.train.epochs = epochs;
        let found = run(&config, Begin::Resume, &|_| ()).unwrap().summary;
        assert_eq!(found.losses, whole.losses[..epochs]);
    }
}

#[test]
fn a_missing_file_of_an_owner_is_told() {
    let bench = Bench::new();
    let mut config = config(&bench, "missing");
    config.embedding.store = RowStore::File;
    config.train.workers = 2;
    train(&config);
    let path = config.output.dir.join("embeddings").join(&owned(&config)[1]);
    std::fs::remove_file(&path).unwrap();
    config.train.epochs = 5;
    let error = run(&config, Begin::Resume, &|_| ()).err().unwrap().to_string();
    assert!(error.contains("rank-1-of-2") && error.contains("rank 1 wrote it"), "{error}");
}

#[test]
fn what_does_not_go_together_is_told() {
    let bench = Bench::new();
    let mut config = config(&bench, "refused");
    config.embedding.store = RowStore::File;
    config.train.strategy = Strategy::Average;
    let error = config.check().unwrap_err().to_string();
    assert!(error.contains("embedding.store = 'file' requires train.strategy"), "{error}");
    config.train.strategy = Strategy::Gradient;
    config.output.dir = "s3://bucket/run".into();
    let error = config.check().unwrap_err().to_string();
    assert!(error.contains("requires a folder of this host"), "{error}");
    config.output.dir = "run".into();
    config.sample.buckets = 257;
    let error = config.check().unwrap_err().to_string();
    assert!(error.contains("invalid sample.buckets '257'"), "{error}");
    config.sample.buckets = 4;
    config.sample.buckets_in_memory = 1;
    let error = config.check().unwrap_err().to_string();
    assert!(error.contains("invalid sample.buckets_in_memory '1'"), "{error}");
}

/// Rows that R-GCN starts from, in files: evaluation reads them where they are.
#[test]
fn embeddings_that_a_model_reads_are_in_files_too() {
    let bench = Bench::new();
    let mut config = super::encoded(&bench);
    config.train.workers = 2;
    let memory = train(&config).summary;
    let rows = model_of_encoder(&config);
    config.embedding.store = RowStore::File;
    let files = train(&config).summary;
    assert_eq!((files.losses, files.test), (memory.losses, memory.test));
    assert_eq!(model_of_encoder(&config), rows);
}

fn model_of_encoder(config: &RunConfig) -> Vec<u8> {
    std::fs::read(config.output.dir.join("model.safetensors")).unwrap()
}
