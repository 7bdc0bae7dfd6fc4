//! The graph data model: node and edge types, columns, edge streams and in-neighbor lists, on
//! disk and in memory.
//!
//! **In:** raw files (importers), or a generator's options ([`generate`]).
//! **Out:** a [`Dataset`]: a directory of `dataset.json` and one `.npy` file for each column. Its
//! edges can be streamed again and again ([`EdgeStream`]), its in-neighbor lists ([`Csc`]),
//! features, labels and splits are mapped. [`inspect::inspect`] describes it and
//! [`inspect::verify`] checks its files.
//!
//! Everything runs in bounded memory and gives the same bytes for any number of threads.
//!
//! ```
//! use gnarl_graph::generate::{CommunityOptions, community};
//! use gnarl_graph::{Dataset, DEFAULT_NODE_TYPE, Triple};
//!
//! # fn main() -> gnarl_common::Result<()> {
//! let dir = tempfile::tempdir().unwrap();
//! let path = dir.path().join("small");
//! let options = CommunityOptions { nodes: 1000, communities: 8, ..Default::default() };
//! let made = community(&options, &path)?;
//! assert!(made.facts.symmetric);
//!
//! let dataset = Dataset::open(&path)?;
//! let csc = dataset.csc(&Triple::plain())?;
//! println!("node 0 has {} neighbors: {:?}", csc.degree(0), csc.sources(0));
//! let features = dataset.features(DEFAULT_NODE_TYPE)?.expect("community graphs have features");
//! assert_eq!((features.rows(), features.width()), (1000, 100));
//! # Ok(())
//! # }
//! ```

pub mod blocks;
mod column;
mod csc;
mod dataset;
mod edges;
mod features;
pub mod generate;
pub mod import;
pub mod inspect;
mod manifest;
mod names;
mod narrow;
pub mod splits;
pub mod times;
pub mod triples;
mod user_ids;
mod validate;
mod writer;

pub use column::{Column, ColumnSpec};
pub use csc::Csc;
pub use dataset::Dataset;
pub use edges::{CHUNK_EDGES, DatasetEdges, EdgeChunk, EdgeStream, MemoryEdges, for_each_edge};
pub use features::{Features, Labels};
pub use manifest::{
    DEFAULT_NODE_TYPE, EdgeFacts, EdgeType, MANIFEST, Manifest, NodeType, Triple, VERSION,
};
pub use names::Names;
pub use narrow::{Narrow, NarrowSlice};
pub use user_ids::{UserIdKind, UserIds};
pub use validate::check_columns;
pub use writer::{ColumnWriter, DatasetWriter, EdgeWriter, FinishOptions, IdWidth};
