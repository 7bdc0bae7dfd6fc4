//! Runs that are stopped go on to the same numbers.

use std::panic::{AssertUnwindSafe, catch_unwind};

use gnarl_config::{RunConfig, Strategy};
use gnarl_train::{Begin, run};

use super::equal::weights;
use super::{config, generate, heterogeneous, links, train};

fn ends_with_the_same_numbers(mut config: RunConfig) {
    (config.train.strategy, config.train.workers) = (Strategy::Tensor, 2);
    (config.train.epochs, config.train.checkpoint_seconds) = (5, 0.0);
    let whole = train(&config).summary;
    let expected = weights(&config);
    config.output.dir.set_extension("stopped");
    let stopped = catch_unwind(AssertUnwindSafe(|| {
        run(&config, Begin::Restart, &|record| assert!(record.epoch < 3, "stopped on purpose"))
    }));
    assert!(!matches!(stopped, Ok(Ok(_))), "the run was stopped");
    let resumed = run(&config, Begin::Resume, &|_| ()).unwrap().summary;
    assert_eq!((resumed.losses, resumed.test), (whole.losses, whole.test));
    assert_eq!(weights(&config), expected);
}

/// Its first layer remembers what messages make of the input.
#[test]
fn a_run_that_remembers_its_input() {
    let dir = tempfile::tempdir().unwrap();
    generate(dir.path(), 701, 21, 3);
    let mut config = config(dir.path(), "run", "gcn");
    (config.model.hidden, config.model.input_dropout) = (33, Some(0.0));
    ends_with_the_same_numbers(config.clone());
    config.tensor.chunks = 3;
    config.output.dir = dir.path().join("chunks");
    ends_with_the_same_numbers(config);
}

#[test]
fn a_run_that_predicts_links() {
    let dir = tempfile::tempdir().unwrap();
    generate(dir.path(), 401, 21, 3);
    ends_with_the_same_numbers(links::links(dir.path(), "run", "sage"));
}

/// Two of its node types have rows that are learned.
#[test]
fn a_run_on_a_graph_with_types() {
    let dir = tempfile::tempdir().unwrap();
    heterogeneous::graph(dir.path(), 3);
    ends_with_the_same_numbers(heterogeneous::nodes_of(dir.path(), "run"));
}
