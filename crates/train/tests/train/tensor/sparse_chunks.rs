//! Steps in chunks over sparse features.

use std::path::Path;

use gnarl_common::Element;
use gnarl_common::rng::Key;
use gnarl_config::{RandomSplit, RunConfig, Strategy};
use gnarl_graph::{DEFAULT_NODE_TYPE, DatasetWriter, FinishOptions, IdWidth, Triple};
use gnarl_nn::models::Aggregator;
use gnarl_train::{Begin, run};

use super::{config, train};

const NODES: u64 = 300;

/// A name, a model, and the rest of its run.
type Case = (&'static str, &'static str, fn(&mut RunConfig));

/// A graph `graph` in `dir` of nodes with a few words, one of which tells their class.
fn generate(dir: &Path) {
    let draw = |of: u64, i: u64, below: u64| {
        let unit = Key::new(5).with(of).unit(i);
        (unit * below as f64) as u64
    };
    let mut out = DatasetWriter::create(dir.join("graph"), IdWidth::U32).unwrap();
    let nodes = out.add_node_type(DEFAULT_NODE_TYPE, NODES);
    (nodes.csr_width, nodes.classes) = (Some(40), Some(3));
    let mut edges = out.edge_writer(&Triple::plain(), Some((NODES, NODES))).unwrap();
    let src: Vec<u64> = (0..6 * NODES).map(|i| draw(0, i, NODES)).collect();
    let dst: Vec<u64> = (0..6 * NODES).map(|i| i % NODES).collect();
    edges.push(&src, &dst).unwrap();
    let columns = edges.finish().unwrap();
    out.add_edge_type(Triple::plain(), columns);
    let words = |node: u64| [(node % 3) as u32, 3 + draw(1, node, 37) as u32];
    let indptr: Vec<u64> = (0..=NODES).map(|node| 2 * node).collect();
    column(&mut out, "features.indptr", &indptr);
    column(&mut out, "features.indices", &(0..NODES).flat_map(words).collect::<Vec<u32>>());
    column(&mut out, "features.values", &vec![1.0f32; 2 * NODES as usize]);
    column(&mut out, "label", &(0..NODES).map(|node| (node % 3) as i32).collect::<Vec<i32>>());
    out.finish(FinishOptions::default()).unwrap();
}

fn column<T: Element>(out: &mut DatasetWriter, name: &str, values: &[T]) {
    let mut column = out.node_column::<T>(DEFAULT_NODE_TYPE, name, &[]).unwrap();
    column.push(values).unwrap();
    let spec = column.finish().unwrap();
    out.node_type(DEFAULT_NODE_TYPE).unwrap().columns.push(spec);
}

fn run_of(dir: &Path, name: &str, model: &str) -> RunConfig {
    let mut config = config(dir, name, model);
    config.dataset.split = Some(RandomSplit { train: 0.5, valid: 0.2, test: 0.3, seed: 0 });
    config.train.strategy = Strategy::Tensor;
    (config.model.dropout, config.model.attention_dropout) = (0.1, 0.1);
    config
}

#[test]
fn bags_of_words_train_in_chunks_as_they_do_whole() {
    let dir = tempfile::tempdir().unwrap();
    generate(dir.path());
    let models: [Case; 4] = [
        ("gcn", "gcn", |_| ()),
        ("gat", "gat", |_| ()),
        ("decoupled", "gat", |c| c.model.decoupled = true),
        ("max", "sage", |c| {
            (c.model.aggregator, c.model.input_dropout) = (Aggregator::MaxPool, Some(0.0));
        }),
    ];
    for (name, model, change) in models {
        let mut whole = run_of(dir.path(), &format!("{name}-whole"), model);
        change(&mut whole);
        let expected = train(&whole).summary.losses;
        assert!(expected[4] < expected[0], "{name}: {expected:?}");
        for workers in [1, 3] {
            let mut chunked = run_of(dir.path(), &format!("{name}-{workers}"), model);
            change(&mut chunked);
            (chunked.tensor.chunks, chunked.train.workers) = (4, workers);
            let found = train(&chunked).summary.losses;
            let apart = expected.iter().zip(&found).map(|(a, b)| (a - b).abs());
            assert!(apart.fold(0.0, f64::max) < 1e-5, "{name}: {expected:?} {found:?}");
        }
    }
}

#[test]
fn dropped_words_that_max_pooling_would_keep_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    generate(dir.path());
    let mut config = run_of(dir.path(), "run", "sage");
    config.model.aggregator = Aggregator::MaxPool;
    config.model.input_dropout = Some(0.5);
    config.tensor.chunks = 2;
    let error = run(&config, Begin::Fresh, &|_| ()).map(drop).unwrap_err();
    assert_eq!(error.exit_code(), 2);
    assert!(error.to_string().contains("max-pooling does not train in chunks"), "{error}");
}
