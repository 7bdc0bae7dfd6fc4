//! Importers: from the files users bring to a [`Dataset`](crate::Dataset), in bounded memory.
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
mod entities;
mod errors;
mod extra;
mod graphbolt;
mod ids;
mod input;
mod notes;
mod npy;
mod npy_heterogeneous;
mod ogb;
mod report;
mod reverses;
mod source;
mod splits;
mod spool;
mod table;
mod times;
pub mod torch;
mod triples;
mod triples_heterogeneous;
mod values;
mod weights;

pub use array::id_table;
pub use graphbolt::{GraphboltOptions, graphbolt};
pub use notes::LeftOut;
pub(crate) use notes::Notes;
pub use npy::{NpyOptions, npy};
pub use npy_heterogeneous::{HeteroNpyOptions, heterogeneous_npy};
pub use ogb::{OgbOptions, ogb};
pub use report::{ImportReport, Imported};
pub use table::{
    EdgeTable, Feature, IdKind, Impute, NodeTable, TableColumn, TableFacts, TableOptions,
    Transform, tables,
};
pub use triples::{TriplesOptions, triples};
pub use weights::WeightType;
