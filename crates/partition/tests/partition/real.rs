//! Partitioners on real graphs, where `GNARL_DATA` leads to them.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use gnarl_common::npy::NpyHeader;
use gnarl_common::rng::Key;
use gnarl_graph::{DEFAULT_NODE_TYPE, Dataset, DatasetWriter, FinishOptions, IdWidth, Triple};
use gnarl_partition::{PartitionConfig, PartitionReport, Parts, names, partition_dataset};

/// The graph `name` under `data`, with 70 % of its nodes for training.
fn graph(data: &Path, name: &str, out: &Path) -> Dataset {
    let path = data.join(name).join("edges.npy");
    let header = NpyHeader::read(&path).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let ids: Vec<u64> = bytes[header.offset as usize..]
        .chunks_exact(4)
        .map(|b| u32::from_le_bytes(b.try_into().unwrap()) as u64)
        .collect();
    let (src, dst) = ids.split_at(ids.len() / 2);
    let nodes = ids.iter().max().unwrap() + 1;
    let mut writer = DatasetWriter::create(out.join(name), IdWidth::U32).unwrap();
    writer.add_node_type(DEFAULT_NODE_TYPE, nodes);
    let mut ends = writer.edge_writer(&Triple::plain(), None).unwrap();
    ends.push(src, dst).unwrap();
    writer.add_edge_type(Triple::plain(), ends.finish().unwrap());
    let train = (0..nodes).filter(|&v| Key::new(1).with(v).unit(0) < 0.7).collect();
    writer.add_split(DEFAULT_NODE_TYPE, "train", train).unwrap();
    writer.finish(FinishOptions::default()).unwrap()
}

/// Prints the table with `--nocapture`; holds that graph-aware partitioners beat chance.
#[test]
fn graph_aware_partitioners_replicate_less_than_random() {
    let Some(data) = std::env::var_os("GNARL_DATA").map(PathBuf::from) else {
        // Unlike `eprintln!`, this is seen though the test passes.
        let _ = writeln!(std::io::stderr(), "skipped: GNARL_DATA names no folder of graphs");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    println!("graph             parts name      RF   cut nodes edges train  seconds");
    for name in ["cora", "pubmed", "amazon_photo", "coauthor_physics"] {
        let dataset = graph(&data, name, dir.path());
        for parts in [4, 8] {
            let run = |algorithm: &str| -> PartitionReport {
                let config = PartitionConfig {
                    algorithm: algorithm.into(),
                    parts: Parts::Count(parts),
                    ..Default::default()
                };
                let out = dir.path().join(format!("{name}-{algorithm}-{parts}"));
                let r = partition_dataset(&dataset, &config, &out).unwrap().1;
                println!(
                    "{name:17} {parts:5} {algorithm:7} {:.2} {:.3} {:5.2} {:5.2} {:5.2} {:8.3}",
                    r.replication_factor,
                    r.edge_cut,
                    r.node_balance,
                    r.edge_balance,
                    r.train_balance,
                    r.seconds
                );
                r
            };
            let random = run("random").replication_factor;
            for algorithm in names().into_iter().filter(|&a| a != "random") {
                let factor = run(algorithm).replication_factor;
                // A cut of edges does not mind whole neighborhoods, hashes least of all.
                let bound = match algorithm {
                    "range" => f64::INFINITY,
                    "hash-1d" | "hash-2d" | "dbh" | "greedy" | "hdrf" => random,
                    _ => 0.9 * random,
                };
                assert!(factor < bound, "{algorithm} on {name}");
            }
        }
    }
}
