//! Measuring without writing says the same as writing.

use crate::common::dataset;
use gnarl_common::rng::Key;
use gnarl_graph::IdWidth;
use gnarl_partition::{
    PartitionConfig, PartitionReport, Parts, assess, partition_dataset, registry,
};

const NODES: u64 = 120;

fn edges() -> Vec<(u64, u64)> {
    let key = Key::new(5);
    (0..400).map(|i| (key.below(2 * i, NODES - 10), key.below(2 * i + 1, NODES - 10))).collect()
}

/// A report without what depends on the moment.
fn timeless(report: PartitionReport) -> PartitionReport {
    PartitionReport { seconds: 0.0, write_seconds: 0.0, peak_rss_bytes: 0, ..report }
}

#[test]
fn dry_runs_agree_with_what_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let types = [("author", 40), ("paper", NODES - 40)];
    let cites = edges().into_iter().filter(|e| e.0 < 80 && e.1 < 80).collect();
    let wrote = edges().into_iter().filter(|e| e.0 < 40 && e.1 < 80).collect();
    let lists = [("author:wrote:paper", wrote), ("paper:cites:paper", cites)];
    let graph = dataset(&dir.path().join("graph"), IdWidth::U32, &types, &lists);
    for (p, hops) in registry().into_iter().zip((0..=2).cycle()) {
        let algorithm = p.name();
        let parts = Parts::Count(3);
        let config = PartitionConfig {
            algorithm: algorithm.into(),
            parts,
            hops,
            ..PartitionConfig::default()
        };
        let out = dir.path().join(algorithm);
        let (written, report) = partition_dataset(&graph, &config, &out).unwrap();
        let (assignment, dry) = assess(&graph, &*p, &config).unwrap();
        assert_eq!(timeless(dry), timeless(report), "{algorithm}");
        let stored = ["author", "paper"].map(|t| written.assignment(t).unwrap().to_vec());
        let of: Vec<u32> = assignment.of.iter().map(|&part| part.into()).collect();
        assert_eq!(stored.concat(), of, "{algorithm}");
    }
}

#[test]
fn cut_nodes_are_counted_by_degree() {
    let dir = tempfile::tempdir().unwrap();
    let lists = [("_N:_E:_N", edges())];
    let graph = dataset(&dir.path().join("graph"), IdWidth::U32, &[("_N", NODES)], &lists);
    for p in registry() {
        let config = PartitionConfig { parts: Parts::Count(4), ..PartitionConfig::default() };
        let (assignment, report) = assess(&graph, &*p, &config).unwrap();
        let of = |v: u64| assignment.of[v as usize];
        let mut expected = vec![0; report.cut_degrees.len()];
        for v in 0..NODES {
            let touches = |e: &&(u64, u64)| (e.0 == v || e.1 == v) && of(e.0) != of(e.1);
            let degree = edges().iter().filter(|e| e.1 == v).count();
            if edges().iter().any(|e| touches(&e)) {
                let bin = if degree == 0 { 0 } else { degree.ilog2() as usize + 1 };
                expected[bin] += 1;
            }
        }
        assert_eq!(report.cut_degrees, expected, "{}", p.name());
        assert_eq!(report.train_sizes.iter().sum::<u64>(), NODES / 2);
    }
}
