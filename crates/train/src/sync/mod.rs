//! Synchronization strategies, one file per strategy.

pub(crate) mod all_reduce;
mod collect;
mod epoch;
mod keeper;
pub(crate) mod model_averaging;
pub(crate) mod outer;
pub(crate) mod synchronization;
mod totals;
mod windows;
