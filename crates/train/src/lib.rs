//! Training: tasks, encoders, steps and their synchronization, the mini-batch pipeline, checkpoints, evaluation and
//! the run's folder.
//!
//! In: a [`RunConfig`] that names a dataset. Out: a folder with the best weights, every epoch's
//! figures, and a [`Summary`].

pub mod data;
pub mod embeddings;
mod encoder;
pub mod evaluation;
mod faults;
mod fit;
mod json;
pub mod pipeline;
mod registry;
mod run;
pub mod session;
pub mod state;
pub mod step;
mod sync;
mod task;
pub mod telemetry;

pub use data::edge_set::LeakageCount;
pub use evaluation::{LeakageReport, RelationScores, Scores};
pub use registry::Registry;
pub use run::folder::Begin;
pub use run::{Finished, Summary, eval_run, run, run_on};
pub use task::objective::{Objective, Scorer, Targets};
pub use telemetry::{Balance, EpochRecord, ExchangedBytes, Stages, Verdict};
