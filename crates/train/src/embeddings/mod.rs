//! Rows that are learnt, as a run has them: each row is with one rank, the one that has its part of the
//! graph (DistDGLv2, section 5.4). A step fetches the rows of its batch from their owners and pushes
//! gradients there; an owner adds up what all ranks pushed, in their order, and updates the row once.
//!
//! Rows come together where they are judged or written: [`Table::on_first`], [`Table::on_all`].

mod collect;
mod copies;
mod exchange;
mod model;
mod owners;
mod table;

pub use collect::{Rows, Whole};
pub use exchange::RowGradients;
pub use owners::Owners;
pub use table::{Table, TableSpec};

pub(crate) use copies::Copies;
pub(crate) use exchange::{clip, squares};
pub(crate) use model::{About, about_model, model_from_bytes, model_to_bytes};
pub(crate) use owners::by_parts;

use gnarl_common::Result;
use gnarl_engine::Communicator;
use gnarl_nn::Tensor;

/// Where the learnt rows of a batch come from.
pub(crate) trait Fetch {
    /// For each table the rows that are wanted of it, in that order.
    ///
    /// # Errors
    /// If an id has no row or a rank fails.
    fn fetch(&self, wanted: &[&[u64]]) -> Result<Vec<Tensor>>;
}

/// The learnt rows of all ranks, as one of them reaches them.
#[derive(Clone, Copy)]
pub(crate) struct Learnt<'a> {
    pub tables: &'a [Table],
    pub rank: &'a dyn Communicator,
}

impl Fetch for Learnt<'_> {
    /// All ranks call it together, also one that wants none: it may have what others ask for.
    fn fetch(&self, wanted: &[&[u64]]) -> Result<Vec<Tensor>> {
        let of = |number: usize| wanted.get(number).copied().unwrap_or(&[]);
        let tables = self.tables.iter().enumerate();
        tables.map(|(number, table)| table.fetch(self.rank, of(number))).collect()
    }
}

/// All rows of all tables on the first rank; no rows on the others. All ranks call it together.
///
/// # Errors
/// If a rank fails.
pub(crate) fn on_first<'a>(tables: &'a [Table], rank: &dyn Communicator) -> Result<Vec<Rows<'a>>> {
    tables.iter().map(|table| table.on_first(rank)).collect()
}
