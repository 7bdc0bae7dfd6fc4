//! Settings that do something else than they say, alone or together: each is warned about, or refused.

use std::path::{Path, PathBuf};

use super::runs::log;
use crate::common::{Bench, fail, path, succeed};

const RUN: &str = "[train]\nepochs = 2\n";

#[test]
fn settings_without_effect_are_warned_about() {
    let bench = Bench::new(RUN);
    let halves = ["train.strategy=average", "partition.parts=2"];
    for (sets, told) in [
        (
            &["train.strategy=tensor", "sample.method=labor"][..],
            "sample.method apply to sampled batches",
        ),
        (
            &["train.strategy=tensor", "sample.method=cluster-gcn"],
            "sample.method apply to sampled batches",
        ),
        (
            &["model.name=sgc", "model.dropout=0.8"],
            "model.dropout, model.hidden apply to models with hidden",
        ),
        (&["model.name=sgc", "model.activation=elu"], "model.activation applies to models that"),
        (
            &[halves[0], halves[1], "train.sync_every=2"],
            "so that evaluations, and the epochs that train.patience counts, follow train.sync_every",
        ),
        (
            &[halves[0], halves[1], "partition.hops=1"],
            "parts have halo nodes of 1 hop, and sage has 2",
        ),
        (
            &[
                "partition.parts=2",
                "partition.constraints=['nodes', 'train']",
                "dataset.split={train=0.4, valid=0.2, test=0.4}",
            ],
            "partition.constraints balances the dataset's own",
        ),
    ] {
        let text = log(&bench.args(sets));
        assert!(text.contains("WARN") && text.contains(told), "{sets:?}: {text}");
        std::fs::remove_dir_all(&bench.run).unwrap();
    }
    let text = log(&bench.args(&halves));
    assert!(!text.contains("WARN"), "nothing to warn about: {text}");
    std::fs::remove_dir_all(&bench.run).unwrap();
    let text = log(&bench.args(&["sample.method=cluster-gcn", "partition.seed=3"]));
    assert!(!text.contains("partition.seed"), "clusters are drawn by it: {text}");
}

#[test]
fn impossible_numbers_are_refused() {
    let bench = Bench::new(RUN);
    for (set, told) in [
        ("train.clip_norm=-1.0", "invalid train.clip_norm '-1': expected 0 (no clipping)"),
        ("train.checkpoint_seconds=nan", "invalid train.checkpoint_seconds 'NaN'"),
        ("train.deadline_seconds=1e30", "invalid train.deadline_seconds"),
        ("partition.hops=5000000000", "invalid partition.hops '5000000000': expected 100 at most"),
    ] {
        let text = fail(&bench.args(&[set]), 2);
        assert!(text.contains(told), "{set}: {text}");
    }
    assert!(!bench.run.exists());
}

#[test]
fn parts_of_another_dataset_are_refused() {
    let bench = Bench::new(RUN);
    let other = bench.dir.path().join("other");
    succeed(&["generate", "community", "--nodes", "500", "--seed", "8", "--out", path(&other)]);
    let parts = bench.dir.path().join("parts");
    succeed(&["partition", path(&other), "--parts", "2", "--out", path(&parts)]);
    let set = format!("partition.path={}", path(&parts));
    let text = fail(&bench.args(&[&set]), 2);
    assert!(text.contains("was made of another dataset than"), "{text}");
    assert!(text.contains("by gnarl partition"), "{text}");
}

#[test]
fn plans_do_not_drop_the_sampler() {
    let bench = Bench::new(RUN);
    let plan = succeed(&["plan", path(&bench.file), "--set", "sample.method=cluster-gcn"]);
    assert!(plan["predictions"].as_array().unwrap().is_empty(), "{plan}");
    let refused = plan["refused"].as_array().unwrap();
    let tensor = refused.iter().find(|one| one["strategy"] == "tensor").unwrap();
    let reason = tensor["reason"].as_str().unwrap();
    assert!(
        reason.contains("predictions do not support subgraphs and neighborhoods by walks"),
        "{plan}"
    );
}

/// A graph of a few edges whose relations are known, and a run file that predicts them.
fn links(dir: &Path) -> (PathBuf, PathBuf) {
    let nodes = 60u32;
    let mut lines = String::new();
    for v in 0..nodes {
        for step in [1, 3, 7] {
            lines += &format!("{v}\tr{}\t{}\n", step % 2, (v + step) % nodes);
        }
    }
    let (train, valid) = (dir.join("train.tsv"), dir.join("valid.tsv"));
    std::fs::write(&train, &lines).unwrap();
    std::fs::write(&valid, "n0\tr0\tn2\n".replace('n', "")).unwrap();
    let graph = dir.join("links");
    let (train, valid) = (path(&train), path(&valid));
    succeed(&["import", "triples", "--train", train, "--valid", valid, "--out", path(&graph)]);
    let file = dir.join("links.toml");
    let text = format!(
        "[dataset]\npath = '{}'\n[task]\nkind = 'link-prediction'\n[model]\nname = 'none'\n[train]\nepochs = 1\n\
         [output]\ndir = '{}'\n",
        graph.display(),
        dir.join("links-run").display()
    );
    std::fs::write(&file, text).unwrap();
    (graph, file)
}

#[test]
fn links_are_not_trained_without_messages_or_weights() {
    let dir = tempfile::tempdir().unwrap();
    let (_, file) = links(dir.path());
    let args = |sets: &[&'static str]| -> Vec<String> {
        let mut args = vec!["train".to_string(), path(&file).to_string()];
        args.extend(sets.iter().flat_map(|set| ["--set".to_string(), set.to_string()]));
        args
    };
    let refused = |sets: &[&'static str]| {
        let args = args(sets);
        fail(&args.iter().map(String::as_str).collect::<Vec<_>>(), 2)
    };
    let text = refused(&["model.name=rgcn", "sample.batch_size=0"]);
    assert!(text.contains("leaves none for messages to pass over"), "{text}");
    let text = refused(&["model.name=rgcn", "sample.batch_size=50", "sample.method=weighted"]);
    assert!(text.contains("draws by edge weights"), "{text}");
    let warned = |sets: &[&'static str]| {
        let mut args = args(sets);
        args.push("--restart".into());
        log(&args.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let text = warned(&["task.test=0.3", "task.split_seed=4"]);
    assert!(text.contains("task.test, task.split_seed have no effect here"), "{text}");
    let text = warned(&["model.dropout=0.3"]);
    assert!(text.contains("model.dropout applies to models"), "{text}");
    let text = warned(&["optimizer.weight_decay=0.3"]);
    assert!(text.contains("embeddings have embedding.weight_decay"), "{text}");
}
