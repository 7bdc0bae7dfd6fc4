//! Partitions as their readers see them.

use std::path::Path;

use gnarl_common::{Error, Result};
use gnarl_graph::inspect::verify;
use gnarl_graph::{Dataset, EdgeStream, Triple};
use gnarl_partition::{
    Direction, EdgeBuckets, PartLayout, PartTargets, PartitionConfig, PartitionedDataset, Parts,
    TargetEdge, Targets, VertexCutPart, describing_files, partition_dataset,
    partition_with_targets, registry, verify_description,
};
use serde_json::json;

use crate::graph::touch;

/// Number of parts of a fixture.
pub const PARTS: usize = 2;

/// A partition of `graph` at `out` with edge buckets, by edges or by vertices.
///
/// # Panics
/// If it cannot be made.
pub fn partition(graph: &Dataset, layout: PartLayout, out: &Path) -> PartitionedDataset {
    let by_edges = layout == PartLayout::VertexCut;
    let config = PartitionConfig {
        algorithm: if by_edges { "dbh" } else { "random" }.into(),
        parts: Parts::Count(PARTS),
        layout,
        // That layout has nothing else.
        buckets: layout != PartLayout::Storage,
        memory: 32 << 20,
        ..PartitionConfig::default()
    };
    let [only] = &graph.manifest().edge_types[..] else {
        return partition_dataset(graph, &config, out).expect("a partition").0;
    };
    let triple = only.triple.clone();
    let edges = crate::graph::edges(graph);
    let mut each = |take: &mut gnarl_partition::TakeTarget<'_>| {
        edges.iter().enumerate().try_for_each(|(row, &(head, tail))| {
            let head = head as u32;
            let tail = tail as u32;
            take(TargetEdge { split: row % 3, head, relation: 0, tail, row: row as u64, time: 5 })
        })
    };
    let targets = Targets {
        source: graph,
        triple,
        settings: json!({}),
        relations: 1,
        relation_names: Vec::new(),
        labels: None,
        with_features: true,
        with_times: true,
        each: &mut each,
    };
    partition_with_targets(graph, targets, &config, out).expect("a partition").0
}

/// Reads everything of a partition that training, inspection and servers read.
///
/// # Errors
/// For what a reader rejects.
///
/// # Panics
/// If a reader does.
pub fn touch_partition(dir: &Path) -> Result<()> {
    let parts = PartitionedDataset::open(dir)?;
    let manifest = parts.manifest();
    manifest.key();
    parts.schema()?;
    describing_files(&parts)?;
    for of in &manifest.node_types {
        let map = parts.id_map(&of.name)?;
        assert_eq!(map.starts().last(), of.ranges.last());
        parts.new_ids(&of.name)?;
        for id in [0, of.count / 2, of.count.saturating_sub(1), of.count] {
            let _ = parts.owner(&of.name, id);
        }
    }
    if let Some(catalog) = parts.catalog()? {
        verify(&catalog)?;
    }
    verify_description(dir)?;
    for part in 0..parts.num_parts() {
        touch(&parts.part(part)?)?;
        if let Some(targets) = parts.targets(part)? {
            touch_targets(&targets);
        }
        if manifest.layout == PartLayout::VertexCut {
            let topology = parts.topology(part)?;
            // Values of lists are not compared with each other when they are opened, only by `gnarl inspect --verify`.
            topology.verify()?;
            touch_topology(&topology)?;
        }
    }
    Ok(())
}

fn touch_targets(targets: &PartTargets) {
    for split in &targets.splits {
        let rows: Vec<u32> = (0..split.len() as u32).collect();
        assert_eq!(split.edges(&rows).len(), split.len());
        assert_eq!(split.stretch(0..split.len()).len(), split.len());
        // Places in another order are not found, as a search expects them to ascend.
        split.find(&split.places);
    }
}

/// Goes through the lists of a part of a vertex cut.
fn touch_topology(part: &VertexCutPart) -> Result<()> {
    let types = part.manifest().edge_types.len();
    let nodes = part.num_nodes() as u32;
    for node in 0..nodes {
        for direction in [Direction::In, Direction::Out] {
            part.degree(node, direction);
            part.local_degree(node, direction);
            part.edge_types(node, direction).count();
        }
        part.node_type(node);
        part.parts_of(node).count();
        part.local(part.global(node));
        for edge_type in 0..types {
            assert!(part.sources(node, edge_type).iter().all(|&source| source < nodes));
            part.in_rows(node, edge_type);
        }
    }
    for edge in 0..part.num_edges() {
        part.source(edge);
        part.target(edge);
        part.type_and_row(edge);
    }
    for edge_type in 0..types {
        for column in ["weight", "time", "features"] {
            part.edge_column(edge_type, column)?;
        }
    }
    part.times_of_nodes().map(drop)
}

/// Reads all edge buckets of a partition, mapped and into memory.
///
/// # Errors
/// For what a reader rejects.
///
/// # Panics
/// If a reader does.
pub fn touch_buckets(dir: &Path) -> Result<()> {
    let parts = PartitionedDataset::open(dir)?;
    let mapped = touch_mapped(&parts);
    let types: Vec<Triple> = parts.edge_types()?.into_iter().map(|of| of.triple).collect();
    let files = parts.bucket_files(&types)?;
    for of_type in &files {
        let all: Vec<(usize, usize)> =
            (0..PARTS).flat_map(|i| (0..PARTS).map(move |j| (i, j))).collect();
        // Buckets of more parts than the partition has are not asked for.
        of_type.expect(&all);
        let read = of_type.read(&all)?;
        let edges: usize = read.iter().map(|bucket| bucket.dst.len()).sum();
        assert!(edges == 0 || !of_type.is_empty());
    }
    mapped
}

fn touch_mapped(parts: &PartitionedDataset) -> Result<()> {
    let buckets: EdgeBuckets = parts.buckets()?;
    let manifest = buckets.manifest();
    if manifest.parts > PARTS {
        return Err(Error::invalid("more parts than there are"));
    }
    for edge_type in 0..manifest.edge_types.len() {
        for i in 0..manifest.parts {
            for j in 0..manifest.parts {
                let bucket = buckets.bucket(edge_type, i, j)?;
                assert_eq!(bucket.src.len() as u64, bucket.rows.end - bucket.rows.start);
            }
        }
        buckets.column(edge_type, "weight")?;
    }
    buckets.verify().map(drop)
}

/// Partitions a dataset that may be damaged again, by the partitioner and layout that `choice` names.
///
/// # Errors
/// For what is rejected.
pub fn partition_again(graph: &Dataset, choice: u8, out: &Path) -> Result<()> {
    let edges = graph.edges()?.num_edges();
    // A partitioner's time grows with the edges; damage makes no more of them than there are bytes.
    assert!(edges < 1 << 20);
    let by_edges = choice & 1 == 1;
    let names: Vec<&str> = match by_edges {
        true => vec!["dbh", "hdrf"],
        false => registry().iter().map(|one| one.name()).collect(),
    };
    let config = PartitionConfig {
        algorithm: names[usize::from(choice / 2) % names.len()].into(),
        parts: Parts::Count(PARTS),
        layout: if by_edges { PartLayout::VertexCut } else { PartLayout::EdgeCut },
        memory: 32 << 20,
        ..PartitionConfig::default()
    };
    partition_dataset(graph, &config, out).map(drop)
}
