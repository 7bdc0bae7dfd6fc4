//! Link prediction by full-graph steps.

use std::path::Path;

use gnarl_config::{Leakage, RunConfig, Strategy, TaskKind};
use gnarl_graph::import::{TriplesOptions, triples};
use gnarl_nn::models::{Aggregator, Decomposition};
use gnarl_train::{Begin, run};

use super::equal::{one_step_moves_weights_alike, runs_end_alike};
use super::{config, generate, heterogeneous, train};

/// Odd numbers of nodes, features and columns of rows.
fn graph(dir: &Path) {
    generate(dir, 401, 21, 3);
}

pub fn links(dir: &Path, name: &str, model: &str) -> RunConfig {
    let mut config = config(dir, name, model);
    config.task.kind = TaskKind::LinkPrediction;
    (config.task.valid, config.task.test) = (0.1, 0.1);
    config.embedding.dim = 7;
    config.decoder.name = "dot".into();
    config.loss.name = "bce".into();
    config.negatives.count = 24;
    config.sample.batch_size = 300;
    config.train.epochs = 3;
    config
}

/// Batches whose edges leave the message graph, and one step an epoch over edges that stay.
fn same_for_any_number_of_ranks(model: &str, change: impl Fn(&mut RunConfig)) {
    let dir = tempfile::tempdir().unwrap();
    graph(dir.path());
    let make = |name: &str| {
        let mut config = links(dir.path(), name, model);
        change(&mut config);
        config
    };
    runs_end_alike(&make, "roc_auc", 1e-3);
    one_step_moves_weights_alike(&|name| {
        let mut config = make(name);
        config.task.leakage = Leakage::Keep;
        config.sample.batch_size = 0;
        config
    });
}

#[test]
fn gcn_is_the_same_for_any_number_of_ranks() {
    same_for_any_number_of_ranks("gcn", |_| ());
}

#[test]
fn sage_is_the_same_for_any_number_of_ranks() {
    same_for_any_number_of_ranks("sage", |c| {
        c.negatives.kind = "in-batch".into();
        c.decoder.name = "mlp".into();
    });
}

#[test]
fn gin_is_the_same_for_any_number_of_ranks() {
    same_for_any_number_of_ranks("gin", |c| {
        c.train.lr = 0.003;
        c.decoder.name = "cosine".into();
    });
}

#[test]
fn ngnn_is_the_same_for_any_number_of_ranks() {
    same_for_any_number_of_ranks("ngnn", |_| ());
}

#[test]
fn gat_is_the_same_for_any_number_of_ranks() {
    same_for_any_number_of_ranks("gat", |c| c.negatives.kind = "uniform".into());
}

#[test]
fn decoupled_gcn_is_the_same_for_any_number_of_ranks() {
    same_for_any_number_of_ranks("gcn", |c| {
        c.model.decoupled = true;
        (c.model.propagations, c.model.teleport) = (Some(3), 0.1);
    });
}

/// R-GCN over edges of several node types; of those asked for heads are of one type and tails of another.
#[test]
fn edges_between_types_are_the_same_for_any_number_of_ranks() {
    let dir = tempfile::tempdir().unwrap();
    heterogeneous::graph(dir.path(), 3);
    over_types_is_the_same_for_any_number_of_ranks(&|name| {
        let mut config = links(dir.path(), name, "rgcn");
        config.task.edge_type = Some("paper:r0:author".into());
        config
    });
}

#[test]
fn decoupled_rgcn_is_the_same_for_any_number_of_ranks() {
    let dir = tempfile::tempdir().unwrap();
    heterogeneous::graph(dir.path(), 3);
    over_types_is_the_same_for_any_number_of_ranks(&|name| {
        let mut config = links(dir.path(), name, "rgcn");
        config.task.edge_type = Some("paper:r0:author".into());
        config.model.decoupled = true;
        (config.model.propagations, config.model.teleport) = (Some(3), 0.1);
        config
    });
}

/// Edges leave their groups, and the sums of the others stand for them.
#[test]
fn layers_of_edge_types_are_the_same_for_any_number_of_ranks() {
    let dir = tempfile::tempdir().unwrap();
    heterogeneous::graph(dir.path(), 3);
    for layer in ["sage", "gat", "gin"] {
        over_types_is_the_same_for_any_number_of_ranks(&|name| {
            let mut config = links(dir.path(), &format!("{layer}-{name}"), "hetero");
            config.task.edge_type = Some("paper:r0:author".into());
            config.model.relation_layer = layer.into();
            config.train.lr = 0.003;
            config
        });
    }
}

#[test]
fn attention_between_types_is_the_same_for_any_number_of_ranks() {
    let dir = tempfile::tempdir().unwrap();
    heterogeneous::graph(dir.path(), 3);
    for model in ["rgat", "hgt"] {
        over_types_is_the_same_for_any_number_of_ranks(&|name| {
            let mut config = links(dir.path(), &format!("{model}-{name}"), model);
            config.task.edge_type = Some("paper:r0:author".into());
            config.model.heads = 2;
            config
        });
    }
}

/// Entities on a ring, and relations that lead some steps on.
#[test]
fn knowledge_graphs_are_the_same_for_any_number_of_ranks() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = [const { String::new() }; 3];
    for head in 0..101 {
        for relation in 0..5 {
            let tail = (head + 2 * relation + 1) % 101;
            let split = [0, 0, 0, 0, 1, 2][(7 * head + 3 * relation) % 6];
            files[split] += &format!("e{head}\tr{relation}\te{tail}\n");
        }
    }
    let path = |name: &str| dir.path().join(name);
    for (name, text) in ["train", "valid", "test"].iter().zip(files) {
        std::fs::write(path(name), text).unwrap();
    }
    let options = TriplesOptions {
        train: path("train"),
        valid: Some(path("valid")),
        test: Some(path("test")),
        num_entities: None,
        entities: None,
        relations: None,
        delimiter: None,
        memory: 1 << 26,
    };
    triples(&options, &path("graph")).unwrap();
    over_types_is_the_same_for_any_number_of_ranks(&|name| {
        let mut config = links(dir.path(), name, "rgcn");
        config.decoder.name = "distmult".into();
        config.model.decomposition = Decomposition::Basis;
        config.model.bases = 3;
        config.sample.batch_size = 90;
        config
    });
}

fn over_types_is_the_same_for_any_number_of_ranks(make: &dyn Fn(&str) -> RunConfig) {
    let make = |name: &str| {
        let mut config = make(name);
        config.model.hidden = 10;
        // Adam divides gradients by their size, and some are all rounding.
        config.optimizer.eps = 1e-5;
        config
    };
    runs_end_alike(&make, "roc_auc", 2e-3);
    one_step_moves_weights_alike(&|name| {
        let mut config = make(name);
        config.task.leakage = Leakage::Keep;
        config.sample.batch_size = 0;
        // Embeddings have an optimizer of their own, which divides gradients by their size.
        config.embedding.lr = Some(1e-3);
        config
    });
}

/// The last batch has fewer edges than there are ranks: all take part all the same.
#[test]
fn ranks_without_edges_of_their_own_take_part() {
    let dir = tempfile::tempdir().unwrap();
    graph(dir.path());
    let run = |workers: usize| {
        let mut config = links(dir.path(), &format!("{workers}"), "sage");
        (config.train.strategy, config.train.workers) = (Strategy::Tensor, workers);
        config.train.epochs = 1;
        let edges = train(&config).history[0].seeds as usize;
        config.sample.batch_size = edges - 2;
        config.output.dir = dir.path().join(format!("{workers}-short"));
        train(&config).summary.losses
    };
    let alone = run(1);
    assert!((alone[0] - run(4)[0]).abs() < 1e-4);
}

/// Ids and rows one way, gradients of rows back, beside the exchanges of layers; at most what giving all
/// rows to all ranks takes.
#[test]
fn ends_are_fetched_from_where_they_are() {
    let dir = tempfile::tempdir().unwrap();
    graph(dir.path());
    let mut config = links(dir.path(), "run", "mlp");
    (config.train.strategy, config.train.workers) = (Strategy::Tensor, 4);
    config.train.epochs = 1;
    config.sample.batch_size = 0;
    let sent = train(&config).history[0].exchanged_bytes.unwrap();
    let all = 4 * 3 * 401;
    assert!(sent.backward > 0 && sent.backward <= 7 * all, "{sent:?}");
    assert!(sent.backward.is_multiple_of(7 * 4), "whole rows: {sent:?}");
    // A perceptron exchanges nothing else.
    assert_eq!(sent.forward, sent.backward + sent.backward / 7, "{sent:?}");
}

#[test]
fn what_cannot_train_by_columns_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    graph(dir.path());
    let refused = |name: &str, change: &dyn Fn(&mut RunConfig)| {
        let mut config = links(dir.path(), name, "sage");
        config.train.strategy = Strategy::Tensor;
        config.train.workers = 2;
        change(&mut config);
        let error = config.check().and_then(|()| run(&config, Begin::Fresh, &|_| ()).map(drop));
        let error = error.unwrap_err();
        assert_eq!(error.exit_code(), 2, "{error}");
        error.to_string()
    };
    let none = refused("none", &|c| c.model.name = "none".into());
    assert!(none.contains("model.name is 'none'"), "{none}");
    let all = refused("all", &|c| c.sample.batch_size = 0);
    assert!(all.contains("leaves none for messages"), "{all}");
    let lstm = refused("lstm", &|c| c.model.aggregator = Aggregator::Lstm);
    assert!(lstm.contains("the recurrence mixes all features"), "{lstm}");
}
