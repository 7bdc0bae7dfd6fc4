//! GraphBolt datasets become datasets.

use crate::common::{Files, sorted_edges};
use gnarl_graph::import::{GraphboltOptions, graphbolt};
use gnarl_graph::{DEFAULT_NODE_TYPE, Triple};

const METADATA: &str = "
dataset_name: tiny
graph:
  nodes: [{num: 4}]
  edges: [{format: csv, path: edges/e.csv}]
feature_data:
  - {domain: node, name: feat, format: numpy, in_memory: true, path: data/x.npy}
tasks:
  - name: classify
    num_classes: 3
    train_set: [{data: [{name: seeds, format: numpy, path: set/train.npy}, {name: labels, format: numpy, path: set/labels.npy}]}]
    test_set: [{data: [{name: seeds, format: numpy, path: set/test.npy}]}]
";

fn written(metadata: &str) -> (Files, GraphboltOptions) {
    let files = Files::new();
    let path = files.text("metadata.yaml", metadata);
    files.text("edges/e.csv", "0,1\n1,2\n3,0\n");
    files.npy("data/x.npy", &[2], &[1.0f32; 8]);
    files.npy("set/train.npy", &[], &[2i64, 0]);
    files.npy("set/labels.npy", &[], &[1i64, 2]);
    files.npy("set/test.npy", &[], &[3i64]);
    (files, GraphboltOptions { path, task: None, memory: 1 << 26 })
}

#[test]
fn edges_features_and_tasks_are_read() {
    let (files, options) = written(METADATA);
    let dataset = graphbolt(&options, &files.out()).unwrap().dataset;
    assert_eq!(sorted_edges(&dataset, &Triple::plain()), [(0, 1), (1, 2), (3, 0)]);
    let column = |name: &str| dataset.node_column(DEFAULT_NODE_TYPE, name).unwrap().unwrap();
    assert_eq!(column("features").spec().shape, [4, 2]);
    assert_eq!(column("label").values::<i32>().unwrap()[..], [2, -1, 1, -1]);
    assert_eq!(dataset.split(DEFAULT_NODE_TYPE, "train").unwrap().unwrap()[..], [0, 2]);
}

#[test]
fn torch_files_and_bad_ids_are_refused() {
    let torch = METADATA.replace("name: feat, format: numpy", "name: feat, format: torch");
    let (files, options) = written(&torch);
    let message = files.refusal(graphbolt(&options, &files.out()));
    assert!(message.contains("format 'torch'") && message.contains("numpy.save"), "{message}");
    let (files, options) = written(&METADATA.replace("num: 4", "num: 3"));
    let message = files.refusal(graphbolt(&options, &files.out()));
    assert!(message.contains("e.csv: line 3"), "{message}");
}
