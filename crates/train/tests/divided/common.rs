//! Runs, and partitions of which a machine has some parts.

use std::path::Path;
use std::sync::Arc;

use gnarl_config::RunConfig;
use gnarl_partition::PartitionedDataset;
use gnarl_serve::{ServedPart, Server, ServerConfig};
use gnarl_train::{Begin, Summary, run};

pub const PARTS: usize = 4;

pub fn train(config: &RunConfig) -> Summary {
    run(config, Begin::Fresh, &|_| ()).unwrap().summary
}

pub fn assert_same(a: &Summary, b: &Summary, what: &str) {
    let near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-5;
    assert!(a.losses.iter().zip(&b.losses).all(near), "{what}: {a:?} {b:?}");
    assert_eq!((&a.test, &a.valid, a.best_epoch), (&b.test, &b.valid, b.best_epoch), "{what}");
}

/// Copies the partition without the parts that others are to have.
pub fn only(cut: &PartitionedDataset, keep: &[usize], to: &Path) {
    let copy = std::process::Command::new("cp").arg("-r").arg(cut.dir()).arg(to).status().unwrap();
    assert!(copy.success());
    for part in (0..PARTS).filter(|part| !keep.contains(part)) {
        std::fs::remove_dir_all(to.join(format!("part-{part}"))).unwrap();
    }
}

pub fn serve(cut: &PartitionedDataset, parts: &[usize]) -> Server {
    let held = parts.iter().map(|&part| Arc::new(ServedPart::open(cut, part).unwrap())).collect();
    Server::start(held, &ServerConfig::default()).unwrap()
}
