//! From a dataset to a partitioned dataset.

use std::path::Path;
use std::time::Instant;

use gnarl_common::error::{Context, Error, Result, ResultExt};
use gnarl_common::memory::peak_rss;
use gnarl_common::rng::mix;
use gnarl_common::staging::Staging;
use gnarl_graph::{Dataset, DatasetWriter, FinishOptions, IdWidth, Manifest};
use rayon::prelude::*;
use serde_json::json;

use crate::assess::lay_out;
use crate::config::PartitionConfig;
use crate::dataset::{
    PARTITION, PARTITION_VERSION, PartCounts, PartitionManifest, PartitionedDataset,
    PartitionedEdges, PartitionedType, SourceInfo, part_dir,
};
use crate::edge_cut::partitioner::VertexPartitioner;
use crate::edge_cut::registry::by_name;
use crate::part_layout::PartLayout;
use crate::report::PartitionReport;
use crate::vertex_cut::{self, EdgePartitioner};
use crate::write::buckets::{self, BUCKETS};
use crate::write::columns::NamedColumn;
use crate::write::layout::{Layout, TypeSpan};
use crate::write::vertex_cut_layout::{self, VertexCutManifest};
use crate::write::{distribute, nodes};

/// Partitions `dataset` and writes the parts to `out`, which must not exist or be empty.
///
/// `out/part-<i>/` are datasets of their own; `out/partition.json` describes the whole. Nothing
/// appears at `out` before everything is written. Memory beside the partitioner's: 6 bytes a node
/// and one bit (two beyond one hop, and in a vertex cut) for each node and part, plus buffers. A
/// vertex cut's parts then take 24 bytes for each node they hold, as many at a time as there are
/// threads.
///
/// For an unknown partitioner, or a vertex partitioner where the layout requires an edge
/// partitioner; impossible numbers of parts; an existing or unwritable `out`.
pub fn partition_dataset(
    dataset: &Dataset,
    config: &PartitionConfig,
    out: &Path,
) -> Result<(PartitionedDataset, PartitionReport)> {
    match config.layout {
        PartLayout::EdgeCut => {
            partition_dataset_with(dataset, &*by_name(&config.algorithm)?, config, out)
        }
        PartLayout::VertexCut => {
            partition_edges_with(dataset, &*edge_partitioner(&config.algorithm)?, config, out)
        }
    }
}

/// [`partition_dataset`] with a custom partitioner; `config.algorithm` is not used, and the
/// layout is [`PartLayout::EdgeCut`].
///
/// # Errors
/// As [`partition_dataset`].
pub fn partition_dataset_with(
    dataset: &Dataset,
    algorithm: &dyn VertexPartitioner,
    config: &PartitionConfig,
    out: &Path,
) -> Result<(PartitionedDataset, PartitionReport)> {
    let config = PartitionConfig { layout: PartLayout::EdgeCut, ..config.clone() };
    run(dataset, &config, out, |dir| {
        let (layout, report) = lay_out(dataset, algorithm, &config)?;
        let start = Instant::now();
        let parts = write_parts(dataset, &layout, &config, dir)?;
        let count = |data: &Dataset| data.manifest().edge_types.iter().map(|t| t.count).collect();
        Ok(Written { layout, report, start, edges: parts.iter().map(count).collect() })
    })
}

/// [`partition_dataset`] with a custom edge partitioner; `config.algorithm` is not used,
/// and the layout is [`PartLayout::VertexCut`].
///
/// # Errors
/// As [`partition_dataset`].
pub fn partition_edges_with(
    dataset: &Dataset,
    algorithm: &dyn EdgePartitioner,
    config: &PartitionConfig,
    out: &Path,
) -> Result<(PartitionedDataset, PartitionReport)> {
    let config = PartitionConfig { layout: PartLayout::VertexCut, ..config.clone() };
    run(dataset, &config, out, |dir| {
        let work = dir.join("work");
        std::fs::create_dir_all(&work).at(&work)?;
        let spool = work.join("parts-of-edges");
        let (cut, mut report) =
            vertex_cut_layout::cut::cut(dataset, algorithm, &config, Some(&spool))?;
        let start = Instant::now();
        let parts =
            vertex_cut_layout::write::write(dataset, &cut, &spool, &work, dir, config.memory)?;
        std::fs::remove_dir_all(&work).at(&work)?;
        if let Some(measured) = &mut report.vertex_cut {
            measured.topology_bytes = parts.iter().map(|p| p.topology_bytes()).collect();
            let bytes: u64 = measured.topology_bytes.iter().sum();
            let edges: u64 = measured.part_edges.iter().sum();
            measured.bytes_per_edge = bytes as f64 / edges.max(1) as f64;
        }
        let count = |p: &VertexCutManifest| p.edge_types.iter().map(|t| t.count).collect();
        let edges = parts.iter().map(count).collect();
        Ok(Written { layout: cut.layout, report, start, edges })
    })
}

/// The edge partitioner `name`.
///
/// # Errors
/// For a vertex partitioner, with the names of edge partitioners.
pub fn edge_partitioner(name: &str) -> Result<Box<dyn EdgePartitioner>> {
    if vertex_cut::names().contains(&name) || by_name(name).is_err() {
        return vertex_cut::by_name(name);
    }
    Err(Error::usage(format!(
        "'{name}' is a vertex partitioner; --layout vertex-cut requires an edge partitioner"
    ))
    .hint(format!("edge partitioners are: {}", vertex_cut::names().join(", "))))
}

/// Parts that have been written.
struct Written {
    layout: Layout,
    report: PartitionReport,
    /// When writing began.
    start: Instant,
    /// Edges by part and edge type.
    edges: Vec<Vec<u64>>,
}

/// Runs `work` to write the parts to a temporary directory, adds the metadata, and renames it.
fn run(
    dataset: &Dataset,
    config: &PartitionConfig,
    out: &Path,
    work: impl FnOnce(&Path) -> Result<Written>,
) -> Result<(PartitionedDataset, PartitionReport)> {
    let whole = || {
        let staging = Staging::create(out, PARTITION)?;
        let tmp = staging.path();
        let mut written = work(tmp)?;
        if config.buckets {
            let dir = tmp.join(BUCKETS);
            buckets::write(dataset, &written.layout, &dir, config.memory)?;
        }
        written.report.write_seconds = written.start.elapsed().as_secs_f64();
        written.report.peak_rss_bytes = peak_rss();
        let report = written.report.clone();
        let manifest = describe(dataset, config, written, tmp)?;
        let path = tmp.join(PARTITION);
        let text = serde_json::to_string_pretty(&manifest).expect("manifests serialise");
        std::fs::write(&path, text).at(&path)?;
        std::fs::File::open(&path).at(&path)?.sync_all().at(&path)?;
        staging.commit()?;
        Ok((PartitionedDataset::open(out)?, report))
    };
    whole().while_doing(|| format!("partitioning {}", dataset.manifest().name))
}

/// Writes all parts; returns them as opened in the temporary directory.
fn write_parts(
    dataset: &Dataset,
    layout: &Layout,
    config: &PartitionConfig,
    tmp: &Path,
) -> Result<Vec<Dataset>> {
    let mut writers = (0..layout.parts)
        .map(|part| {
            let width = IdWidth::for_nodes(layout.part_nodes(part));
            let mut writer = DatasetWriter::create(tmp.join(part_dir(part)), width)?;
            writer.name(format!("{}, part {part}", dataset.manifest().name));
            writer.origin(json!({ "part": part, "of": dataset.manifest().name }));
            Ok(writer)
        })
        .collect::<Result<Vec<_>>>()?;
    // At least a fourth: less would need many passes, and the tables cannot shrink.
    let room = config.memory.saturating_sub(layout.bytes()).max(config.memory / 4);
    // The offsets of the graph's lists are mapped: 8 bytes a node that count as resident.
    let mapped = 8 * layout.of.len() as u64;
    let at_once = together(layout, room.saturating_sub(mapped), NODE_BYTES);
    for (group, writers) in writers.chunks_mut(at_once).enumerate() {
        writers.par_iter_mut().enumerate().try_for_each(|(i, writer)| {
            nodes::write(dataset, layout, group * at_once + i, true, writer)
        })?;
    }
    distribute::write(dataset, layout, &mut writers, room)?;
    let at_once = together(layout, room, LIST_BYTES);
    let finish = FinishOptions { memory: room / at_once as u64, coalesce: false };
    let mut parts = Vec::new();
    while !writers.is_empty() {
        let group: Vec<_> = writers.drain(..at_once.min(writers.len())).collect();
        let finished = group.into_par_iter().map(|writer| writer.finish(finish));
        parts.append(&mut finished.collect::<Result<_>>()?);
    }
    Ok(parts)
}

/// Bytes per node of a part while its columns are written: its id, and two degrees.
const NODE_BYTES: u64 = 16;
/// Bytes per node of a part while its topology is built: room for offsets and for lists in few
/// ranges.
const LIST_BYTES: u64 = 32;

/// Number of parts processed concurrently: one per thread, as far as `memory` has room for
/// so many bytes a node.
fn together(layout: &Layout, memory: u64, node_bytes: u64) -> usize {
    let nodes = (0..layout.parts).map(|part| layout.part_nodes(part)).max().unwrap_or(0);
    let comfortable = node_bytes * nodes + (64 << 20);
    let threads = rayon::current_num_threads() as u64;
    (memory / comfortable).clamp(1, threads) as usize
}

fn describe(
    dataset: &Dataset,
    config: &PartitionConfig,
    written: Written,
    dir: &Path,
) -> Result<PartitionManifest> {
    let Written { layout, report, edges, .. } = written;
    let layout = &layout;
    let node_types = layout.types.iter().enumerate();
    let node_types = node_types.map(|(i, span)| id_map(layout, i, span, dir));
    let counts = edges.into_iter().enumerate().map(|(part, edges)| PartCounts {
        core: layout.types.iter().map(|t| t.core(part)).collect(),
        halo: layout.types.iter().map(|t| t.halo(&layout.halo.nodes[part])).collect(),
        edges,
    });
    let edge_types = dataset.manifest().edge_types.iter();
    Ok(PartitionManifest {
        format: "gnarl-partition".into(),
        version: PARTITION_VERSION,
        source: SourceInfo {
            path: dataset.dir().to_path_buf(),
            name: dataset.manifest().name.clone(),
            fingerprint: fingerprint(dataset.manifest()),
        },
        algorithm: report.algorithm.clone(),
        parameters: config.parameters(),
        seed: config.seed,
        parts: layout.parts,
        layout: config.layout,
        hops: if config.layout == PartLayout::EdgeCut { config.hops } else { 0 },
        node_types: node_types.collect::<Result<_>>()?,
        edge_types: edge_types.map(|t| PartitionedEdges::new(&t.triple, &t.columns)).collect(),
        part_counts: counts.collect(),
        cut: layout.halo.cut.clone(),
        report,
    })
}

/// Writes the id-map columns of a node type.
fn id_map(layout: &Layout, index: usize, span: &TypeSpan, dir: &Path) -> Result<PartitionedType> {
    let stem = format!("map-{index}");
    let bytes = layout.parts.div_ceil(8);
    let mut assignment = NamedColumn::<u32>::create(dir, &stem, "assignment", &[])?;
    let mut new_id = NamedColumn::<u64>::create(dir, &stem, "new_id", &[])?;
    let mut holders = NamedColumn::<u8>::create(dir, &stem, "holders", &[bytes as u64])?;
    let mut row = vec![0u8; bytes];
    for v in span.ids.clone() {
        assignment.push(&[layout.of[v as usize] as u32])?;
        new_id.push(&[layout.new_id(span, v)])?;
        row.fill(0);
        for part in (0..layout.parts).filter(|&p| layout.halo.nodes[p].contains(v)) {
            row[part / 8] |= 1 << (part % 8);
        }
        holders.push(&row)?;
    }
    Ok(PartitionedType {
        name: span.name.clone(),
        count: span.ids.end - span.ids.start,
        ranges: span.starts.clone(),
        columns: vec![assignment.finish()?, new_id.finish()?, holders.finish()?],
    })
}

/// A hash of the manifest's types: names, counts and the checksum of every column.
pub fn fingerprint(manifest: &Manifest) -> String {
    let text = serde_json::to_vec(&(&manifest.node_types, &manifest.edge_types));
    let fold = |hash: u64, &byte: &u8| mix(hash ^ byte as u64);
    format!("{:016x}", text.expect("manifests serialise").iter().fold(0x67_6e61_726c, fold))
}
