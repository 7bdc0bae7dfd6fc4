//! Run files: one TOML file per run, and its validation.
//!
//! **In:** a file and overrides ([`load`]: `--set train.lr=0.01`), or a [`RunConfig`] that a program
//! fills. **Out:** a checked [`RunConfig`]; an unknown key is an error that names the nearest known one.
//! [`support`] lists the supported combinations of task, graph, model, sampler, placement and
//! strategy.
//!
//! ```
//! use gnarl_config::{RunConfig, load};
//!
//! let dir = tempfile::tempdir()?;
//! let file = dir.path().join("run.toml");
//! std::fs::write(&file, "dataset.path = 'cora'\nmodel.name = 'gcn'\n")?;
//! let run: RunConfig = load(&file, &["train.lr=0.02".into()])?;
//! assert_eq!((run.model.name.as_str(), run.train.lr), ("gcn", 0.02));
//!
//! let refused = load(&file, &["train.lear=0.02".into()]).unwrap_err();
//! assert!(refused.to_string().contains("train.lear"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod average;
mod deal;
mod disaggregated;
mod evaluate;
mod kept;
mod known;
mod listen;
mod load;
mod negatives;
mod parts;
mod paths;
mod plan;
mod preparation;
mod read_ahead;
mod sample;
mod sections;
mod strategy;
pub mod support;
mod task;
mod tensor;
mod train;
mod unused;
mod words;

pub use average::{AverageSection, Batch, Outer};
pub use disaggregated::{Deal, DisaggregatedSection};
pub use evaluate::{EvaluateSection, ScoredSplit};
pub use gnarl_graph::splits::RandomSplit;
pub use gnarl_nn::optim::ScheduleKind;
pub use listen::Listen;
pub use load::load;
pub use negatives::{NegativesSection, Sides};
pub use parts::{CacheSection, PartitionSection, Parts, Servers};
pub use paths::{absolute, data_folder, home_of, partition_manifest, parts_in_turns};
pub use plan::PlanSection;
pub use read_ahead::ReadAhead;
pub use sample::{BatchSource, Method, SampleSection, TimeRule};
pub use sections::{DatasetSection, ImportSection, OutputSection, RunConfig};
pub use strategy::Strategy;
pub use task::{
    EmbeddingSection, Leakage, MessagesOver, RowOptimizer, RowStore, SplitBy, TaskKind, TaskSection,
};
pub use tensor::TensorSection;
pub use train::{Engine, EvaluateOn, Pipeline, Precision, TrainSection};
pub use unused::Applied;
pub use words::key_named;
