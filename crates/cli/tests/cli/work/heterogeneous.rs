//! Batches of heterogeneous graphs from batch workers.

use super::{Stored, assert_same_numbers};
use crate::common::{path, succeed};

/// A graph of four node types in six parts, made for the task of the settings `sets`; the settings of runs on it.
fn heterogeneous(stored: Stored, sets: &[&str], task: bool) -> (Stored, Vec<String>) {
    let dir = stored.bench.dir.path();
    let graph = dir.join("typed");
    let parts = dir.join("typed parts");
    let size = ["--nodes", "1600", "--edges", "16000", "--features", "8", "--communities", "4"];
    succeed(&[&["generate", "typed", "--out", path(&graph)][..], &size].concat());
    let mut all = vec![format!("dataset.path={}", graph.display())];
    all.extend(sets.iter().map(ToString::to_string));
    let cut = ["partition", path(&graph), "--parts", "6", "--layout", "storage"];
    let mut cut = [&cut[..], &["--out", path(&parts)]].concat();
    if task {
        cut.extend(["--task", path(&stored.bench.file)]);
        all.iter().for_each(|set| cut.extend(["--set", set]));
    }
    succeed(&cut);
    let place = format!("partition.path={}", parts.display());
    (Stored { place, ..stored }, all)
}

/// Two of the types have embeddings, which batch workers know nothing of.
#[test]
fn nodes_of_heterogeneous_graphs_train_as_without_batch_workers() {
    let sets = ["task.node_type=paper", "model.name=rgcn", "train.epochs=2"];
    let (stored, sets) = heterogeneous(Stored::new(), &sets, false);
    assert_same_numbers(&stored, &sets);
}

#[test]
fn links_between_types_train_as_without_batch_workers() {
    let sets = [
        "task.kind=link-prediction",
        "task.edge_type=paper:r0:author",
        "task.valid=0.1",
        "task.test=0.1",
        "model.name=rgcn",
        "embedding.dim=8",
        "sample.batch_size=256",
        "train.epochs=2",
    ];
    let (stored, sets) = heterogeneous(Stored::new(), &sets, true);
    assert_same_numbers(&stored, &sets);
}
