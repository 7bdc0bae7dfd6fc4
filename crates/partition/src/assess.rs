//! Partition quality without writing the parts.

use std::time::Instant;

use gnarl_common::error::{Context, Error, Result};
use gnarl_common::memory::peak_rss;
use gnarl_graph::Dataset;

use crate::auto::Parts;
use crate::config::{PartitionConfig, options};
use crate::edge_cut::partitioner::{Assignment, VertexPartitioner};
use crate::edge_cut::two_level::TwoLevel;
use crate::part_layout::PartLayout;
use crate::report::{PartitionReport, cut_degrees};
use crate::vertex_cut::EdgePartitioner;
use crate::write::halo::Halo;
use crate::write::layout::Layout;
use crate::write::vertex_cut_layout::cut::cut;

/// Partitions `dataset` by `algorithm` and measures the result as [`partition_dataset`] does,
/// halo nodes included, but writes nothing; `config.algorithm` is not used. The report's
/// `write_seconds` are 0.
///
/// Memory beside the partitioner's: 6 bytes a node and one bit (two beyond one hop) per node
/// and part.
///
/// [`partition_dataset`]: crate::partition_dataset
///
/// # Errors
/// For impossible numbers of parts, or if the partitioner rejects the graph.
pub fn assess(
    dataset: &Dataset,
    algorithm: &dyn VertexPartitioner,
    config: &PartitionConfig,
) -> Result<(Assignment, PartitionReport)> {
    let (layout, mut report) = lay_out(dataset, algorithm, config)
        .while_doing(|| format!("partitioning {}", dataset.manifest().name))?;
    report.peak_rss_bytes = peak_rss();
    Ok((Assignment { parts: layout.parts, of: layout.of }, report))
}

/// [`assess`] for a vertex cut: its replicas, and owners drawn among them.
///
/// # Errors
/// As [`assess`]; if two levels of parts or hops are requested.
pub fn assess_edges(
    dataset: &Dataset,
    algorithm: &dyn EdgePartitioner,
    config: &PartitionConfig,
) -> Result<(Assignment, PartitionReport)> {
    let (cut, mut report) = cut(dataset, algorithm, config, None)
        .while_doing(|| format!("partitioning {}", dataset.manifest().name))?;
    report.peak_rss_bytes = peak_rss();
    Ok((Assignment { parts: cut.layout.parts, of: cut.layout.of }, report))
}

/// Assigns every node to a part; the report lacks the cost of writing.
pub(crate) fn lay_out(
    dataset: &Dataset,
    algorithm: &dyn VertexPartitioner,
    config: &PartitionConfig,
) -> Result<(Layout, PartitionReport)> {
    if config.layout == PartLayout::Storage && config.hops != PartitionConfig::default().hops {
        return Err(Error::usage("parts of layout storage have no halo nodes, and no --hops")
            .hint("omit --hops, or use --layout edge-cut"));
    }
    let options = options(dataset, config)?;
    options.check(dataset.manifest().num_nodes())?;
    let mut edges = dataset.edges()?;
    let start = Instant::now();
    let assignment = match config.parts {
        Parts::Levels { machines, workers } => {
            TwoLevel { algorithm, machines, workers }.partition(&mut edges, &options)?
        }
        _ => algorithm.partition(&mut edges, &options)?,
    };
    let seconds = start.elapsed().as_secs_f64();
    let halo = match config.layout {
        PartLayout::Storage => Halo::none(&mut edges, &assignment)?,
        _ => Halo::expand(&mut edges, &assignment, config.hops, config.seed)?,
    };
    let layout = Layout::new(dataset.manifest(), assignment, halo);
    let mut report = PartitionReport::measure(algorithm.name(), &layout, &options.train);
    report.seconds = seconds;
    report.cut_degrees = cut_degrees(dataset, &layout)?;
    Ok((layout, report))
}
