//! Files that are read ahead of batches: the same numbers, whatever the task and the kind of graph.

use bytesize::ByteSize;
use gnarl_config::{Parts, ReadAhead, RunConfig, Strategy, TaskKind};
use gnarl_graph::generate::{Attributes, HeteroOptions, heterogeneous};
use gnarl_train::{Begin, run};

use super::bench::Bench;

/// No row of features stays in memory.
const ALL_FROM_FILES: (ReadAhead, Option<ByteSize>) = (ReadAhead::Always, Some(ByteSize(0)));

/// Runs of nodes, typed nodes and links, of two epochs that are evaluated each.
fn runs(bench: &Bench) -> [RunConfig; 3] {
    let attributes =
        Attributes { features: 8, train: 0.5, valid: 0.2, test: 0.3, ..Default::default() };
    let options = HeteroOptions { nodes: 800, edges: 6000, attributes, ..Default::default() };
    heterogeneous(&options, &bench.path("typed")).unwrap();
    let nodes = bench.config("nodes");
    let mut typed = bench.config("typed-run");
    typed.dataset.path = bench.path("typed");
    typed.task.node_type = Some("paper".into());
    typed.model.name = "rgcn".into();
    let mut links = bench.config("links");
    links.task.kind = TaskKind::LinkPrediction;
    links.decoder.name = "dot".into();
    links.negatives.count = 16;
    [nodes, typed, links].map(|mut run| {
        run.train.epochs = 2;
        run
    })
}

#[test]
fn reading_ahead_changes_no_number() {
    let bench = Bench::new();
    for mut config in runs(&bench) {
        let none = (ReadAhead::Never, None);
        let [never, ahead @ ..] = [none, (ReadAhead::Always, None), ALL_FROM_FILES].map(|asked| {
            (config.dataset.read_ahead, config.dataset.cache_memory) = asked;
            config.check().unwrap();
            run(&config, Begin::Restart, &|_| ()).unwrap().summary
        });
        let name = config.output.dir.display();
        for ahead in ahead {
            assert_eq!(never.losses, ahead.losses, "{name}");
            assert_eq!(never.test, ahead.test, "{name}");
        }
    }
}

#[test]
fn a_run_may_go_on_with_another_way_to_read() {
    let bench = Bench::new();
    let mut config = bench.config("run");
    let whole = run(&config, Begin::Restart, &|_| ()).unwrap().summary;
    config.train.epochs = 1;
    run(&config, Begin::Restart, &|_| ()).unwrap();
    config.train.epochs = 3;
    (config.dataset.read_ahead, config.dataset.cache_memory) = ALL_FROM_FILES;
    let resumed = run(&config, Begin::Resume, &|_| ()).unwrap().summary;
    assert_eq!(resumed.losses, whole.losses);
}

/// Each part has a cache of its own, and all of them count.
#[test]
fn parts_that_train_alone_read_ahead_too() {
    let bench = Bench::new();
    let mut config = bench.config("average");
    config.partition.parts = Parts::Count(4);
    config.train.strategy = Strategy::Average;
    config.train.epochs = 4;
    config.evaluate.splits = Vec::new();
    let mut trained = |read_ahead| {
        config.dataset.read_ahead = read_ahead;
        run(&config, Begin::Restart, &|_| ()).unwrap()
    };
    let never = trained(ReadAhead::Never);
    let ahead = trained(ReadAhead::Always);
    assert_eq!(never.summary.losses, ahead.summary.losses);
    assert_eq!(never.history[3].cache_hit_rate, None);
    let rate = ahead.history[3].cache_hit_rate.unwrap();
    assert!(rate > 0.5, "{rate} of rows of the last epoch were read before");
}
