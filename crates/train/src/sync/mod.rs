//! Synchronization strategies, one file per strategy.

pub(crate) mod all_reduce;
mod epoch;
mod keeper;
pub(crate) mod model_averaging;
mod totals;
