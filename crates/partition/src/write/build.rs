//! From a dataset to a partitioned dataset.

use std::path::Path;
use std::time::Instant;

use gnarl_common::error::{Context, Error, Result, ResultExt};
use gnarl_common::memory::peak_rss;
use gnarl_common::sealed_json;
use gnarl_common::staging::Staging;
use gnarl_graph::{Dataset, DatasetWriter, FinishOptions, IdWidth};
use rayon::prelude::*;
use serde_json::json;

use crate::assess::lay_out;
use crate::config::PartitionConfig;
use crate::dataset::{PARTITION, PartitionedDataset, part_dir};
use crate::edge_cut::partitioner::VertexPartitioner;
use crate::edge_cut::registry::by_name;
use crate::part_layout::PartLayout;
use crate::report::PartitionReport;
use crate::vertex_cut::{self, EdgePartitioner};
use crate::write::buckets::{self, BUCKETS};
use crate::write::describe::{Written, describe};
use crate::write::layout::Layout;
use crate::write::targets::{self, Targets};
use crate::write::vertex_cut_layout::{self, VertexCutManifest};
use crate::write::{catalog, distribute, nodes, storage};

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
    by_layout(dataset, None, config, out)
}

/// [`partition_dataset`] of `graph`, the message graph of a task, with the edges that the task predicts beside the
/// parts: each in the part that owns its head. The partition is said to be of [`Targets::source`].
///
/// # Errors
/// As [`partition_dataset`]; if `graph` does not have the nodes of the heads, an edge is out of range, or edges lack
/// the features that are asked for; [`Kind::Limit`](gnarl_common::Kind::Limit) for more than 2^32 edges of a split.
pub fn partition_with_targets(
    graph: &Dataset,
    targets: Targets<'_>,
    config: &PartitionConfig,
    out: &Path,
) -> Result<(PartitionedDataset, PartitionReport)> {
    by_layout(graph, Some(targets), config, out)
}

fn by_layout(
    graph: &Dataset,
    targets: Option<Targets<'_>>,
    config: &PartitionConfig,
    out: &Path,
) -> Result<(PartitionedDataset, PartitionReport)> {
    match config.layout {
        PartLayout::EdgeCut | PartLayout::Storage => {
            by_vertices(graph, targets, &*by_name(&config.algorithm)?, config, out)
        }
        PartLayout::VertexCut => {
            let algorithm = edge_partitioner(&config.algorithm)?;
            cut_vertices(graph, targets, &*algorithm, config, out)
        }
    }
}

/// [`partition_dataset`] with a custom partitioner; `config.algorithm` is not used, and the
/// layout is [`PartLayout::EdgeCut`] unless it is [`PartLayout::Storage`].
///
/// # Errors
/// As [`partition_dataset`].
pub fn partition_dataset_with(
    dataset: &Dataset,
    algorithm: &dyn VertexPartitioner,
    config: &PartitionConfig,
    out: &Path,
) -> Result<(PartitionedDataset, PartitionReport)> {
    by_vertices(dataset, None, algorithm, config, out)
}

fn by_vertices(
    dataset: &Dataset,
    targets: Option<Targets<'_>>,
    algorithm: &dyn VertexPartitioner,
    config: &PartitionConfig,
    out: &Path,
) -> Result<(PartitionedDataset, PartitionReport)> {
    match config.layout {
        PartLayout::Storage => store(dataset, targets, algorithm, config, out),
        _ => cut_edges(dataset, targets, algorithm, config, out),
    }
}

fn store(
    dataset: &Dataset,
    targets: Option<Targets<'_>>,
    algorithm: &dyn VertexPartitioner,
    config: &PartitionConfig,
    out: &Path,
) -> Result<(PartitionedDataset, PartitionReport)> {
    run(dataset, targets, config, out, |dir| {
        let (layout, report) = lay_out(dataset, algorithm, config)?;
        let start = Instant::now();
        let edges = storage::write(dataset, &layout, dir, room(config.memory, &layout))?;
        Ok(Written { layout, report, start, edges })
    })
}

fn cut_edges(
    dataset: &Dataset,
    targets: Option<Targets<'_>>,
    algorithm: &dyn VertexPartitioner,
    config: &PartitionConfig,
    out: &Path,
) -> Result<(PartitionedDataset, PartitionReport)> {
    let config = PartitionConfig { layout: PartLayout::EdgeCut, ..config.clone() };
    run(dataset, targets, &config, out, |dir| {
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
    cut_vertices(dataset, None, algorithm, config, out)
}

fn cut_vertices(
    dataset: &Dataset,
    targets: Option<Targets<'_>>,
    algorithm: &dyn EdgePartitioner,
    config: &PartitionConfig,
    out: &Path,
) -> Result<(PartitionedDataset, PartitionReport)> {
    let config = PartitionConfig { layout: PartLayout::VertexCut, ..config.clone() };
    run(dataset, targets, &config, out, |dir| {
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

/// Runs `work` to write the parts of `graph` to a temporary directory, adds target edges and metadata, and renames it.
fn run(
    graph: &Dataset,
    targets: Option<Targets<'_>>,
    config: &PartitionConfig,
    out: &Path,
    work: impl FnOnce(&Path) -> Result<Written>,
) -> Result<(PartitionedDataset, PartitionReport)> {
    let source = targets.as_ref().map_or(graph, |targets| targets.source);
    let whole = || {
        let staging = Staging::create(out, PARTITION)?;
        let tmp = staging.path();
        let mut written = work(tmp)?;
        if config.buckets && config.layout != PartLayout::Storage {
            let dir = tmp.join(BUCKETS);
            buckets::write(graph, &written.layout, &dir, config.memory)?;
        }
        catalog::write(source, tmp)?;
        let targets =
            targets.map(|t| targets::write(graph, &written.layout, t, tmp, config.memory));
        let targets = targets.transpose()?;
        written.report.write_seconds = written.start.elapsed().as_secs_f64();
        written.report.peak_rss_bytes = peak_rss();
        let report = written.report.clone();
        let mut manifest = describe(graph, source, config, written, tmp)?;
        manifest.targets = targets;
        let path = tmp.join(PARTITION);
        let text = sealed_json::to_string(&manifest)?;
        std::fs::write(&path, text).at(&path)?;
        std::fs::File::open(&path).at(&path)?.sync_all().at(&path)?;
        staging.commit()?;
        Ok((PartitionedDataset::open(out)?, report))
    };
    whole().while_doing(|| format!("partitioning {}", source.manifest().name))
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
    let room = room(config.memory, layout);
    // The offsets of the graph's lists are mapped: 8 bytes a node that count as resident.
    let mapped = 8 * layout.of.len() as u64;
    let at_once = together(layout, room.saturating_sub(mapped), NODE_BYTES);
    for (group, writers) in writers.chunks_mut(at_once).enumerate() {
        writers.par_iter_mut().enumerate().try_for_each(|(i, writer)| {
            nodes::write(dataset, layout, group * at_once + i, writer)
        })?;
    }
    distribute::write(dataset, layout, &mut writers, room)?;
    let at_once = together(layout, room, LIST_BYTES);
    let finish =
        FinishOptions { memory: room / at_once as u64, coalesce: false, ..Default::default() };
    let mut parts = Vec::new();
    while !writers.is_empty() {
        let group: Vec<_> = writers.drain(..at_once.min(writers.len())).collect();
        let finished = group.into_par_iter().map(|writer| writer.finish(finish));
        parts.append(&mut finished.collect::<Result<_>>()?);
    }
    Ok(parts)
}

/// Bytes of `memory` beside the tables of all nodes.
fn room(memory: u64, layout: &Layout) -> u64 {
    // At least a fourth: less would need many passes, and the tables cannot shrink.
    memory.saturating_sub(layout.bytes()).max(memory / 4)
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
