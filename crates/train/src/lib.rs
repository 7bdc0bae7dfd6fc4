//! Training: tasks, encoders, steps and their synchronization, the mini-batch pipeline, checkpoints, evaluation and
//! the run's folder.
//!
//! **In:** a [`RunConfig`](gnarl_config::RunConfig) that names a dataset, and a [`Registry`] of a program's own models
//! and tasks. **Out:** a folder with the best weights and the figures of every epoch, and a [`Summary`].
//!
//! ```
//! use gnarl_config::RunConfig;
//! use gnarl_graph::generate::{Attributes, CommunityOptions, community};
//! use gnarl_train::{Begin, eval_run, run};
//!
//! let dir = tempfile::tempdir()?;
//! let attributes =
//!     Attributes { features: 16, classes: 4, train: 0.5, valid: 0.2, test: 0.3, ..Default::default() };
//! let options = CommunityOptions { nodes: 500, communities: 4, attributes, ..Default::default() };
//! community(&options, &dir.path().join("graph"))?;
//!
//! let mut config = RunConfig::default();
//! config.dataset.path = dir.path().join("graph");
//! config.model.hidden = 16;
//! config.train.workers = 2;
//! config.train.epochs = 5;
//! config.output.dir = dir.path().join("run");
//! let finished = run(&config, Begin::Fresh, &|epoch| println!("loss {:.3}", epoch.loss))?;
//! assert_eq!(eval_run(&config.output.dir, None)?.test, finished.summary.test);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod data;
pub mod embeddings;
mod encoder;
pub mod evaluation;
mod faults;
#[cfg(feature = "serve")]
mod feed;
mod fit;
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing;
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
pub use encoder::{Keep, Output};
pub use evaluation::{LeakageReport, RelationScores, Scores};
pub use registry::Registry;
pub use run::folder::{Begin, GraphRecord, MOST_READ, Provenance, Unmeasured};
pub use run::{
    EdgeModel, Finished, Infer, KeepEdges, Leader, OpenOptions, PreparedSummary, Recorded, Summary,
    TrainedRun, Watch, eval_run, infer_by_threads, infer_on, record_folder, run, run_folder,
    run_on,
};
#[cfg(feature = "serve")]
pub use run::{Work, WorkOptions};
pub use sync::outer::OuterOptimizer;
pub use task::objective::{Objective, Scorer, Targets};
pub use task::{EdgeBatch, partition_for_task};
pub use telemetry::{
    Balance, EpochRecord, ExchangedBytes, ProfileTotals, Rates, Stages, Total, Verdict,
};
