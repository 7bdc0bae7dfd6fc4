//! Training from the command line: strategies, workers, evaluation, methods.

use crate::common::{Bench, fail, gnarl, path, succeed};
use serde_json::Value;

const RUN: &str = "[train]\nepochs = 5\n";

fn losses(summary: &Value) -> Vec<f64> {
    summary["losses"].as_array().unwrap().iter().map(|l| l.as_f64().unwrap()).collect()
}

fn close(a: &[f64], b: &[f64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-4)
}

#[test]
fn gradient_gives_the_same_losses_on_any_number_of_workers() {
    let bench = Bench::new(RUN);
    let train = |sets: &[&str]| bench.train(sets);
    let one = train(&["train.workers=1"]);
    let labor = train(&["train.workers=1", "sample.method=labor"]);
    assert_ne!(losses(&one), losses(&labor));
    for (reference, sets) in [
        (&one, &["train.workers=2"][..]),
        (&one, &["train.workers=4"]),
        (&one, &["train.workers=3", "partition.parts=3"]),
        (&one, &["train.workers=2", "partition.parts=4", "partition.algorithm=metis"]),
        (&labor, &["train.workers=3", "partition.parts=4", "sample.method=labor"]),
    ] {
        let summary = train(sets);
        assert!(close(&losses(reference), &losses(&summary)), "{sets:?}: {reference} {summary}");
    }
    let same = train(&["train.workers=1", "train.threads=3", "train.prefetch=5"]);
    assert_eq!(losses(&one), losses(&same), "threads change nothing");
    for pipeline in ["off", "epoch"] {
        let sets = ["train.workers=1", &format!("train.pipeline={pipeline}")];
        assert_eq!(losses(&one), losses(&train(&sets)), "when batches are made changes nothing");
    }
    for (threads, pipeline, prefetch) in [(2, "non-stop", 1), (3, "epoch", 2), (7, "non-stop", 9)] {
        let sets = [
            "train.workers=1",
            &format!("train.preparation_threads={threads}"),
            &format!("train.pipeline={pipeline}"),
            &format!("train.prefetch={prefetch}"),
        ];
        assert_eq!(losses(&one), losses(&train(&sets)), "by {threads} threads");
    }
    assert_ne!(losses(&one), losses(&train(&["train.seed=1"])), "the seed does");
}

#[test]
fn averaging_does_not_depend_on_who_trains_which_part() {
    let bench = Bench::new(RUN);
    let train = |workers: &str| {
        let sets = ["train.strategy=average", "partition.parts=4", "train.sync_every=2", workers];
        bench.train(&sets)
    };
    let one = train("train.workers=1");
    for workers in ["train.workers=2", "train.workers=3", "train.workers=4", "train.workers=5"] {
        let summary = train(workers);
        assert!(close(&losses(&one), &losses(&summary)), "{workers}: {one} {summary}");
        assert_eq!(one["test"], summary["test"], "{workers}");
    }
}

#[test]
fn every_method_and_model_learns() {
    let bench = Bench::new(RUN);
    let accuracy = |sets: &[&str]| {
        let summary = bench.train(&[&["train.epochs=30"], sets].concat());
        summary["test"]["accuracy"].as_f64().unwrap()
    };
    // GIN adds up neighbors: hubs of 60 times the mean degree make it learn slowly.
    let least =
        [("gcn", 0.6), ("sage", 0.6), ("gat", 0.6), ("sgc", 0.6), ("ngnn", 0.6), ("gin", 0.4)];
    for (model, least) in least {
        let found = accuracy(&[&format!("model.name={model}"), "model.dropout=0.1"]);
        assert!(found > least, "{model}: {found} of 4 classes");
    }
    for method in ["exact", "full", "cluster-gcn", "saint-node", "saint-edge", "saint-walk"] {
        let method = format!("sample.method={method}");
        let sets =
            [&method, "sample.clusters=20", "sample.clusters_per_batch=5", "sample.budget=300"];
        let found = accuracy(&sets);
        assert!(found > 0.6, "{method}: {found} of 4 classes");
    }
    let full_batch = accuracy(&["sample.method=full", "sample.batch_size=0", "train.epochs=60"]);
    assert!(full_batch > 0.6, "full batch: {full_batch}");
}

#[test]
fn early_stopping_ends_the_run_and_eval_repeats_its_scores() {
    let bench = Bench::new(RUN);
    let summary = bench.train(&["train.epochs=400", "train.patience=3"]);
    let epochs = summary["epochs"].as_u64().unwrap();
    assert!(epochs < 400, "{epochs} epochs");
    assert_eq!(summary["best_epoch"].as_u64().unwrap() + 3, epochs);
    let judged = succeed(&["eval", path(&bench.run)]);
    assert_eq!((&judged["test"], &judged["valid"]), (&summary["test"], &summary["valid"]));
    for file in ["config.toml", "metrics.jsonl", "model.safetensors", "checkpoint.safetensors"] {
        assert!(bench.run.join(file).exists(), "{file}");
    }
}

#[test]
fn epochs_are_streamed_on_request() {
    let bench = Bench::new(RUN);
    let streamed = gnarl().args(bench.args(&["train.epochs=3"])).arg("--stream").output().unwrap();
    assert!(streamed.status.success());
    let out = String::from_utf8(streamed.stdout).unwrap();
    let lines: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 5, "{out}");
    assert_eq!(lines[0]["run_dir"].as_str(), bench.run.to_str());
    let metrics = std::fs::read_to_string(bench.run.join("metrics.jsonl")).unwrap();
    for (line, written) in lines[1..4].iter().zip(metrics.lines()) {
        assert_eq!(*line, serde_json::from_str::<Value>(written).unwrap());
    }
    assert_eq!(lines[4]["epochs"], 3);
}

#[test]
fn vertex_cuts_train_by_gradients_only() {
    let bench = Bench::new(RUN);
    let parts = bench.dir.path().join("parts");
    let cut = ["partition", path(&bench.graph), "--algorithm", "dbh", "--parts", "2"];
    succeed(&[&cut[..], &["--layout", "vertex-cut", "--out", path(&parts)]].concat());
    let cut = format!("partition.path={}", parts.display());
    let train = bench.args(&[&cut, "train.workers=2"]);
    succeed(&train);
    let average = ["--restart", "--set", "train.strategy=average"];
    let text = fail(&[&train[..], &average].concat(), 2);
    assert!(text.contains("vertex-cut") && text.contains("--layout edge-cut"), "{text}");
}

#[test]
fn run_files_cut_as_the_command_line_does() {
    let cut =
        "[partition]\nalgorithm = 'grem'\nparts = '2x2'\nchunk = '5%'\npasses = 1\nfreeze = true\n";
    let bench = Bench::new(&format!("{cut}{RUN}"));
    let train = bench.args(&["train.epochs=1"]);
    succeed(&train);
    let made = || std::fs::read_to_string(bench.run.join("partition/partition.json")).unwrap();
    let manifest: Value = serde_json::from_str(&made()).unwrap();
    let told = &manifest["parameters"];
    assert_eq!((told["levels"].to_string(), &told["passes"]), ("[2,2]".into(), &1.into()));
    assert_eq!((&told["chunk"], &told["freeze"]), (&"0.05".into(), &true.into()));
    let before = made();
    succeed(&[&train[..], &["--restart"]].concat());
    assert_eq!(made(), before, "the same cut is taken again");
    succeed(&[&train[..], &["--restart", "--set", "partition.freeze=false"]].concat());
    assert_ne!(made(), before, "another is not");
}
