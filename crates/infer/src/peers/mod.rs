//! Inference by several ranks, each of which computes the nodes that it owns.
//!
//! Before a layer is computed, a rank fetches the rows that it reads and others own, in bulk and each once: while a
//! layer is computed nothing is read from another rank (GLISP §III-D, the static cache).

mod deliver;
mod fill;
mod meetings;
mod owners;
mod ranks;
mod requests;
mod rounds;

pub(crate) use deliver::deliver;
pub(crate) use fill::fill;
pub(crate) use meetings::Meetings;
pub use owners::{EvenOwners, Owners, PartOwners};
pub use ranks::Peers;
pub(crate) use requests::requested;

/// Times that ranks wait for each other while a layer is computed: so no rank is later than a fraction of a layer, and
/// deadlines need not cover whole ones.
const MEETINGS: usize = 16;
