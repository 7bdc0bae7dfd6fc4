//! Training within a memory budget: whole processes, so that all they take is measured.

use crate::common::{path, run_file, succeed};
use serde_json::Value;

/// Trains on a community graph with and without a budget: the same losses, and no more than the budget, also in
/// evaluation.
#[cfg(target_os = "linux")]
fn trains_within(budget: u64, (nodes, width): (u64, u64), model: &str) {
    let dir = tempfile::tempdir().unwrap();
    let graph = dir.path().join("graph");
    let nodes = nodes.to_string();
    let width = width.to_string();
    let community = ["generate", "community", "--communities", "8", "--classes", "8"];
    let size = ["--nodes", &nodes, "--features", &width, "--average-degree", "8"];
    succeed(&[&community[..], &size, &["--out", path(&graph)]].concat());
    let rest = format!("[model]\n{model}\n[train]\nstrategy = 'tensor'\nepochs = 2\n");
    let file = run_file(dir.path(), &graph, &rest);
    let train = |name: &str, memory: &[&str]| {
        let out = format!("output.dir='{}'", dir.path().join(name).display());
        succeed(&[&["train", path(&file), "--set", &out][..], memory].concat())
    };
    let whole = train("whole", &[]);
    let memory = format!("tensor.memory='{budget}B'");
    let within = train("within", &["--set", &memory]);
    let peak = |summary: &Value| summary["peak_rss_bytes"].as_u64().unwrap();
    assert!(peak(&within) <= budget, "{} of {budget} bytes", peak(&within));
    assert!(peak(&whole) > budget, "nothing to save: {} bytes", peak(&whole));
    let losses = |summary: &Value| -> Vec<f64> {
        summary["losses"].as_array().unwrap().iter().map(|l| l.as_f64().unwrap()).collect()
    };
    let (expected, found) = (losses(&whole), losses(&within));
    assert!(
        expected.iter().zip(&found).all(|(a, b)| (a - b).abs() < 1e-5),
        "{expected:?} {found:?}"
    );
    assert_eq!(whole["test"], within["test"]);
    let judged = succeed(&["eval", path(&dir.path().join("within"))]);
    assert_eq!(judged["test"], within["test"]);
    assert!(peak(&judged) <= budget, "{} of {budget} bytes to judge", peak(&judged));
}

#[test]
#[cfg(target_os = "linux")]
fn features_four_times_the_budget_train_within_it_to_the_same_losses() {
    const NODES: u64 = 60_000;
    const WIDTH: u64 = 1600;
    const BUDGET: u64 = 96_000_000;
    const { assert!(4 * NODES * WIDTH >= 4 * BUDGET) };
    trains_within(BUDGET, (NODES, WIDTH), "name = 'gcn'\nhidden = 64");
}

/// Messages of two layers with their gradients alone would take more.
#[test]
#[cfg(target_os = "linux")]
fn attention_trains_within_a_budget_to_the_same_losses() {
    const NODES: u64 = 40_000;
    const HIDDEN: u64 = 256;
    const BUDGET: u64 = 100_000_000;
    const { assert!(4 * 4 * NODES * HIDDEN > BUDGET) };
    let model = format!("name = 'gat'\nlayers = 3\nhidden = {HIDDEN}\nheads = 8");
    trains_within(BUDGET, (NODES, 64), &model);
}

#[test]
#[cfg(target_os = "linux")]
fn parts_of_a_graph_twice_the_budget_train_within_it_in_turns() {
    const NODES: u64 = 60_000;
    const WIDTH: u64 = 1600;
    const BUDGET: u64 = 192_000_000;
    let dir = tempfile::tempdir().unwrap();
    let graph = dir.path().join("graph");
    let parts = dir.path().join("parts");
    let nodes = NODES.to_string();
    let width = WIDTH.to_string();
    let community = ["generate", "community", "--communities", "8", "--classes", "8"];
    let size = ["--nodes", &nodes, "--features", &width, "--average-degree", "8"];
    succeed(&[&community[..], &size, &["--out", path(&graph)]].concat());
    const { assert!(4 * NODES * WIDTH >= 2 * BUDGET) };
    let cut = ["partition", path(&graph), "--algorithm", "random", "--parts", "64"];
    succeed(&[&cut[..], &["--layout", "storage", "--out", path(&parts)]].concat());
    let rest = "[model]\nname = 'sage'\nhidden = 16\n[sample]\nfanouts = [3, 3]\nbatch_size = 64\n\
                [train]\nepochs = 2\nprefetch = 1\n[evaluate]\nsplits = []\n";
    let file = run_file(dir.path(), &graph, rest);
    let place = format!("partition.path='{}'", parts.display());
    let train = |name: &str, strategy: &[&str]| {
        let out = format!("output.dir='{}'", dir.path().join(name).display());
        succeed(&[&["train", path(&file), "--set", &out, "--set", &place][..], strategy].concat())
    };
    let whole = train("whole", &[]);
    let strategy = "train.strategy=disaggregated";
    let within = train("within", &["--set", strategy, "--set", "disaggregated.resident=4"]);
    let peak = |summary: &Value| summary["peak_rss_bytes"].as_u64().unwrap();
    assert!(peak(&within) <= BUDGET, "{} of {BUDGET} bytes", peak(&within));
    assert!(peak(&whole) > BUDGET, "nothing to save: {} bytes", peak(&whole));
}
