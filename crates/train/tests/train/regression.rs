//! Node regression: learned from neighbors, the same for any number of workers, with each loss; the column `value`
//! is asked for by name.

use std::path::Path;

use gnarl_common::rng::Key;
use gnarl_config::{Parts, RandomSplit, RunConfig, Strategy, TaskKind};
use gnarl_graph::{DEFAULT_NODE_TYPE, DatasetWriter, FinishOptions, IdWidth, Triple};
use gnarl_train::{Begin, Finished, run};

const NODES: u64 = 600;
const WIDTH: usize = 4;

/// A graph in which a node's value is the mean of the first feature over its neighbors, 3 less 1; every tenth node has
/// none.
fn graph(path: &Path) {
    let key = Key::new(11);
    let features: Vec<f32> =
        (0..NODES * WIDTH as u64).map(|i| key.with(1).unit(i) as f32 - 0.5).collect();
    let (mut src, mut dst) = (Vec::new(), Vec::new());
    let mut values = Vec::new();
    for node in 0..NODES {
        let neighbors: Vec<u64> = (1..=4).map(|i| (node + i * i * 7) % NODES).collect();
        let first = |&other: &u64| features[other as usize * WIDTH];
        let mean = neighbors.iter().map(first).sum::<f32>() / neighbors.len() as f32;
        values.push(if node % 10 == 0 { f32::NAN } else { 3.0 * mean - 1.0 });
        src.extend(&neighbors);
        dst.extend(vec![node; neighbors.len()]);
    }
    let mut writer = DatasetWriter::create(path, IdWidth::U32).unwrap();
    writer.add_node_type(DEFAULT_NODE_TYPE, NODES);
    let mut column = writer.node_column(DEFAULT_NODE_TYPE, "features", &[WIDTH as u64]).unwrap();
    column.push(&features).unwrap();
    let features = column.finish().unwrap();
    let mut column = writer.node_column(DEFAULT_NODE_TYPE, "value", &[]).unwrap();
    column.push(&values).unwrap();
    let values = column.finish().unwrap();
    writer.node_type(DEFAULT_NODE_TYPE).unwrap().columns.extend([features, values]);
    let mut edges = writer.edge_writer(&Triple::plain(), Some((NODES, NODES))).unwrap();
    edges.push(&src, &dst).unwrap();
    let edges = edges.finish().unwrap();
    writer.add_edge_type(Triple::plain(), edges);
    writer.finish(FinishOptions::default()).unwrap();
}

fn config(dir: &Path, name: &str) -> RunConfig {
    let path = dir.join("graph");
    if !path.exists() {
        graph(&path);
    }
    let mut config = RunConfig::default();
    config.dataset.path = path;
    config.dataset.split = Some(RandomSplit { train: 0.6, valid: 0.2, test: 0.2, seed: 0 });
    config.task.kind = TaskKind::NodeRegression;
    config.model.hidden = 16;
    config.model.dropout = 0.0;
    config.sample.fanouts = vec![10, 10];
    config.sample.batch_size = 64;
    config.train.epochs = 30;
    config.train.lr = 0.01;
    config.train.deadline_seconds = 60.0;
    config.output.dir = dir.join(name);
    config
}

fn trained(config: &RunConfig) -> Finished {
    run(config, Begin::Fresh, &|_| {}).unwrap()
}

/// The root mean squared error of the mean, 3 · √(1/12/4).
const DEVIATION: f64 = 0.433;

#[test]
fn values_are_learned_from_neighbors_with_each_loss() {
    let dir = tempfile::tempdir().unwrap();
    for loss in ["mse", "mae", "huber"] {
        let mut config = config(dir.path(), loss);
        config.loss.name = loss.into();
        let finished = trained(&config);
        let test = &finished.summary.test;
        assert!(test["rmse"] < 0.3 * DEVIATION, "{loss}: {test:?}");
        assert!(test["mae"] <= test["rmse"], "{loss}: {test:?}");
        assert_eq!(finished.summary.metric, "rmse");
        let kept = gnarl_train::eval_run(&finished.summary.run_dir, None).unwrap();
        assert_eq!(&kept.test, test, "{loss}");
    }
    // A node's own features do not tell.
    let mut alone = config(dir.path(), "mlp");
    alone.model.name = "mlp".into();
    let test = trained(&alone).summary.test;
    assert!(test["rmse"] > 0.8 * DEVIATION, "{test:?}");
}

#[test]
fn each_strategy_learns_the_same_on_any_number_of_workers() {
    let dir = tempfile::tempdir().unwrap();
    for strategy in [Strategy::Gradient, Strategy::Average, Strategy::Tensor] {
        let losses: Vec<Vec<f64>> = [1, 2]
            .map(|workers| {
                let mut config = config(dir.path(), &format!("{strategy}-{workers}"));
                config.train.strategy = strategy;
                config.train.workers = workers;
                config.train.epochs = 6;
                if strategy == Strategy::Average {
                    config.partition.parts = Parts::Count(2);
                }
                if strategy == Strategy::Tensor {
                    config.sample.fanouts = vec![-1, -1];
                }
                trained(&config).summary.losses
            })
            .into();
        assert!(losses[0][5] < 0.7 * losses[0][0], "{strategy}: {:?}", losses[0]);
        for (one, two) in losses[0].iter().zip(&losses[1]) {
            assert!((one - two).abs() <= 1e-4 * one.abs(), "{strategy}: {losses:?}");
        }
    }
}

#[test]
fn what_is_no_regression_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |change: &dyn Fn(&mut RunConfig)| {
        let mut config = config(dir.path(), "refused");
        change(&mut config);
        run(&config, Begin::Fresh, &|_| {}).err().expect("refused").to_string()
    };
    let text = refused(&|c| c.train.metric = Some("accuracy".into()));
    assert!(text.contains("'accuracy'") && text.contains("rmse"), "{text}");
    let text = refused(&|c| c.loss.name = "hubert".into());
    assert!(text.contains("'huber'"), "{text}");
    let text = refused(&|c| (c.loss.name, c.loss.delta) = ("huber".into(), 0.0));
    assert!(text.contains("loss.delta"), "{text}");
    let text = refused(&|c| c.task.kind = TaskKind::NodeClassification);
    assert!(text.contains("no labels"), "{text}");
    let text = refused(&|c| c.task.kind = TaskKind::Custom);
    assert!(text.contains("task.name"), "{text}");
    let text = refused(&|c| (c.task.kind, c.task.name) = (TaskKind::Custom, Some("mine".into())));
    assert!(text.contains("'mine'") && text.contains("add_task"), "{text}");
}
