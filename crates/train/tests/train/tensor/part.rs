//! One worker computes the part of the graph that the loss, or a score, depends on.

use std::path::Path;

use gnarl_config::{RunConfig, Strategy};
use gnarl_graph::generate::{Attributes, CommunityOptions, community};
use gnarl_train::{Begin, run};

use super::equal::{runs_end_alike, weights};
use super::{config, train};

/// A graph of which few nodes are trained on, and these shares evaluated.
fn sparsely_labelled(dir: &Path, valid: f64, test: f64) {
    let attributes =
        Attributes { features: 9, classes: 3, train: 0.04, valid, test, ..Attributes::default() };
    let options = CommunityOptions {
        nodes: 1500,
        communities: 3,
        average_degree: 5.0,
        attributes,
        ..CommunityOptions::default()
    };
    community(&options, &dir.join("graph")).unwrap();
}

/// Edges of a step.
fn edges(config: &RunConfig) -> u64 {
    let told = std::fs::read_to_string(config.output.dir.join("metrics.jsonl")).unwrap();
    let lines = told.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let edges: Vec<u64> = lines.filter_map(|line| line["sampled_edges"].as_u64()).collect();
    assert!(!edges.is_empty() && edges.iter().all(|&count| count == edges[0]), "{edges:?}");
    edges[0]
}

/// Losses, scores and weights are those of several workers, who compute all rows, and of sampling all neighbors.
#[test]
fn a_step_over_a_part_of_the_graph_is_the_one_over_all() {
    // Scores of few nodes, which are of a part as well, and of all nodes.
    for (valid, test) in [(0.03, 0.03), (0.5, 0.4)] {
        let dir = tempfile::tempdir().unwrap();
        sparsely_labelled(dir.path(), valid, test);
        for model in ["gcn", "sage", "gat"] {
            let make = |name: &str| config(dir.path(), &format!("{model}-{name}"), model);
            runs_end_alike(&make, "accuracy", 1e-9);
            let [part, all] = [1, 2].map(|workers| edges(&make(&format!("sliced-{workers}"))));
            assert!(2 * part < all, "{model}: {part} of {all} edges");
        }
    }
}

/// Layers of a decoupled model pass messages several times: all rows are computed.
#[test]
fn decoupled_models_have_no_part() {
    let dir = tempfile::tempdir().unwrap();
    sparsely_labelled(dir.path(), 0.03, 0.03);
    let [one, two] = [1, 2].map(|workers| {
        let mut config = config(dir.path(), &format!("decoupled-{workers}"), "gcn");
        config.model.decoupled = true;
        config.train.strategy = Strategy::Tensor;
        config.train.workers = workers;
        train(&config);
        edges(&config)
    });
    assert_eq!(one, two);
}

/// A part is made anew, and so is what is remembered of its input.
#[test]
fn a_run_over_a_part_resumes_to_the_same_numbers() {
    let dir = tempfile::tempdir().unwrap();
    sparsely_labelled(dir.path(), 0.5, 0.4);
    let make = |name: &str| {
        let mut config = config(dir.path(), name, "gcn");
        config.train.strategy = Strategy::Tensor;
        config
    };
    let expected = train(&make("whole")).summary;
    let mut stopped = make("stopped");
    stopped.train.epochs = 3;
    train(&stopped);
    stopped.train.epochs = make("whole").train.epochs;
    let found = run(&stopped, Begin::Resume, &|_| ()).unwrap().summary;
    assert_eq!(found.losses, expected.losses);
    assert_eq!(found.test, expected.test);
    assert_eq!(weights(&stopped), weights(&make("whole")));
}
