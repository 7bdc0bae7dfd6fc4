//! Runs, and partitions of which a machine has some parts.

use std::path::Path;
use std::sync::Arc;

use gnarl_config::RunConfig;
use gnarl_partition::PartitionedDataset;
use gnarl_serve::{ServedPart, Server, ServerConfig};
use gnarl_train::{
    Begin, Infer, OpenOptions, Output, Registry, Summary, TrainedRun, infer_by_threads, run,
};

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

/// The output of the run in `config` for some nodes, by so many ranks.
pub fn inferred(config: &RunConfig, options: &OpenOptions, ranks: usize) -> Vec<f32> {
    let run = TrainedRun::open(&Registry::default(), &config.output.dir, options).unwrap();
    let nodes: Vec<u32> = (0..run.node_types()[0].1 as u32).step_by(3).collect();
    let by = |by: &dyn Infer| {
        let mut found = Vec::new();
        by.infer(Output::Last, &[(0, nodes.clone())], &mut |_, _, rows| {
            found.extend_from_slice(rows.data());
            Ok(())
        })?;
        assert!(!found.is_empty());
        Ok(found)
    };
    match ranks {
        1 => by(&run).unwrap(),
        ranks => infer_by_threads(&run, ranks, 1, |leader| by(leader)).unwrap(),
    }
}
