//! The result of an import: the dataset and a report.

use gnarl_common::Result;
use serde::Serialize;

use super::errors::over_budget;
use super::notes::{LeftOut, Notes};
use super::table::TableFacts;
use crate::dataset::Dataset;
use crate::edges::{EdgeChunk, EdgeStream};
use crate::writer::{DatasetWriter, FinishOptions};

/// The imported dataset and a report.
#[derive(Debug, Clone)]
pub struct Imported {
    /// The dataset, opened.
    pub dataset: Dataset,
    /// The report.
    pub report: ImportReport,
    /// Facts about each table, in reading order.
    pub tables: Vec<TableFacts>,
}

/// The report of an import.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ImportReport {
    /// Nodes of all types.
    pub nodes: u64,
    /// Edges of all types, as stored.
    pub edges: u64,
    /// Nodes without any edge.
    pub isolated: u64,
    /// Edges from a node to itself.
    pub self_loops: u64,
    /// Edges that repeat an earlier one; they were dropped if `coalesced`.
    pub duplicates: u64,
    /// True if repeated edges were dropped.
    pub coalesced: bool,
    /// True if every edge of every edge type has its reverse.
    pub symmetric: bool,
    /// Node types whose nodes have other ids than in the input; the column `user_id` (or
    /// `user_id.offsets` and `user_id.bytes`) holds the input's.
    pub renumbered: Vec<String>,
    /// Members of splits without a label, which were left out.
    pub left_out: Vec<LeftOut>,
    /// Node and edge types whose classes have other numbers than in the input; the columns
    /// `class_name.offsets` and `class_name.bytes` hold the input's.
    pub renumbered_classes: Vec<String>,
}

/// Builds the topology, names the dataset, and scans it once more for the report.
pub(super) fn finish(
    mut writer: DatasetWriter,
    options: FinishOptions,
    renumbered: Vec<String>,
) -> Result<Imported> {
    let Notes { left_out, renumbered_classes } = std::mem::take(&mut writer.notes);
    let dataset = writer.finish(options)?;
    let manifest = dataset.manifest();
    let facts = || manifest.edge_types.iter().map(|t| &t.facts);
    let report = ImportReport {
        nodes: manifest.num_nodes(),
        edges: manifest.num_edges(),
        isolated: isolated(&dataset, options.memory)?,
        self_loops: facts().map(|f| f.self_loops).sum(),
        duplicates: facts().map(|f| f.duplicates).sum(),
        coalesced: options.coalesce,
        symmetric: facts().all(|f| f.symmetric),
        renumbered,
        left_out,
        renumbered_classes,
    };
    Ok(Imported { dataset, report, tables: Vec::new() })
}

/// Nodes that no edge touches: one bit a node, one pass over the edges.
fn isolated(dataset: &Dataset, memory: u64) -> Result<u64> {
    let nodes = dataset.manifest().num_nodes();
    if nodes / 8 > memory {
        return Err(over_budget(memory, &format!("a bit for each of {nodes} nodes")));
    }
    let mut seen = vec![0u64; nodes.div_ceil(64) as usize];
    let mut edges = dataset.edges()?;
    let mut chunk = EdgeChunk::default();
    while edges.next_chunk(&mut chunk)? {
        for &id in chunk.src.iter().chain(&chunk.dst) {
            seen[(id / 64) as usize] |= 1 << (id % 64);
        }
    }
    Ok(nodes - seen.iter().map(|word| u64::from(word.count_ones())).sum::<u64>())
}
