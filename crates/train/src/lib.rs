//! Training: strategies, the mini-batch pipeline, checkpoints, evaluation and the run's folder.
//!
//! In: a [`RunConfig`] that names a dataset. Out: a folder with the best weights, every epoch's
//! figures, and a [`Summary`].

mod agreement;
mod announce;
mod balance;
pub mod checkpoint;
pub mod config;
mod cut;
#[cfg(feature = "serve")]
mod divided;
mod edges;
pub mod embeddings;
pub mod evaluate;
mod faults;
pub mod folder;
pub mod history;
mod json;
pub mod learner;
mod links;
mod loaded;
mod memory;
mod messages;
pub mod metrics;
mod nodes;
pub mod pipeline;
pub mod plan;
mod processor;
pub mod pulse;
mod report;
mod run;
mod shares;
pub mod state;
pub mod strategy;
mod subgraphs;
pub mod task;
mod tensor;
mod typed;
mod verdict;

pub use balance::Balance;
pub use config::RunConfig;
pub use folder::Begin;
pub use history::{EpochRecord, ExchangedBytes, Stages};
pub use links::{LeakageReport, RelationScores};
pub use loaded::build_model;
pub use messages::Seen;
pub use report::write_report;
pub use run::{Finished, Summary, eval_run, run, run_on};
pub use verdict::Verdict;
