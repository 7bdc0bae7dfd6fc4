//! Synchronization: who shares what, and when. One file per way.

pub(crate) mod all_reduce;
mod epoch;
mod keeper;
pub(crate) mod model_averaging;
mod totals;
