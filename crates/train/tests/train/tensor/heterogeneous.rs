//! Graphs with types by full-graph steps.

use std::collections::BTreeSet;
use std::path::Path;

use gnarl_config::{Method, RunConfig, Strategy};
use gnarl_graph::Dataset;
use gnarl_graph::generate::{Attributes, HeteroOptions, heterogeneous};
use gnarl_nn::Reduce;
use gnarl_nn::models::{Aggregator, Decomposition, Softmax};
use gnarl_sample::HeteroSampleGraph;
use gnarl_train::{Begin, ExchangedBytes, run};

use super::bytes::exchanged;
use super::equal::{one_step_moves_weights_alike, runs_end_alike};
use super::train;

/// Four node types, two of them without features, and eight edge types.
pub fn graph(dir: &Path, communities: u64) {
    sized(dir, (803, 5000), communities);
}

fn sized(dir: &Path, (nodes, edges): (u64, u64), communities: u64) {
    let attributes = Attributes {
        features: 9,
        noise: 1.0,
        train: 0.5,
        valid: 0.2,
        test: 0.3,
        ..Attributes::default()
    };
    let options = HeteroOptions { nodes, edges, communities, attributes, ..Default::default() };
    heterogeneous(&options, &dir.join("graph")).unwrap();
}

/// A run of one rank on it.
pub fn nodes_of(dir: &Path, name: &str) -> RunConfig {
    let mut config = RunConfig::default();
    config.dataset.path = dir.join("graph");
    config.task.node_type = Some("paper".into());
    config.model.name = "rgcn".into();
    config.model.hidden = 10;
    config.model.dropout = 0.3;
    config.model.input_dropout = Some(0.1);
    config.sample.method = Method::Full;
    config.sample.batch_size = 0;
    config.train.epochs = 5;
    config.train.threads = 2;
    config.train.deadline_seconds = 60.0;
    config.output.dir = dir.join(name);
    config
}

pub fn same_for_any_number_of_ranks(change: impl Fn(&mut RunConfig)) {
    let dir = tempfile::tempdir().unwrap();
    graph(dir.path(), 3);
    let make = |name: &str| {
        let mut config = nodes_of(dir.path(), name);
        change(&mut config);
        config
    };
    one_step_moves_weights_alike(&|name| {
        let mut config = make(name);
        // Embeddings have an optimizer of their own, which divides gradients by their size.
        config.embedding.lr = Some(1e-3);
        config
    });
    runs_end_alike(&make, "accuracy", 1e-9);
}

#[test]
fn rgcn_is_the_same_for_any_number_of_ranks() {
    same_for_any_number_of_ranks(|_| ());
}

#[test]
fn a_deep_model_is_the_same_for_any_number_of_ranks() {
    same_for_any_number_of_ranks(|c| c.model.layers = 3);
}

/// The last layer makes more columns than it reads.
#[test]
fn a_narrow_model_is_the_same_for_any_number_of_ranks() {
    same_for_any_number_of_ranks(|c| c.model.hidden = 2);
}

#[test]
fn bases_are_the_same_for_any_number_of_ranks() {
    for bases in [1, 2, 30] {
        same_for_any_number_of_ranks(|c| {
            (c.model.decomposition, c.model.bases) = (Decomposition::Basis, bases);
        });
    }
}

#[test]
fn blocks_are_the_same_for_any_number_of_ranks() {
    same_for_any_number_of_ranks(|c| {
        (c.model.decomposition, c.model.bases) = (Decomposition::Block, 5);
    });
}

/// The columns of a head are cut by the shares of three ranks.
#[test]
fn rgat_is_the_same_for_any_number_of_ranks() {
    for softmax in [Softmax::Within, Softmax::Across] {
        same_for_any_number_of_ranks(|c| {
            (c.model.name, c.model.heads, c.model.softmax) = ("rgat".into(), 2, softmax);
        });
    }
}

/// Two heads of five columns over three ranks: the second rank has columns of both.
#[test]
fn hgt_is_the_same_for_any_number_of_ranks() {
    same_for_any_number_of_ranks(|c| (c.model.name, c.model.heads) = ("hgt".into(), 2));
}

#[test]
fn layers_of_edge_types_are_the_same_for_any_number_of_ranks() {
    let layers = [("sage", Reduce::Sum), ("gat", Reduce::Mean), ("gin", Reduce::Max)];
    for (layer, across) in layers {
        same_for_any_number_of_ranks(|c| {
            c.model.name = "hetero".into();
            (c.model.relation_layer, c.model.across) = (layer.into(), across);
            c.model.attention_dropout = 0.2;
            c.train.lr = 0.003;
        });
    }
    same_for_any_number_of_ranks(|c| {
        (c.model.name, c.model.aggregator) = ("hetero".into(), Aggregator::MaxPool);
    });
}

/// Two dense layers of each node type, and three propagations.
fn decouple(config: &mut RunConfig) {
    config.model.decoupled = true;
    config.model.propagations = Some(3);
}

#[test]
fn decoupled_rgcn_is_the_same_for_any_number_of_ranks() {
    same_for_any_number_of_ranks(decouple);
    same_for_any_number_of_ranks(|c| {
        decouple(c);
        c.model.teleport = 0.1;
    });
}

/// As without types: an exchange of as many columns as there are classes there, and one back.
#[test]
fn four_exchanges_are_enough() {
    let dir = tempfile::tempdir().unwrap();
    graph(dir.path(), 4);
    let nodes = counts(&opened(dir.path()))[0];
    for (ranks, layers, propagations) in [(2, 2, 2), (4, 1, 5), (2, 3, 10)] {
        let mut config = nodes_of(dir.path(), &format!("{ranks}-{layers}"));
        config.model.decoupled = true;
        (config.model.layers, config.model.propagations) = (layers, Some(propagations));
        (config.train.strategy, config.train.workers) = (Strategy::Tensor, ranks as usize);
        let each_way = 2 * nodes * 4 * (ranks - 1) / ranks * 4;
        let all = ExchangedBytes { forward: each_way, backward: each_way };
        assert_eq!(exchanged(&config), [Some(all); 5], "{ranks} ranks, {layers} layers");
    }
}

/// Sampled neighbors: a part of a node's mean for each edge type that it hears somebody over.
#[test]
fn decoupled_rgcn_learns_from_sampled_neighbors() {
    let dir = tempfile::tempdir().unwrap();
    graph(dir.path(), 3);
    let mut config = nodes_of(dir.path(), "sampled");
    decouple(&mut config);
    config.model.teleport = 0.1;
    (config.sample.method, config.sample.fanouts) = (Method::Neighbor, vec![4, 3, 2]);
    config.sample.batch_size = 60;
    let found = train(&config).summary;
    assert!(found.losses[4] < 0.9 * found.losses[0], "{:?}", found.losses);
    assert!(found.test["accuracy"] > 0.5, "{:?}: three classes", found.test);
}

#[test]
fn a_perceptron_is_the_same_for_any_number_of_ranks() {
    same_for_any_number_of_ranks(|c| c.model.name = "mlp".into());
}

/// So few nodes that ranks lack some types, and then that one has none at all.
#[test]
fn workers_may_lack_a_type_but_not_all() {
    let dir = tempfile::tempdir().unwrap();
    sized(dir.path(), (40, 90), 2);
    let make = |workers: usize, strategy: Strategy| {
        let mut config = nodes_of(dir.path(), &format!("{workers}-{strategy:?}"));
        (config.train.strategy, config.train.workers) = (strategy, workers);
        config
    };
    let expected = train(&make(1, Strategy::Gradient)).summary.losses;
    let found = train(&make(6, Strategy::Tensor)).summary.losses;
    let apart = expected.iter().zip(&found).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(apart < 1e-4, "{expected:?} {found:?}");
    let error = run(&make(41, Strategy::Tensor), Begin::Fresh, &|_| ()).map(drop).unwrap_err();
    assert_eq!(error.exit_code(), 2, "{error}");
    assert!(error.to_string().contains("would have no node"), "{error}");
}

/// What a layer sends each way for each rank that does not have it: the fewest of rows of nodes and of
/// groups as wide as its input, of senders and of nodes as wide as its output, and of nodes once and once
/// more for each basis as wide as either.
#[test]
fn layers_send_the_fewest_rows_and_columns() {
    let dir = tempfile::tempdir().unwrap();
    graph(dir.path(), 4);
    let [nodes, groups, senders] = counts(&opened(dir.path()));
    assert!(
        nodes < groups && groups != senders,
        "{nodes} nodes, {groups} groups, {senders} senders"
    );
    let mut ways = BTreeSet::new();
    for (hidden, bases) in [(12, None), (4, None), (12, Some(1)), (4, Some(1)), (4, Some(20))] {
        let layer = |(input, output): (u64, u64)| {
            let mut all = vec![(nodes + groups) * input, (senders + nodes) * output];
            all.extend(
                bases.iter().flat_map(|b| [(1 + b) * nodes * input, (b + 1) * nodes * output]),
            );
            let least = *all.iter().min().unwrap();
            (all.iter().position(|values| *values == least).unwrap(), least)
        };
        let layers = [layer((hidden, hidden)), layer((hidden, 4))];
        ways.extend(layers.map(|(way, _)| way));
        for ranks in [2, 4] {
            let mut config = nodes_of(dir.path(), &format!("{hidden}-{bases:?}-{ranks}"));
            config.model.hidden = hidden as usize;
            if let Some(bases) = bases {
                config.model.decomposition = Decomposition::Basis;
                config.model.bases = bases as usize;
            }
            (config.train.strategy, config.train.workers) = (Strategy::Tensor, ranks as usize);
            let values: u64 = layers.iter().map(|(_, values)| values).sum();
            let each_way = values * (ranks - 1) / ranks * 4;
            let all = ExchangedBytes { forward: each_way, backward: each_way };
            assert_eq!(exchanged(&config), [Some(all); 5], "{hidden} {bases:?} {ranks}");
        }
    }
    assert!(ways.len() > 2, "{ways:?}");
}

/// Slices of senders or of a part per head of groups, and scores; keys and values of nodes, queries
/// and sums of groups, and scores of heads that two ranks share; sums of rows that are as wide as the
/// input or as the output.
#[test]
fn models_send_rows_scores_and_shared_heads() {
    let dir = tempfile::tempdir().unwrap();
    graph(dir.path(), 4);
    let opened = opened(dir.path());
    let [nodes, groups, senders] = counts(&opened);
    let lists = |edge_type| opened.csc(edge_type).num_edges() as u64;
    let edges: u64 = (0..opened.schema().edge_types().len()).map(lists).sum();
    let share = |values: u64, ranks: u64| values * (ranks - 1) / ranks * 4;
    let scores = |heads: u64, ranks: u64| (ranks - 1) * (senders + groups) * heads * 4;
    let cases: [(&str, &dyn Fn(u64) -> u64); 4] = [
        ("rgat", &|ranks| {
            let layer = |input: u64, output: u64, heads: u64| {
                let values = ((senders + nodes) * output).min((nodes + heads * groups) * input);
                share(values, ranks) + scores(heads, ranks)
            };
            layer(12, 12, 2) + layer(12, 4, 1)
        }),
        ("hgt", &|ranks| {
            // Two heads of six columns: four ranks have three columns each.
            let shared = if ranks == 4 { 2 * 2 * edges * 4 } else { 0 };
            2 * (share(2 * (nodes + groups) * 12, ranks) + shared)
        }),
        ("sage", &|ranks| {
            let last = ((nodes + groups) * 12).min((senders + groups) * 4);
            share((nodes + groups) * 12, ranks) + share(last, ranks)
        }),
        ("gat", &|ranks| {
            let layer = |output: u64| share((senders + groups) * output, ranks) + scores(1, ranks);
            layer(12) + layer(4)
        }),
    ];
    for (model, bytes) in cases {
        for ranks in [2, 4] {
            let mut config = nodes_of(dir.path(), &format!("{model}-{ranks}"));
            config.model.name = model.into();
            if ["sage", "gat"].contains(&model) {
                (config.model.name, config.model.relation_layer) = ("hetero".into(), model.into());
            }
            (config.model.hidden, config.model.heads) = (12, 2);
            (config.train.strategy, config.train.workers) = (Strategy::Tensor, ranks as usize);
            let each_way = bytes(ranks);
            let all = ExchangedBytes { forward: each_way, backward: each_way };
            assert_eq!(exchanged(&config), [Some(all); 5], "{model} on {ranks}");
        }
    }
}

fn opened(dir: &Path) -> HeteroSampleGraph {
    HeteroSampleGraph::open(&Dataset::open(dir.join("graph")).unwrap()).unwrap()
}

/// Nodes, pairs of a node and an edge type that it hears somebody over, and such pairs of those that are
/// heard.
fn counts(graph: &HeteroSampleGraph) -> [u64; 3] {
    let schema = graph.schema();
    let nodes = (0..schema.node_types().len()).map(|t| graph.num_nodes(t) as u64).sum();
    let (mut groups, mut senders) = (0, 0);
    for edge_type in 0..schema.edge_types().len() {
        let lists = graph.csc(edge_type);
        let mut heard: BTreeSet<u32> = BTreeSet::new();
        for node in 0..graph.num_nodes(schema.ends(edge_type).1) as u32 {
            let sources = lists.sources(node);
            groups += u64::from(!sources.is_empty());
            heard.extend(sources);
        }
        senders += heard.len() as u64;
    }
    [nodes, groups, senders]
}

#[test]
fn what_cannot_train_by_columns_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    graph(dir.path(), 3);
    let refused = |name: &str, change: &dyn Fn(&mut RunConfig)| {
        let mut config = nodes_of(dir.path(), name);
        config.train.strategy = Strategy::Tensor;
        config.train.workers = 2;
        change(&mut config);
        let error = config.check().and_then(|()| run(&config, Begin::Fresh, &|_| ()).map(drop));
        let error = error.unwrap_err();
        assert_eq!(error.exit_code(), 2, "{error}");
        format!("{error:?}")
    };
    let lstm = refused("lstm", &|c| {
        (c.model.name, c.model.aggregator) = ("hetero".into(), Aggregator::Lstm);
    });
    assert!(lstm.contains("'hetero' with aggregator 'lstm'"), "{lstm}");
    assert!(lstm.contains("the recurrence mixes all features"), "{lstm}");
    let decoupled = refused("decoupled", &|c| {
        decouple(c);
        c.model.name = "mlp".into();
    });
    assert!(decoupled.contains("'mlp' has no decoupled form"), "{decoupled}");
    let path = refused("path", &|c| {
        c.sample.edge_fanouts.insert("paper:r0:author".into(), vec![0, -1]);
    });
    assert!(path.contains("sample.edge_fanouts"), "{path}");
}
