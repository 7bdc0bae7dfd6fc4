//! S3, as moto does it.

use serde_json::json;

use super::RUN;
use super::moto::Moto;
use crate::common::{Bench, path, succeed};

/// Names in a folder that uploads are written to first.
fn scratch(dir: &std::path::Path) -> usize {
    let names = std::fs::read_dir(dir).unwrap().flatten();
    names.filter(|entry| entry.file_name().to_string_lossy().contains("gnarl-upload")).count()
}

#[test]
fn tables_are_uploaded() {
    let Some(moto) = Moto::start() else { return };
    let bench = Bench::new(RUN);
    bench.train(&["model.hidden=2500"]);
    let (run, dir) = (path(&bench.run), bench.dir.path());
    let local = dir.join("nodes.parquet");
    let what = ["--what", "embeddings,classes"];
    succeed(&[&["infer", run, "--out", path(&local)], &what[..]].concat());
    let expected = std::fs::read(&local).unwrap();
    assert!(expected.len() > 16 << 20, "more than one part");

    let infer = [&["infer", run, "--out", "s3://bucket/a/nodes.parquet"], &what[..]].concat();
    assert_eq!(moto.succeed(&infer, dir)["files"], json!(["s3://bucket/a/nodes.parquet"]));
    assert!(moto.get("bucket/a/nodes.parquet") == expected);
    let text = moto.fail(&infer, 2, dir);
    assert!(text.contains("s3://bucket/a/nodes.parquet: exists already"), "{text}");
    moto.succeed(&[&infer[..], &["--force"]].concat(), dir);

    let small = ["infer", run, "--out", "s3://bucket/a/few.csv", "--split", "test"];
    moto.succeed(&small, dir);
    assert!(moto.get("bucket/a/few.csv").starts_with(b"id,class,probability\n"));
    assert!(moto.fail(&small, 2, dir).contains("exists already"));
    let text = moto.fail(&["infer", run, "--out", "s3://no-bucket/nodes.csv"], 1, dir);
    assert!(text.contains("looking for the bucket: s3://no-bucket/nodes.csv: "), "{text}");
    assert!(text.contains("hint: is there a bucket 'no-bucket'"), "{text}");
    assert_eq!(scratch(dir), 0);
}

#[cfg(feature = "zarr")]
#[test]
fn groups_are_uploaded() {
    let Some(moto) = Moto::start() else { return };
    let bench = Bench::new(RUN);
    bench.train(&[]);
    let (run, dir) = (path(&bench.run), bench.dir.path());
    let infer = ["infer", run, "--out", "s3://bucket/a/nodes.zarr"];
    moto.succeed(&infer, dir);
    let text = moto.get("bucket/a/nodes.zarr/zarr.json");
    assert!(String::from_utf8_lossy(&text).contains("\"group\""));
    moto.get("bucket/a/nodes.zarr/id/c/0");
    assert!(moto.fail(&infer, 2, dir).contains("nodes.zarr: exists already"));
    moto.succeed(&[&infer[..], &["--what", "logits", "--force"]].concat(), dir);
    moto.get("bucket/a/nodes.zarr/logits/c/0/0");
    assert_eq!(scratch(dir), 0);
}

#[test]
fn datasets_are_fetched() {
    let Some(moto) = Moto::start() else { return };
    let bench = Bench::new(RUN);
    moto.put_folder(&bench.graph, "bucket/data/graph");
    let dir = bench.dir.path();
    let found = moto.succeed(&["inspect", "s3://bucket/data/graph", "--verify"], dir);
    assert_eq!(found, succeed(&["inspect", path(&bench.graph), "--verify"]));
    let sets = [
        "dataset.path=s3://bucket/data/graph".into(),
        format!("output.dir={}", bench.run.display()),
    ];
    moto.succeed(&["train", path(&bench.file), "--set", &sets[0], "--set", &sets[1]], dir);
    let text = moto.fail(&["inspect", "s3://bucket/data"], 2, dir);
    assert!(text.contains("no dataset.json or partition.json among"), "{text}");
}

#[test]
fn runs_are_uploaded() {
    let Some(moto) = Moto::start() else { return };
    let bench = Bench::new(RUN);
    let dir = bench.dir.path();
    let args = bench.args(&["output.dir=s3://bucket/runs/a"]);
    let train = |words: &[&'static str]| [&args[..], words].concat();
    let expected = bench.train(&["train.epochs=3"]);
    let first = moto.succeed(&train(&["--set", "train.epochs=3"]), dir);
    assert_eq!(first["run_dir"], "s3://bucket/runs/a");
    assert_eq!(first["losses"], expected["losses"]);
    assert!(moto.get("bucket/runs/a/report.html").starts_with(b"<!DOCTYPE html>"));
    assert!(moto.get("bucket/runs/a/checkpoint.safetensors").len() > 1000);
    let found = moto.succeed(&["eval", "s3://bucket/runs/a"], dir);
    assert_eq!((&found["test"], &found["finished"]), (&expected["test"], &json!(true)));
    // Longer, from the checkpoint.
    let longer = moto.succeed(&train(&["--resume", "--set", "train.epochs=5"]), dir);
    assert_eq!(longer["losses"], bench.train(&["train.epochs=5"])["losses"]);
    let other = moto.succeed(&train(&[]), dir);
    assert_eq!(other["run_dir"], "s3://bucket/runs/a-2");
    let text = moto.fail(&["eval", "s3://bucket/runs/b"], 2, dir);
    assert!(text.contains("s3://bucket/runs/b: no config.toml among 0 objects"), "{text}");
    let out = "output.dir=s3://no-bucket/a";
    let text = moto.fail(&bench.args(&[out]), 1, dir);
    assert!(text.contains("looking for runs") && text.contains("no-bucket"), "{text}");
}
