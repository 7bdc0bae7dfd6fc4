//! A run, from configuration to results.

mod announce;
mod auto;
pub(crate) mod checkpoint;
mod edges;
mod eval;
#[cfg(feature = "serve")]
mod feed;
mod finish;
pub mod folder;
mod handshake;
mod infer;
mod partition;
mod places;
mod prepared;
mod recorded;
pub(crate) mod setup;
mod summary;
mod train;
mod trained;
mod watch;
#[cfg(feature = "serve")]
mod work;

pub use edges::{EdgeModel, KeepEdges};
pub use eval::eval_run;
pub use infer::{Infer, Leader, infer_by_threads, infer_on};
pub use places::{record_folder, run_folder};
pub use prepared::PreparedSummary;
pub use recorded::Recorded;
pub use summary::{Finished, Summary};
pub use train::{run, run_on};
pub use trained::{OpenOptions, TrainedRun};
pub use watch::Watch;
#[cfg(feature = "serve")]
pub use work::{Work, WorkOptions};
