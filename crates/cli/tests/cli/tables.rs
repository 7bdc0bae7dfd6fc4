//! Tables of predictions, as polars, DuckDB and zarr-python read them.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{path, run_file, succeed};

const READERS: &str = include_str!("tables.py");

/// A trained run on a graph whose ids and classes are texts.
fn trained(dir: &Path) -> PathBuf {
    let mut edges = String::from("from,to\n");
    let mut nodes = String::from("name,x,kind,part\n");
    for v in 0..60 {
        let kind = ["gerade", "ungerade ✓"][v % 2];
        let part = ["train", "valid", "test"][v / 2 % 3];
        writeln!(edges, "näd-{v},näd-{}", (v + 2) % 60).unwrap();
        writeln!(nodes, "näd-{v},{}.5,{kind},{part}", v % 2).unwrap();
    }
    let files = [("edges.csv", edges), ("nodes.csv", nodes)].map(|(name, text)| {
        std::fs::write(dir.join(name), text).unwrap();
        dir.join(name)
    });
    let graph = dir.join("graph");
    let words = "--src from --dst to --id name --features x --label kind --split part --symmetrize";
    let mut args = vec!["import", "csv", "--edges", path(&files[0]), "--nodes", path(&files[1])];
    args.extend(words.split(' '));
    succeed(&[&args[..], &["--out", path(&graph)]].concat());
    let run = dir.join("run");
    let rest = format!("[train]\nepochs = 5\n[output]\ndir = '{}'\n", run.display());
    succeed(&["train", path(&run_file(dir, &graph, &rest))]);
    run
}

/// Needs a Python with `polars`, `duckdb` and `zarr`, named by `GNARL_PYTHON`.
#[test]
fn other_programs_read_the_same_values() {
    let Ok(python) = std::env::var("GNARL_PYTHON") else {
        eprintln!("skipped: GNARL_PYTHON does not name a Python with polars, duckdb and zarr");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let run = trained(dir.path());
    let what = "embeddings,logits,classes,probabilities";
    let formats =
        if cfg!(feature = "zarr") { &["parquet", "csv", "zarr"][..] } else { &["parquet", "csv"] };
    for format in formats {
        let out = dir.path().join(format!("out.{format}"));
        succeed(&["infer", path(&run), "--out", path(&out), "--what", what]);
    }
    let output = Command::new(&python).args(["-c", READERS, path(dir.path())]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
}

#[cfg(feature = "zarr")]
#[test]
fn a_zarr_group_is_replaced_only_if_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let run = trained(dir.path());
    let out = dir.path().join("out.zarr");
    let infer = ["infer", path(&run), "--out", path(&out), "--what", "embeddings,classes"];
    let found = succeed(&infer);
    assert_eq!(found["files"], serde_json::json!([path(&out)]));
    assert!(out.join("zarr.json").exists() && out.join("embedding").join("c").exists());
    let text = crate::common::fail(&infer, 2);
    assert!(text.contains("out.zarr: exists already") && text.contains("--force"), "{text}");
    succeed(&[&infer[..], &["--force"]].concat());
    std::fs::remove_file(out.join("zarr.json")).unwrap();
    let text = crate::common::fail(&[&infer[..], &["--force"]].concat(), 2);
    assert!(text.contains("is not a Zarr group"), "{text}");
}

#[cfg(not(feature = "zarr"))]
#[test]
fn builds_without_zarr_say_so() {
    let dir = tempfile::tempdir().unwrap();
    let run = trained(dir.path());
    let out = dir.path().join("out.zarr");
    let text = crate::common::fail(&["infer", path(&run), "--out", path(&out)], 2);
    assert!(text.contains("built without Zarr") && text.contains("feature zarr"), "{text}");
}
