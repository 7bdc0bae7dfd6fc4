//! Steps chunk by chunk: within a memory budget, on disk where it asks for that, and with the exchange of
//! one chunk under the computation of the next (NeutronTP, section 4.2).
//!
//! A rank's rows are cut into pieces, its columns into panels. Dense stages run over pieces, all columns of
//! some rows; messages pass over panels, some columns of all rows, which are what must be in memory at
//! once. Panels are to time what slices are to ranks.

mod courier;
mod held;
mod layout;
mod matrix;
mod messages;
mod plan;
mod program;
mod step;
mod sweep;
mod train;

pub(crate) use train::{train, with};
