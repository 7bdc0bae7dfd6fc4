//! Embedding tables, distributed over the ranks: each row is owned by one rank, the one that has
//! its part of the graph (DistDGLv2, section 5.4). A step fetches the embeddings of its batch from
//! their owners and pushes gradients there; an owner sums the gradients of all ranks, in their
//! order, and updates the row once.
//!
//! Tables are gathered for writing, and where a model reads them for evaluation: [`Table::gather_to_root`]. Those larger than
//! memory are in mapped files, and written by their owners: [`OwnedFiles`].

mod exchange;
mod gather;
mod model;
mod owned_files;
mod owners;
mod replicas;
mod table;

pub use exchange::RowGradients;
pub use gather::{Rows, Values, Whole};
pub use owned_files::{EMBEDDINGS, OwnedFiles};
pub use owners::Owners;
pub use table::{Table, TableSpec};

pub(crate) use exchange::{clip, dense_squares, squares};
pub(crate) use model::{About, about_model, read_model, write_model};
pub(crate) use owners::by_parts;
pub(crate) use replicas::Replicas;

use gnarl_common::Result;
use gnarl_engine::Communicator;
use gnarl_nn::Tensor;
use rayon::ThreadPool;

/// The source of a batch's embeddings.
pub(crate) trait Fetch {
    /// Fetches the embeddings of the `wanted` ids of each table, in that order.
    ///
    /// # Errors
    /// If an id has no row or a rank fails.
    fn fetch(&self, wanted: &[&[u64]]) -> Result<Vec<Tensor>>;
}

/// The embedding tables of all ranks, as seen by one of them.
#[derive(Clone, Copy)]
pub(crate) struct EmbeddingTables<'a> {
    pub tables: &'a [Table],
    pub comm: &'a dyn Communicator,
    /// Threads that read rows.
    pub pool: &'a ThreadPool,
}

impl Fetch for EmbeddingTables<'_> {
    /// A collective of all ranks, even one without ids: others may request its rows.
    fn fetch(&self, wanted: &[&[u64]]) -> Result<Vec<Tensor>> {
        let of = |number: usize| wanted.get(number).copied().unwrap_or(&[]);
        let tables = self.tables.iter().enumerate();
        let fetch = |(number, table): (usize, &Table)| table.fetch(self.comm, of(number));
        self.pool.install(|| tables.map(fetch).collect())
    }
}

/// Gathers all rows of all tables on the first rank; none on the others. A collective of all ranks.
///
/// # Errors
/// If a rank fails.
pub(crate) fn gather_to_root<'a>(
    tables: &'a [Table],
    comm: &dyn Communicator,
) -> Result<Vec<Rows<'a>>> {
    tables.iter().map(|table| table.gather_to_root(comm)).collect()
}
