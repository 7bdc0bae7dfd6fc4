//! Embedding of knowledge graphs: any number of workers, resumed runs, bad input, and Kinships.

mod bench;
mod in_files;

use std::path::Path;

use gnarl_config::RunConfig;
use gnarl_config::{Leakage, Parts, RowOptimizer, Strategy};
use gnarl_graph::import::{TriplesOptions, triples};
use gnarl_train::{Begin, Finished, eval_run, run};

use bench::{Bench, model, train};

#[test]
fn parts_train_alone_and_the_averaged_embeddings_learn() {
    let bench = Bench::new();
    let mut config = bench.config("average");
    config.train.strategy = Strategy::Average;
    config.partition.parts = Parts::Count(3);
    config.train.epochs = 15;
    let alone = train(&config).summary;
    assert!(alone.losses[14] < 0.8 * alone.losses[0], "{:?}", alone.losses);
    for workers in [2, 3] {
        config.train.workers = workers;
        let together = train(&config).summary;
        assert_eq!(together.losses, alone.losses, "{workers} workers");
        assert_eq!(together.test, alone.test, "{workers} workers");
    }
}

fn apart(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

#[test]
fn any_number_of_workers_makes_the_same_losses_and_rows() {
    let bench = Bench::new();
    for (decoder, loss, kind, optimizer) in [
        ("complex", "cross-entropy", "joint", RowOptimizer::Adagrad),
        ("rotate", "self-adversarial", "uniform", RowOptimizer::Adam),
        ("distmult", "infonce", "in-batch", RowOptimizer::Adagrad),
        ("transe", "margin", "typed", RowOptimizer::Adagrad),
        ("mlp", "bce", "local", RowOptimizer::Adagrad),
    ] {
        let mut config = bench.config(decoder);
        config.decoder.name = decoder.into();
        config.loss.name = loss.into();
        config.negatives.kind = kind.into();
        config.embedding.optimizer = optimizer;
        config.train.clip_norm = 0.5;
        if decoder == "mlp" {
            // Adam divides gradients by their size, and those of weights behind a unit that is off are
            // all rounding.
            config.optimizer.name = "sgd".into();
            config.optimizer.eps = 1e-5;
        }
        config.partition.algorithm = "random".into();
        config.partition.parts = gnarl_config::Parts::Count(3);
        let alone = train(&config).summary;
        let rows = model(&config);
        for workers in [2, 4] {
            config.train.workers = workers;
            let together = train(&config).summary;
            let near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-4;
            let same = alone.losses.iter().zip(&together.losses).all(near);
            assert!(same, "{decoder}, {workers}: {:?} {:?}", alone.losses, together.losses);
            let far = apart(&rows, &model(&config));
            assert!(far < 1e-4, "{decoder}, {workers}: rows are {far} apart");
        }
        assert!(alone.losses[3] < alone.losses[0], "{decoder} learns: {:?}", alone.losses);
    }
}

#[test]
fn a_resumed_run_ends_with_the_same_numbers() {
    let bench = Bench::new();
    let mut config = bench.config("whole");
    config.train.epochs = 6;
    config.train.checkpoint_seconds = 0.0;
    let whole = train(&config);
    let rows = model(&config);
    let config = RunConfig { output: bench.config("halves").output, ..config };
    let stopped = std::sync::atomic::AtomicUsize::new(0);
    let failing = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        run(&config, Begin::Restart, &|record| {
            stopped.store(record.epoch, std::sync::atomic::Ordering::Relaxed);
            assert!(record.epoch < 4, "stopped on purpose");
        })
    }));
    assert!(!matches!(failing, Ok(Ok(_))), "the run was stopped");
    assert_eq!(stopped.into_inner(), 4);
    let resumed = run(&config, Begin::Resume, &|_| ()).unwrap();
    assert_eq!(resumed.summary.losses, whole.summary.losses);
    assert_eq!(resumed.summary.test, whole.summary.test);
    assert_eq!(model(&config), rows);
}

#[test]
fn what_a_run_reports_is_what_eval_finds() {
    let bench = Bench::new();
    let mut config = bench.config("eval");
    config.decoder.name = "rotate".into();
    config.loss.name = "self-adversarial".into();
    config.loss.margin = 6.0;
    config.train.epochs = 60;
    config.train.eval_every = 20;
    let Finished { summary, relations, .. } = train(&config);
    assert!(summary.test["mrr"] > 0.8, "{:?}", summary.test);
    assert!(summary.test["mrr_raw"] <= summary.test["mrr"]);
    assert_eq!(relations.len(), 5);
    let edges: usize = relations.iter().map(|row| row.edges).sum();
    let mean: f64 =
        relations.iter().map(|row| row.mrr * row.edges as f64).sum::<f64>() / edges as f64;
    assert!((mean - summary.test["mrr"]).abs() < 1e-9, "relations make up the whole");
    assert!(relations.iter().any(|row| row.relation == "r3"));
    assert!(config.output.dir.join("relations.json").exists());
    let found = eval_run(&config.output.dir, None).unwrap();
    assert_eq!((found.test, found.valid), (summary.test, summary.valid));
    assert_eq!(found.relations, relations);
}

#[test]
fn kinships_is_learnt() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data/kinships");
    let dir = tempfile::tempdir().unwrap();
    let options = TriplesOptions {
        train: data.join("train.txt"),
        valid: Some(data.join("valid.txt")),
        test: Some(data.join("test.txt")),
        num_entities: None,
        entities: None,
        relations: None,
        delimiter: None,
        memory: 1 << 26,
    };
    triples(&options, &dir.path().join("graph")).unwrap();
    let text = std::fs::read_to_string(data.join("../../kinships.toml")).unwrap();
    let mut config: RunConfig = toml::from_str(&text).unwrap();
    config.dataset.path = dir.path().join("graph");
    config.output.dir = dir.path().join("run");
    config.train.eval_every = 10;
    let found = train(&config).summary;
    assert!(found.test["mrr"] >= 0.8, "{:?}", found.test);
}

#[test]
fn bad_input_is_told() {
    let bench = Bench::new();
    let fails = |config: &RunConfig| match config.check() {
        Ok(()) => run(config, Begin::Restart, &|_| ()).err().unwrap(),
        Err(e) => e,
    };
    let mut config = bench.config("bad");
    config.decoder.name = "compelx".into();
    let error = fails(&config);
    assert!(error.exit_code() == 2 && error.to_string().contains("'complex'"), "{error}");
    let mut config = bench.config("bad");
    config.train.metric = Some("mr".into());
    assert!(fails(&config).to_string().contains("'mrr'"));
    let mut config = bench.config("bad");
    config.negatives.kind = "local".into();
    assert!(fails(&config).to_string().contains("requires a partitioned graph"));

    let mut config = bench.config("bad");
    config.negatives.kind = "file".into();
    config.negatives.sides = gnarl_config::Sides::Tail;
    let edges = std::fs::read_to_string(bench.path("train")).unwrap().lines().count();
    let table = |name: &str, rows: usize, width: u64, node: u32| {
        let mut writer = gnarl_common::npy::NpyWriter::create(bench.path(name), &[width]).unwrap();
        writer.push(&vec![node; rows * width as usize]).unwrap();
        writer.finish().unwrap();
        Some(bench.path(name))
    };
    for (file, text) in [
        (table("wide.npy", edges, 19, 1), "expected negatives.count = 20 columns, found 19"),
        (table("short.npy", edges - 1, 20, 1), "one per training edge"),
        (table("far.npy", edges, 20, 60), "candidate 60 does not exist"),
    ] {
        config.negatives.tails = file;
        let error = fails(&config);
        assert!(error.exit_code() == 1 && error.to_string().contains(text), "{error}");
    }
    config.negatives.tails = table("good.npy", edges, 20, 7);
    train(&config);

    for name in ["valid", "test"] {
        std::fs::remove_file(bench.path(name)).unwrap();
    }
    std::fs::write(bench.path("gaps"), "1\t0\t2\n2\t2\t1\n3\t2\t1\n").unwrap();
    bench.import("gaps", "graph2");
    let mut config = bench.config("bad");
    config.dataset.path = bench.path("graph2");
    let error = fails(&config);
    assert!(error.to_string().contains("1 does not occur"), "{error}");
}

/// Rows that R-GCN puts out, an edge type for each relation and for its reverse.
fn encoded(bench: &Bench) -> RunConfig {
    let mut config = bench.config("encoded");
    config.model.name = "rgcn".into();
    config.model.layers = 1;
    config.model.hidden = 16;
    config.model.dropout = 0.0;
    config.sample.fanouts = vec![4];
    config.train.metric = Some("mrr".into());
    config
}

#[test]
fn relations_are_edge_types_of_a_models_graph() {
    let bench = Bench::new();
    let mut config = encoded(&bench);
    config.train.epochs = 30;
    let alone = train(&config).summary;
    assert!(alone.test["mrr"] > 0.3, "{:?}", alone.test);
    for workers in [3, 4] {
        config.train.workers = workers;
        let together = train(&config).summary;
        let near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-4;
        let same = alone.losses.iter().zip(&together.losses).all(near);
        assert!(same, "{workers}: {:?} {:?}", alone.losses, together.losses);
    }
}

#[test]
fn triples_of_a_batch_leave_the_graph_that_its_model_hears() {
    let bench = Bench::new();
    let mut config = encoded(&bench);
    config.train.epochs = 1;
    for (leakage, seen) in [(Leakage::Remove, false), (Leakage::Keep, true)] {
        config.task.leakage = leakage;
        train(&config);
        let report = eval_run(&config.output.dir, None).unwrap().leakage.unwrap();
        assert!(report.train.edges > 150, "{report:?}");
        assert_eq!(report.train.seen > 0, seen, "{report:?}");
        assert_eq!([report.valid.seen, report.test.seen], [0; 2], "{report:?}");
    }
}
