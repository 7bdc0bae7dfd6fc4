//! Full-graph steps in chunks: within a memory budget, on disk if configured, and with the exchange
//! of one chunk overlapping the computation of the next (NeutronTP, section 4.2).
//!
//! A rank's rows are split into row blocks, its columns into column blocks. Dense stages run over
//! row blocks, all columns of some rows; messages pass over column blocks, some columns of all
//! rows, which are what must be in memory at once. Column blocks split a rank's work in time as
//! feature slices split it among ranks. `passes` has a file for each kind of pass: sums, attention, and
//! whatever a tape can do.

mod comm_thread;
mod layout;
mod matrix;
mod messages;
mod passes;
mod plan;
mod program;
mod saved;
mod schedule;
mod step;
mod train;
mod wire;

pub(crate) use train::{train, with};
