//! Reports of runs, of partitions and of inferences, and comparisons of runs: one HTML page each, with its charts.
//!
//! **In:** a run as its folder records it ([`gnarl_train::Recorded`]), the manifest of a partition, or the figures of an inference
//! ([`Inference`]). **Out:** a page that needs neither network nor scripts.
//!
//! ```
//! use gnarl_graph::generate::{CommunityOptions, community};
//! use gnarl_partition::{PartitionConfig, Parts, partition_dataset};
//! use gnarl_report::write_partition_report;
//!
//! let dir = tempfile::tempdir()?;
//! let options = CommunityOptions { nodes: 300, communities: 3, ..Default::default() };
//! let graph = community(&options, &dir.path().join("graph"))?.dataset;
//! let config = PartitionConfig { parts: Parts::Count(3), ..Default::default() };
//! let (parts, _) = partition_dataset(&graph, &config, &dir.path().join("parts"))?;
//!
//! write_partition_report(dir.path(), parts.manifest())?;
//! let page = std::fs::read_to_string(dir.path().join("report.html"))?;
//! assert!(page.contains("in 3 parts"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod compare;
mod inference;
mod page;
mod partition;
mod run;
mod settings;

pub use compare::Comparison;
pub use inference::{Inference, write_inference_report};
pub use partition::write_partition_report;
pub use run::{LiveReport, write_run_report};
