//! A rank is killed.

use std::path::Path;
use std::time::{Duration, Instant};

use super::{Divided, numbers};
use crate::mpi::{machines, result, text};

/// Long before the deadline, and long enough for any machine.
const SOON: Duration = Duration::from_secs(40);

/// Where a rank dies: the name of the stage, and how often it gets through. There are some ten batches
/// an epoch, and the first stages are ahead by twenty. Files are replaced when a run begins, and for every
/// checkpoint and new best.
const DEATHS: [(&str, usize); 9] = [
    ("schedule", 45),
    ("sample", 41),
    ("fetch", 37),
    ("compact", 33),
    ("compute", 25),
    ("reduce", 25),
    ("evaluate", 3),
    ("checkpoint", 3),
    ("replace", 9),
];

const TRAIN: &str = "epochs = 60\ndeadline_seconds = 120";

/// Kills rank `victim` in one stage after the other, going on in between.
fn killed_in_every_stage(divided: &Divided, victim: usize, stages: &[(&str, usize)]) {
    let args = divided.args(&divided.parts, "ranks", &["train.engine=mpi", "cache.memory=64KiB"]);
    killed_with(&args, divided, victim, stages);
}

/// [`killed_in_every_stage`] of a run with other arguments.
fn killed_with(args: &[String], divided: &Divided, victim: usize, stages: &[(&str, usize)]) {
    let with = |how: &str| [args, &[how.to_string()]].concat();
    let expected = numbers(&result(&machines(&with("--restart"), None).output().unwrap()));
    let files = names(&divided.bench.run);

    let (mut how, mut trained) = ("--restart", 0);
    for (stage, before) in stages {
        let fault = format!("{stage}={before}*off->return");
        let start = Instant::now();
        let output = machines(&with(how), Some((victim, &fault))).output().unwrap();
        let err = text(&output.stderr);
        assert!(!output.status.success() && err.contains("signal 9"), "{stage}: {err}");
        assert!(start.elapsed() < SOON, "{stage}: {:?}", start.elapsed());
        let before = std::mem::replace(&mut trained, divided.trained());
        assert!(trained > before, "{stage}: from {before} epochs to {trained}");
        how = "--resume";
    }
    let resumed = result(&machines(&with(how), None).output().unwrap());
    assert_eq!(numbers(&resumed), expected);
    assert_eq!(names(&divided.bench.run), files, "nothing else is left");
}

fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

#[test]
fn the_first_rank_killed_in_every_stage_goes_on_to_the_same_numbers() {
    killed_in_every_stage(&Divided::new(TRAIN), 0, &DEATHS);
}

#[test]
fn another_rank_killed_in_every_stage_goes_on_to_the_same_numbers() {
    killed_in_every_stage(&Divided::new(TRAIN), 1, &DEATHS[..7]);
}

#[test]
fn ranks_that_predict_edges_killed_in_every_stage_go_on_to_the_same_numbers() {
    let divided = Divided::links(TRAIN, &["--algorithm", "spring"]);
    killed_in_every_stage(&divided, 1, &DEATHS[..7]);
}

/// Rows of a checkpoint are written by their owners, of which one is killed before its first, in between, and after.
#[test]
fn ranks_with_embeddings_in_files_killed_in_every_stage_go_on_to_the_same_numbers() {
    let stages = [
        ("sample", 41),
        ("compute", 25),
        ("reduce", 25),
        ("evaluate", 3),
        ("embeddings", 2),
        ("embeddings written", 3),
    ];
    for victim in [0, 1] {
        let divided = Divided::in_files(TRAIN);
        killed_in_every_stage(&divided, victim, &stages);
        let left = names(&divided.bench.run.join("embeddings"));
        let owned = |rank| format!("table-0.epoch-60.rank-{rank}-of-2.safetensors");
        assert_eq!(left, (0..2).map(owned).collect::<Vec<_>>());
    }
}

#[test]
fn ranks_of_typed_parts_killed_in_every_stage_go_on_to_the_same_numbers() {
    killed_in_every_stage(&Divided::typed(TRAIN), 1, &DEATHS[..7]);
}

/// Ranks that read parts into memory, each by itself.
#[test]
fn ranks_with_parts_in_memory_killed_in_every_stage_go_on_to_the_same_numbers() {
    let divided = Divided::stored(TRAIN);
    let args = divided.alone(&divided.parts, &["train.engine=mpi"]);
    let stages = [&[("load", 25)], &DEATHS[..7]].concat();
    killed_with(&args, &divided, 1, &stages);
}
