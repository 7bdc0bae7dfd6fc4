//! Importers: from the files users bring to a [`Dataset`], in bounded memory.
//!
//! Every importer takes its options and the directory to write, and returns [`Imported`]. Files
//! are streamed through buffers; `memory` bounds what grows with the graph: id maps and the
//! topology builder, plus a few MiB of buffers and one split's ids or, from a file of torch, its edges,
//! each array within `memory`. The first bad value is named
//! by file and row, and nothing is left behind. Ids are never renumbered silently:
//! [`ImportReport::renumbered`] says so, and a `user_id` column leads back.

mod array;
mod classes;
mod columns;
mod edge_arrays;
mod edge_csv;
mod extra;
mod graphbolt;
mod ids;
mod input;
mod npy;
mod npy_typed;
mod ogb;
mod source;
mod splits;
mod spool;
mod table;
pub mod torch;
mod triples;
mod triples_typed;
mod weights;

use std::path::Path;

use serde::Serialize;

use crate::dataset::Dataset;
use crate::edges::{EdgeChunk, EdgeStream};
use crate::error::{Error, Kind, Result};
#[cfg(doc)]
use crate::manifest::Triple;
use crate::writer::{DatasetWriter, FinishOptions};

pub use array::id_table;
pub use graphbolt::{GraphboltOptions, graphbolt};
pub use npy::{NpyOptions, npy};
pub use npy_typed::{TypedNpyOptions, typed_npy};
pub use ogb::{OgbOptions, ogb};
pub use splits::LeftOut;
pub use table::{
    EdgeTable, Feature, IdKind, Impute, NodeTable, TableColumn, TableFacts, TableOptions,
    Transform, tables,
};
pub use triples::{TriplesOptions, triples};
pub use weights::WeightType;

/// A dataset and what was found while it was made.
#[derive(Debug, Clone)]
pub struct Imported {
    /// The dataset, opened.
    pub dataset: Dataset,
    /// What was found.
    pub report: ImportReport,
    /// What was taken of each table, in the order in which they were read.
    pub tables: Vec<TableFacts>,
}

/// What an importer found.
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
    /// Whether repeated edges were dropped.
    pub coalesced: bool,
    /// Whether every edge of every edge type has its reverse.
    pub symmetric: bool,
    /// Node types whose nodes have other ids than in the input; the column `user_id` (or
    /// `user_id.offsets` and `user_id.bytes`) holds the input's.
    pub renumbered: Vec<String>,
    /// Members of splits that have no label: they are not in them.
    pub left_out: Vec<LeftOut>,
    /// Node and edge types whose classes have other numbers than in the input; the columns
    /// `class_name.offsets` and `class_name.bytes` hold the input's.
    pub renumbered_classes: Vec<String>,
}

/// What was found while columns were written, for the [`ImportReport`].
#[derive(Debug, Default)]
pub(crate) struct Notes {
    pub left_out: Vec<LeftOut>,
    pub renumbered_classes: Vec<String>,
}

/// Builds the topology, names the dataset, and looks at it once more for the report.
fn finish(
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

/// What becomes of the reverse of each edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reverses {
    /// It is not stored.
    None,
    /// It is an edge of the same type; self loops are not turned around.
    Same,
    /// It is an edge of a type of its own, [`Triple::reversed`].
    Apart,
}

impl Reverses {
    /// Those that an option to symmetrize asks for.
    fn within(symmetrize: bool) -> Self {
        if symmetrize { Self::Same } else { Self::None }
    }
}

/// The error of input without a node or an edge.
fn empty_graph(path: &Path) -> Error {
    Error::invalid(format!("{}: the graph is empty: no edge", path.display()))
        .hint("an import needs at least one edge")
}

/// The error of two ways to store reverses.
fn both_reverses() -> Error {
    Error::usage("reverses are asked for twice").hint(
        "--reverse stores them as edge types of their own, --symmetrize as edges of the same type",
    )
}

/// Refuses a number of nodes whose degrees the budget cannot hold, before anything of that size is
/// allocated: one id in a file decides it. `place` says where the number is from.
///
/// # Errors
/// Of [`Kind::Limit`].
fn check_count(nodes: u64, memory: u64, place: impl FnOnce() -> String) -> Result<()> {
    let needed = nodes.saturating_mul(8);
    if needed <= memory {
        return Ok(());
    }
    let [needed, allowed] = [needed, memory].map(|bytes| bytes >> 20);
    let message = format!(
        "{}: degrees of {nodes} nodes need {needed} MiB, --memory allows {allowed} MiB",
        place()
    );
    Err(Error::new(Kind::Limit, message).hint(
        "ids count up from 0: correct an id that is too large (--num-nodes N refuses those from N on), or raise --memory",
    ))
}

/// The error of a budget that does not suffice.
fn over_budget(memory: u64, what: &str) -> Error {
    Error::new(Kind::Limit, format!("{what} does not fit in the {} MiB of --memory", memory >> 20))
        .hint("raise --memory")
}
