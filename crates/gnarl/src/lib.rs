//! gnarl: graph neural networks at really large scale.
//!
//! In: a raw graph. Out: a trained model. The `gnarl` binary does this from files; this crate is
//! the same for programs, with a module for each step:
//!
//! | module | in → out |
//! |---|---|
//! | [`graph`] | raw files or a generator → [`graph::Dataset`] |
//! | [`partition`] | a dataset → a [`partition::PartitionedDataset`] |
//! | [`sample`] | seeds → a [`graph::blocks::MiniBatch`] |
//! | [`store`] | node ids → feature rows |
//! | [`loader`] | seeds → batches for models outside gnarl |
//! | `serve` (a feature) | parts → neighbors and features for other machines |
//! | `objects` (a feature) | files → objects of a store, and datasets back |
//! | [`engine`] | each rank's values → what all ranks agree on |
//! | [`nn`] | a mini-batch and rows → loss and gradients |
//! | [`config`] | a run file → a [`config::RunConfig`] |
//! | [`planner`] | a run and a dataset → the seconds of each strategy |
//! | [`train`] | a run's configuration → weights and figures |
//! | [`report`] | a finished run or a partition → an HTML page |
//!
//! ```
//! use gnarl::graph::generate::{Attributes, CommunityOptions, community};
//! use gnarl::config::{Parts, RunConfig};
//! use gnarl::report::write_run_report;
//! use gnarl::train::{Begin, Recorded, run};
//!
//! // A graph of planted communities that a GNN can learn.
//! let dir = tempfile::tempdir()?;
//! let attributes =
//!     Attributes { features: 16, classes: 4, train: 0.5, valid: 0.2, test: 0.3, ..Default::default() };
//! let options =
//!     CommunityOptions { nodes: 800, communities: 4, average_degree: 10.0, attributes, ..Default::default() };
//! community(&options, &dir.path().join("graph"))?;
//!
//! // Two workers train GraphSAGE on four parts.
//! let mut config = RunConfig::default();
//! config.dataset.path = dir.path().join("graph");
//! config.partition.parts = Parts::Count(4);
//! config.model.hidden = 16;
//! config.sample.batch_size = 64;
//! config.train.workers = 2;
//! config.train.epochs = 10;
//! config.output.dir = dir.path().join("run");
//! let finished = run(&config, Begin::Fresh, &|epoch| eprintln!("loss {:.3}", epoch.loss))?;
//! write_run_report(&config.output.dir, &Recorded::of(&finished))?;
//! assert!(finished.summary.test["accuracy"] > 0.5);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A model of one's own implements [`nn::models::Model`] over the operations of [`nn::Tape`]; a
//! partitioner implements [`partition::VertexPartitioner`]. `examples/custom_model` and
//! `examples/custom_partitioner` in the repository show both.

pub use gnarl_common::{Error, Kind, Result};
pub use gnarl_common::{npy, rng};
pub use gnarl_config as config;
pub use gnarl_engine as engine;
pub use gnarl_graph as graph;
pub use gnarl_infer as infer;
pub use gnarl_loader as loader;
pub use gnarl_nn as nn;
pub use gnarl_objects as objects;
pub use gnarl_partition as partition;
pub use gnarl_planner as planner;
pub use gnarl_report as report;
pub use gnarl_sample as sample;
#[cfg(feature = "serve")]
pub use gnarl_serve as serve;
pub use gnarl_store as store;
pub use gnarl_train as train;
