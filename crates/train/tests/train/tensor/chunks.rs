//! Steps cut into chunks, in memory and on disk, give what whole ones give.

use std::cell::RefCell;
use std::collections::BTreeMap;

use bytesize::ByteSize;
use gnarl_config::{RunConfig, Strategy};
use gnarl_nn::models::Aggregator;
use gnarl_train::{Begin, eval_run, run};

use super::equal::{largest_difference, weights};
use super::{config, generate, train};

/// A model, and what is changed of its run.
type Case = (&'static str, fn(&mut RunConfig));

fn models() -> Vec<Case> {
    vec![
        ("gcn", |_| ()),
        // The first layer passes messages before it maps them, and remembers them.
        ("gcn", |c| (c.model.hidden, c.model.layers, c.model.input_dropout) = (33, 3, Some(0.0))),
        ("sage", |_| ()),
        ("sage", |c| (c.model.hidden, c.model.input_dropout) = (33, Some(0.0))),
        ("ngnn", |_| ()),
        ("gin", |c| c.train.lr = 0.003),
        ("gin", |c| (c.model.hidden, c.train.lr) = (33, 0.003)),
        ("gat", |_| ()),
        // Ranks share heads; the last layer is their mean.
        ("gat", |c| {
            (c.model.layers, c.model.heads, c.model.out_heads) = (3, 3, 2);
            (c.model.hidden, c.model.dropout, c.model.attention_dropout) = (45, 0.1, 0.3);
        }),
        ("gat", |c| {
            (c.model.decoupled, c.model.out_heads) = (true, 2);
            (c.model.propagations, c.model.teleport) = (Some(3), 0.1);
        }),
        ("sage", |c| c.model.aggregator = Aggregator::MaxPool),
        ("sgc", |c| c.model.layers = 3),
        ("mlp", |_| ()),
        ("gcn", |c| {
            c.model.decoupled = true;
            (c.model.propagations, c.model.teleport) = (Some(4), 0.1);
        }),
    ]
}

/// The least memory that will do. Says whether what is between stages goes to disk then, as a folder that
/// is not there shows: for a perceptron, and for shares of few rows, there is nothing to gain.
fn little(config: &mut RunConfig) -> bool {
    let mut attempt = config.clone();
    attempt.tensor.spill = Some("nowhere".into());
    attempt.output.dir.set_extension("attempt");
    let workers = config.train.workers as u64;
    let mut error = |memory: ByteSize| {
        attempt.tensor.memory = Some(memory);
        run(&attempt, Begin::Restart, &|_| ()).map_err(|error| error.to_string()).err()
    };
    let steps: Vec<ByteSize> =
        (0..200).map(|more| ByteSize::b(workers * ((64 << 20) + 20_000 * more))).collect();
    let enough = steps.partition_point(|&memory| {
        let error = error(memory);
        error.is_some_and(|error| {
            assert!(error.contains("nowhere") || error.contains("too little"), "{error}");
            error.contains("too little")
        })
    });
    config.tensor.memory = Some(steps[enough]);
    error(steps[enough]).is_some_and(|error| {
        assert!(error.contains("nowhere"), "{error}");
        true
    })
}

fn same(name: &str, cut: impl Fn(&mut RunConfig)) {
    for (number, (model, change)) in models().into_iter().enumerate() {
        let dir = tempfile::tempdir().unwrap();
        generate(dir.path(), 701, 21, 3);
        let mut whole = config(dir.path(), "whole", model);
        change(&mut whole);
        whole.train.strategy = Strategy::Tensor;
        let expected = train(&whole).summary;
        assert!(expected.losses[4] < expected.losses[0], "it learns: {:?}", expected.losses);
        for workers in 1..=4 {
            let mut chunked = config(dir.path(), &format!("{name}-{workers}"), model);
            change(&mut chunked);
            chunked.train.strategy = Strategy::Tensor;
            chunked.train.workers = workers;
            cut(&mut chunked);
            let found = train(&chunked).summary;
            let context = format!("{number}: {model} {name} on {workers}");
            let apart = expected.losses.iter().zip(&found.losses).map(|(a, b)| (a - b).abs());
            let apart = apart.fold(0.0, f64::max);
            assert!(apart < 1e-5, "{context}: {:?} {:?}", expected.losses, found.losses);
            let apart = (expected.test["accuracy"] - found.test["accuracy"]).abs();
            assert!(apart < 1e-9, "{context}: {:?} {:?}", expected.test, found.test);
            let apart = largest_difference(&weights(&whole), &weights(&chunked));
            assert!(apart < 1e-3, "{context}: weights differ by {apart}");
            let judged = eval_run(&chunked.output.dir, None).unwrap().test["accuracy"];
            assert!((judged - found.test["accuracy"]).abs() < 1e-9, "{context}: {judged}");
        }
    }
}

#[test]
fn chunks_change_nothing() {
    same("chunks", |c| c.tensor.chunks = 7);
}

#[test]
fn nor_do_exchanges_that_wait_for_each_other() {
    same("inline", |c| (c.tensor.chunks, c.tensor.overlap) = (3, false));
}

#[test]
fn nor_does_what_is_on_disk() {
    let on_disk = RefCell::new(BTreeMap::<String, usize>::new());
    same("disk", |c| {
        let form = format!("{} {:?} {}", c.model.name, c.model.aggregator, c.model.decoupled);
        *on_disk.borrow_mut().entry(form).or_default() += usize::from(little(c));
    });
    let on_disk = on_disk.into_inner();
    for form in ["gcn Mean false", "gat Mean false", "gat Mean true", "sage MaxPool false"] {
        assert!(on_disk[form] > 0, "{form} of {on_disk:?}");
    }
    assert!(on_disk.values().sum::<usize>() >= 12, "{on_disk:?}");
}

#[test]
fn the_same_run_gives_the_same_bits_for_any_number_of_threads() {
    let dir = tempfile::tempdir().unwrap();
    generate(dir.path(), 701, 21, 3);
    let losses = |model: &str, threads: usize, overlap: bool| {
        let mut config = config(dir.path(), &format!("{model}-{threads}-{overlap}"), model);
        (config.train.strategy, config.train.workers) = (Strategy::Tensor, 2);
        (config.train.threads, config.tensor.overlap) = (threads, overlap);
        assert!(little(&mut config));
        train(&config).summary.losses
    };
    for model in ["sage", "gat"] {
        let expected = losses(model, 2, true);
        assert_eq!(losses(model, 4, true), expected, "{model}");
        assert_eq!(losses(model, 2, false), expected, "{model}");
    }
}

/// What is not in memory is in the folder that the run file names.
#[test]
fn a_folder_that_is_not_there_is_named() {
    let dir = tempfile::tempdir().unwrap();
    generate(dir.path(), 701, 21, 3);
    let mut config = config(dir.path(), "run", "gcn");
    config.train.strategy = Strategy::Tensor;
    config.tensor.spill = Some(dir.path().join("nowhere"));
    config.tensor.chunks = 3;
    train(&config);
    config.output.dir = dir.path().join("again");
    assert!(little(&mut config));
    let error = run(&config, Begin::Fresh, &|_| ()).map(drop).unwrap_err().to_string();
    assert!(error.contains("nowhere"), "{error}");
}

#[test]
fn what_cannot_be_cut_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    generate(dir.path(), 701, 21, 3);
    let refused = |name: &str, model: &str, change: &dyn Fn(&mut RunConfig)| {
        let mut config = config(dir.path(), name, model);
        config.train.strategy = Strategy::Tensor;
        change(&mut config);
        let error = config.check().and_then(|()| run(&config, Begin::Fresh, &|_| ()).map(drop));
        let error = error.unwrap_err();
        assert_eq!(error.exit_code(), 2, "{error}");
        error.to_string()
    };
    let gatv2 = refused("gatv2", "gatv2", &|c| c.tensor.chunks = 2);
    assert!(gatv2.contains("gatv2 does not train in chunks"), "{gatv2}");
    let memory = refused("memory", "gcn", &|c| c.tensor.memory = Some(ByteSize::mib(64)));
    assert!(memory.contains("too little") && memory.contains("require"), "{memory}");
}
