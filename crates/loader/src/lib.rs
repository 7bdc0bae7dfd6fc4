//! Mini-batches for models that are computed outside gnarl, such as those of PyTorch Geometric.
//!
//! In: a dataset on disk, or its parts here and at servers, the seeds, fan-outs. Out: an [`Epoch`] of [`Batch`]es in a fixed order, each of which has the
//! local edge list of its neighborhood, the features and labels of its nodes, and the ids of nodes and edges. Threads
//! prepare them ahead of whoever takes them. A batch is a pure function of the dataset, the options, the epoch and its
//! number: never of the number of threads.
//!
//! ```
//! use std::sync::Arc;
//!
//! use gnarl_graph::generate::{Attributes, CommunityOptions, community};
//! use gnarl_loader::{LoaderGraph, LoaderOptions, NeighborLoader};
//! use gnarl_sample::HeteroFanouts;
//! use gnarl_sample::parts::Rule;
//!
//! let dir = tempfile::tempdir()?;
//! let attributes = Attributes { features: 16, classes: 4, train: 0.5, ..Default::default() };
//! let options =
//!     CommunityOptions { nodes: 800, communities: 4, average_degree: 10.0, attributes, ..Default::default() };
//! let dataset = community(&options, &dir.path().join("graph"))?.dataset;
//!
//! let graph = Arc::new(LoaderGraph::open(&dataset)?);
//! let seeds = graph.split(0, "train")?;
//! let options = LoaderOptions { batch_size: 64, shuffle: true, ..Default::default() };
//! let loader = NeighborLoader::new(graph, seeds, (&HeteroFanouts::new(&[5, 5]), Rule::Uniform), options)?;
//! for batch in loader.epoch(0) {
//!     let batch = batch?;
//!     let nodes = &batch.nodes[0];
//!     assert_eq!(nodes.features.as_ref().map(|rows| rows.values.len()), Some(nodes.ids.len() * 16));
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod batch;
mod columns;
mod endpoints;
mod epoch;
mod examples;
mod gate;
mod graph;
mod links;
mod lists;
mod loader;
mod negatives;
mod options;
#[cfg(feature = "serve")]
mod partitioned;
#[cfg(feature = "serve")]
mod parts;
#[cfg(feature = "serve")]
mod remote;
mod repeated;
mod request;
mod rows;
mod sampler;
mod schedule;
mod scratches;
#[cfg(feature = "serve")]
mod served;
mod source;
mod subgraph;
#[cfg(feature = "serve")]
mod wire;

pub use batch::{Batch, BatchEdges, BatchLinks, BatchNodes};
pub use epoch::Epoch;
pub use examples::SeedEdges;
pub use gate::{after_fork, before_fork};
pub use graph::{LoaderGraph, Seeds};
pub use loader::NeighborLoader;
pub use negatives::Negatives;
pub use options::{Columns, LoaderOptions, Neighborhood, Subgraph};
#[cfg(feature = "serve")]
pub use parts::PartsOptions;
pub use rows::{FeatureRows, LabelRows};
pub use sampler::NeighborSampler;
#[cfg(feature = "serve")]
pub use served::BatchMaker;
