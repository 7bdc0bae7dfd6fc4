//! One worker computes the part of the graph that the loss, or a score, depends on.

use gnarl_config::{RunConfig, Strategy};
use gnarl_graph::generate::{Attributes, CommunityOptions, community};

use super::equal::runs_end_alike;
use super::{config, train};

/// A graph of which few nodes are trained on, and few evaluated.
fn sparsely_labelled(dir: &std::path::Path) {
    let attributes = Attributes {
        features: 9,
        classes: 3,
        train: 0.04,
        valid: 0.03,
        test: 0.03,
        ..Attributes::default()
    };
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
    let dir = tempfile::tempdir().unwrap();
    sparsely_labelled(dir.path());
    for model in ["gcn", "sage", "gat"] {
        let make = |name: &str| config(dir.path(), &format!("{model}-{name}"), model);
        runs_end_alike(&make, "accuracy", 1e-9);
        let [part, all] = [1, 2].map(|workers| edges(&make(&format!("sliced-{workers}"))));
        assert!(2 * part < all, "{model}: {part} of {all} edges");
    }
}

/// Layers of a decoupled model pass messages several times: all rows are computed.
#[test]
fn decoupled_models_have_no_part() {
    let dir = tempfile::tempdir().unwrap();
    sparsely_labelled(dir.path());
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
