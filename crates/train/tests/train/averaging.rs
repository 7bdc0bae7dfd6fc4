//! Model averaging with every outer optimizer: results depend on the parts, not on who trains them, and on no
//! interruption.

use std::path::Path;

use gnarl_config::{AverageSection, Batch, Outer, Parts, RunConfig, Strategy};
use gnarl_train::{Begin, EpochRecord, Summary, run};

use super::bench::Bench;

const OUTERS: [Outer; 3] = [Outer::Plain, Outer::SlowMo, Outer::Nesterov];

fn config(bench: &Bench, name: &str, outer: Outer) -> RunConfig {
    let mut config = bench.config(name);
    config.partition.parts = Parts::Count(4);
    config.average.outer = outer;
    config.train.strategy = Strategy::Average;
    config.train.sync_every = 2;
    config.train.epochs = 7;
    config.train.checkpoint_seconds = 0.0;
    config
}

fn train(config: &RunConfig) -> Summary {
    run(config, Begin::Restart, &|_| ()).unwrap().summary
}

fn model(dir: &Path) -> Vec<u8> {
    std::fs::read(dir.join("model.safetensors")).unwrap()
}

#[test]
fn the_number_of_workers_changes_nothing() {
    let bench = Bench::new();
    for outer in OUTERS {
        let config = |workers: usize| {
            let mut config = config(&bench, &format!("{outer:?}-{workers}"), outer);
            config.train.workers = workers;
            config.train.threads = workers;
            config
        };
        let alone = train(&config(1));
        for workers in [2, 4] {
            let many = train(&config(workers));
            assert_eq!(many.losses, alone.losses, "{outer:?} with {workers} workers");
            assert_eq!(many.test, alone.test, "{outer:?} with {workers} workers");
            let [one, other] = [1, workers].map(|workers| model(&config(workers).output.dir));
            assert!(one == other, "weights of {outer:?} with {workers} workers");
        }
    }
}

#[test]
fn outer_optimizers_differ() {
    let bench = Bench::new();
    let losses = OUTERS.map(|outer| train(&config(&bench, &format!("{outer:?}"), outer)).losses);
    // The first two epochs come before any averaging.
    for others in &losses[1..] {
        assert_eq!(others[..2], losses[0][..2]);
    }
    assert_ne!(losses[0], losses[1]);
    assert_ne!(losses[0], losses[2]);
    assert_ne!(losses[1], losses[2]);
}

#[test]
fn a_run_that_was_killed_goes_on_to_the_same_numbers() {
    let bench = Bench::new();
    for outer in OUTERS {
        let config = config(&bench, "whole", outer);
        let half = bench.path(&format!("half-{outer:?}"));
        let copy = |record: &EpochRecord| {
            // Windows are of two epochs: the checkpoint is that of epoch 4.
            if record.epoch == 5 {
                std::fs::create_dir_all(&half).unwrap();
                for name in ["config.toml", "checkpoint.safetensors", "metrics.jsonl"] {
                    std::fs::copy(config.output.dir.join(name), half.join(name)).unwrap();
                }
            }
        };
        let whole = run(&config, Begin::Restart, &copy).unwrap().summary;
        let mut again = config.clone();
        again.output.dir = half.clone();
        let resumed = run(&again, Begin::Resume, &|_| {}).unwrap().summary;
        assert_eq!(resumed.losses, whole.losses, "{outer:?}");
        assert!(model(&half) == model(&config.output.dir), "weights of {outer:?}");
    }
}

#[test]
fn one_part_trains_as_the_whole_graph_whatever_the_outer_optimizer() {
    let bench = Bench::new();
    let mut whole = config(&bench, "whole", Outer::Plain);
    whole.partition.parts = Parts::Count(1);
    whole.average.warmup = 0;
    let mut part = whole.clone();
    part.average = AverageSection::default();
    part.average.outer = Outer::Nesterov;
    part.average.moments = true;
    part.average.batch = Batch::Global;
    part.output.dir = bench.path("part");
    let (part, whole) = (train(&part), train(&whole));
    assert_eq!(part.losses, whole.losses);
}

#[test]
fn global_batches_give_a_part_as_many_steps_as_the_whole_graph() {
    let bench = Bench::new();
    let mut local = config(&bench, "local", Outer::Plain);
    // 75 training nodes a part, in 2 steps of 64 or 5 of 15.
    local.average.batch = Batch::Local;
    let mut global = local.clone();
    global.average.batch = Batch::Global;
    global.output.dir = bench.path("global");
    let [local, global] = [&local, &global].map(train);
    assert!(
        global.losses.last() < local.losses.last(),
        "more steps: {:?} {:?}",
        global.losses,
        local.losses
    );
}
