//! The answer to "does this work together?": every yes trains, every no is refused with that reason, and
//! docs/support.md says the same.

mod graphs;
mod table;

use std::path::Path;

use gnarl_config::support::Combination;
use gnarl_config::{RunConfig, Servers, Strategy, TaskKind};
#[cfg(feature = "serve")]
use gnarl_graph::Dataset;
#[cfg(feature = "serve")]
use gnarl_partition::{PartitionConfig, Parts, partition_dataset};
use gnarl_train::{Begin, run};
#[cfg(feature = "serve")]
use gnarl_train::{Registry, partition_for_task};

use graphs::Graphs;
use table::{Execution, MODELS, Model, TASKS, Task};

/// The quickest partitioner: it is not what is tested, and runs once for nearly every combination.
const ALGORITHM: &str = "ldg";

/// A run of a combination on its small graph.
fn config(graphs: &Graphs, task: &Task, model: &Model, execution: &Execution) -> RunConfig {
    let mut config = RunConfig::default();
    config.dataset.path = graphs.of(task);
    config.task.kind = task.kind;
    config.task.edge_type = task.edge_type.map(Into::into);
    config.model.layers = 2;
    config.model.hidden = 8;
    config.model.heads = 2;
    config.embedding.dim = 8;
    config.decoder.hidden = 8;
    config.partition.algorithm = ALGORITHM.into();
    config.negatives.count = 4;
    config.sample.fanouts = vec![3, 3];
    config.sample.batch_size = 64;
    config.train.epochs = 2;
    config.train.threads = 2;
    config.train.deadline_seconds = 60.0;
    config.output.dir = graphs.dir().join("run");
    (model.set)(&mut config);
    (execution.set)(&mut config);
    config
}

#[test]
fn every_yes_trains_and_every_no_is_refused() {
    let graphs = Graphs::new();
    let (mut trained, mut refused) = (0, 0);
    for task in TASKS {
        for model in MODELS.iter().filter(|model| model.is_for(task)) {
            for execution in Execution::ALL.iter().filter(|execution| !execution.served) {
                let config = config(&graphs, task, model, execution);
                let name = format!("{}, {}, {}", task.name, model.name, execution.name);
                let answer = Combination { run: &config, heterogeneous: task.heterogeneous };
                let ran = config.check().and_then(|()| run(&config, Begin::Restart, &|_| {}));
                match (answer.check(), ran) {
                    (Ok(()), Ok(finished)) => {
                        let losses = &finished.summary.losses;
                        assert!(
                            losses.len() == 2 && losses.iter().all(|x| x.is_finite()),
                            "{name}"
                        );
                        trained += 1;
                    }
                    (Err(reason), Err(error)) => {
                        assert_eq!(error.exit_code(), 2, "{name}: {error}");
                        assert_eq!(error.to_string(), reason.to_string(), "{name}");
                        refused += 1;
                    }
                    (Ok(()), Err(error)) => panic!("{name} is said to train: {error}"),
                    (Err(reason), Ok(_)) => panic!("{name} trains, and was refused: {reason}"),
                }
            }
        }
    }
    assert!(trained > 100 && refused > 10, "{trained} trained, {refused} refused");
}

/// Parts of a run's graph, or of its message graph where edges are predicted.
#[cfg(feature = "serve")]
fn parts(config: &RunConfig, out: &Path) {
    let dataset = Dataset::open(&config.dataset.path).unwrap();
    let wanted = PartitionConfig {
        algorithm: ALGORITHM.into(),
        parts: Parts::Count(2),
        ..PartitionConfig::default()
    };
    _ = std::fs::remove_dir_all(out);
    match config.task.kind.is_of_nodes() {
        true => _ = partition_dataset(&dataset, &wanted, out).unwrap(),
        false => {
            let run = (config, &Registry::default());
            _ = partition_for_task(run, &dataset, &wanted, out).unwrap();
        }
    }
}

/// Two workers that have nothing but parts find the losses of one with the whole graph.
#[cfg(feature = "serve")]
#[test]
fn every_yes_on_parts_trains_as_the_whole_graph() {
    let graphs = Graphs::new();
    let mut trained = 0;
    for task in TASKS {
        let models = MODELS.iter().filter(|model| model.is_for(task));
        let served = Execution::ALL.iter().filter(|execution| execution.served);
        for (model, execution) in models.flat_map(|model| served.clone().map(move |e| (model, e))) {
            let mut config = config(&graphs, task, model, execution);
            let combination = Combination { run: &config, heterogeneous: task.heterogeneous };
            if combination.check().is_err() {
                continue;
            }
            let name = format!("{}, {}, {}", task.name, model.name, execution.name);
            if task.heterogeneous && config.task.kind.is_of_nodes() {
                config.task.node_type = Some("paper".into());
            }
            let mut whole = config.clone();
            whole.partition.servers = None;
            let out = graphs.dir().join("parts");
            parts(&whole, &out);
            if config.train.strategy == Strategy::Average {
                whole.partition.path = Some(out.clone());
            }
            let whole = run(&whole, Begin::Restart, &|_| {}).unwrap().summary.losses;
            config.dataset.path = Default::default();
            config.partition.path = Some(out);
            config.train.workers = 2;
            let found = run(&config, Begin::Restart, &|_| {});
            let found = found.unwrap_or_else(|e| panic!("{name}: {e}")).summary.losses;
            let near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-4;
            assert!(whole.iter().zip(&found).all(near), "{name}: {whole:?} {found:?}");
            trained += 1;
        }
    }
    assert!(trained > 100, "{trained}");
}

#[test]
fn the_documentation_says_the_same() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/support.md");
    let text = table::document();
    if std::env::var_os("GNARL_UPDATE_DOCS").is_some() {
        std::fs::write(&file, &text).unwrap();
    }
    let found = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(found == text, "docs/support.md is old: run this test with GNARL_UPDATE_DOCS=1");
}

#[test]
fn sampling_decides_too() {
    let answer = |change: &dyn Fn(&mut RunConfig), heterogeneous| {
        let mut run = RunConfig::default();
        change(&mut run);
        Combination { run: &run, heterogeneous }.check().map_err(|e| e.to_string())
    };
    let saint = |run: &mut RunConfig| run.sample.method = gnarl_config::Method::SaintNode;
    assert!(answer(&saint, false).is_ok());
    assert!(answer(&saint, true).unwrap_err().contains("without types only"));
    let served = |run: &mut RunConfig| run.partition.servers = Some(Servers::Ranks);
    let average = |run: &mut RunConfig| {
        served(run);
        run.train.strategy = Strategy::Average;
    };
    assert!(answer(&average, false).is_ok());
    let subgraphs = |run: &mut RunConfig| {
        served(run);
        saint(run);
    };
    assert!(answer(&subgraphs, false).unwrap_err().contains("leave out partition.servers"));
    let of_edges = |run: &mut RunConfig| {
        saint(run);
        run.task.kind = TaskKind::LinkPrediction;
    };
    assert!(answer(&of_edges, false).unwrap_err().contains("not subgraphs"));
    let meta_path = |run: &mut RunConfig| {
        run.train.strategy = Strategy::Tensor;
        run.model.name = "rgcn".into();
        run.sample.meta_path = vec!["a:b:c".into()];
    };
    assert!(answer(&meta_path, true).unwrap_err().contains("takes all neighbors"));
}
