//! A partitioner of one's own, beside one of gnarl's, on a generated graph:
//! `cargo run --release -p example-custom-partitioner`.

mod partitioner;

use std::path::Path;

use gnarl::graph::generate::{CommunityOptions, community};
use gnarl::partition::{
    PartitionConfig, PartitionReport, Parts, Random, VertexPartitioner, partition_dataset_with,
};
use gnarl::{Error, Result};

use partitioner::BreadthFirst;

fn main() -> Result<()> {
    let dir = std::env::temp_dir().join(format!("gnarl-custom-partitioner-{}", std::process::id()));
    let result = example(&dir);
    if dir.exists() {
        std::fs::remove_dir_all(&dir).map_err(|e| Error::io(&dir, e))?;
    }
    for r in result? {
        let (cut, copies) = (100.0 * r.edge_cut, r.replication_factor);
        println!("{:14} cuts {cut:.1} % of the edges, stores {copies:.2} × the nodes", r.algorithm);
    }
    Ok(())
}

/// Cuts a graph made in `dir` in four with the partitioner of this program and with a random one.
fn example(dir: &Path) -> Result<Vec<PartitionReport>> {
    let options = CommunityOptions {
        nodes: 4000,
        communities: 40,
        average_degree: 6.0,
        mixing: 0.02,
        ..CommunityOptions::default()
    };
    let graph = community(&options, &dir.join("graph"))?.dataset;
    let config = PartitionConfig { parts: Parts::Count(4), ..PartitionConfig::default() };
    let partitioners: [&dyn VertexPartitioner; 2] = [&BreadthFirst, &Random];
    let cut = |p: &&dyn VertexPartitioner| {
        let (_, report) = partition_dataset_with(&graph, *p, &config, &dir.join(p.name()))?;
        Ok(report)
    };
    partitioners.iter().map(cut).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use gnarl::Kind;
    use gnarl::graph::{EdgeStream, MemoryEdges};
    use gnarl::partition::{PartitionOptions, PartitionedDataset};

    #[test]
    fn it_cuts_fewer_edges_than_chance() {
        let dir = tempfile::tempdir().unwrap();
        let reports = example(dir.path()).unwrap();
        assert_eq!(reports[0].part_sizes, [1000; 4]);
        assert!(reports[0].edge_cut < 0.8 * reports[1].edge_cut, "{reports:?}");
        let cut = PartitionedDataset::open(dir.path().join("breadth-first")).unwrap();
        assert_eq!(cut.manifest().algorithm, "breadth-first");
    }

    #[test]
    fn it_does_what_every_partitioner_must() {
        let graphs: [(u64, Vec<(u64, u64)>); 3] = [
            (5, vec![]),
            (6, vec![(0, 0), (1, 0), (1, 0)]),
            (9, (0..8).map(|v| (v, v + 1)).collect()),
        ];
        for (nodes, list) in graphs {
            let mut edges = MemoryEdges::new(nodes, list).unwrap();
            for parts in 1..=5 {
                let options = PartitionOptions { parts, ..PartitionOptions::default() };
                let found = BreadthFirst.partition(&mut edges, &options).unwrap();
                assert_eq!(found.of.len() as u64, edges.num_nodes());
                let sizes = found.sizes();
                assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1);
                assert_eq!(found, BreadthFirst.partition(&mut edges, &options).unwrap());
            }
            let too_many = PartitionOptions { parts: 10, ..PartitionOptions::default() };
            let error = BreadthFirst.partition(&mut edges, &too_many).unwrap_err();
            assert_eq!(error.kind(), Kind::Usage);
        }
    }
}
