//! Neighbor and subgraph samplers that turn seeds into blocks.
//!
//! In: a [`SampleGraph`] (in-neighbor lists of a graph or of one part of it), seeds, and a random
//! [`Key`](gnarl_common::rng::Key) for the run and the epoch. Out: a
//! [`MiniBatch`](gnarl_graph::blocks::MiniBatch): one [`Block`](gnarl_graph::blocks::Block) per model
//! layer, the nodes whose features to fetch, and the rows that enter the loss.
//!
//! ```
//! use gnarl_common::rng::Key;
//! use gnarl_graph::Csc;
//! use gnarl_sample::{SampleGraph, Sampler, Scratch, UniformSampler};
//!
//! let graph = SampleGraph::new(Csc::from_edges(4, &[(1, 0), (2, 0), (3, 0), (3, 1), (0, 3)]))?;
//! let sampler = UniformSampler::new(&graph, &[2, -1])?; // two neighbors of each seed, then all
//! let mut scratch = Scratch::new(); // one a thread, for all its batches
//! let key = Key::new(42).with(0); // the run's seed, then the epoch
//! for seeds in sampler.epoch(&[0, 1], 1, key) {
//!     let batch = sampler.sample(&seeds, key, &mut scratch)?;
//!     assert_eq!(batch.blocks.len(), 2);
//!     assert_eq!(batch.input_nodes[0], seeds[0]);
//!     assert_eq!(batch.blocks[1].num_dst(), 1);
//!     assert!(batch.blocks[1].num_edges() <= 2);
//! }
//! # Ok::<(), gnarl_common::Error>(())
//! ```
//!
//! Samplers are one file each: [`UniformSampler`], [`ExactSampler`], [`WeightedSampler`],
//! [`LaborSampler`] and [`FullSampler`] (and [`whole_graph`]) take neighborhoods of seeds,
//! [`TemporalSampler`] those no later than the seeds, [`WalkNeighbors`] those that random walks
//! visit most, [`PprNeighbors`] those of highest personalized PageRank; [`ClusterSampler`] and [`SaintSampler`] take
//! subgraphs, which serve all layers; [`parts`] takes neighborhoods from parts on any machine. To
//! add one, implement [`Sampler`] and list it in `tests/sample/conformance.rs`. [`HeteroSampler`] takes
//! neighborhoods in a [`HeteroSampleGraph`], with several types of nodes and edges; [`FrontierSampler`] expands each node
//! once, for models that share one edge list. [`RandomWalk`] and
//! [`MetaPathWalk`] give the walks themselves. [`negatives`] holds the negative samplers.

mod bottom_k;
mod cluster;
mod draw;
mod edge_features;
mod exact;
mod frontier;
mod full;
mod graph;
mod hash;
mod heterogeneous;
mod induced;
mod labor;
mod lanes;
pub mod negatives;
mod neighbors;
pub mod parts;
mod positions;
mod ppr;
mod resident;
mod saint;
mod sampler;
mod scratch;
mod share;
mod temporal;
mod uniform;
mod view;
mod walk;
mod weighted;
mod weights;

pub use cluster::ClusterSampler;
pub use edge_features::EdgeFeatures;
pub use exact::ExactSampler;
pub use frontier::{FrontierBatch, FrontierEdges, FrontierPartsSampler, FrontierSampler, Roots};
pub use full::{FullSampler, whole_block, whole_graph};
pub use graph::SampleGraph;
pub use heterogeneous::{
    EdgeServices, HeteroBatch, HeteroBlock, HeteroFanouts, HeteroPartsSampler, HeteroSampleGraph,
    HeteroSampler, HeteroScratch, HeteroTemporalBatch, HeteroTemporalPartsSampler,
    HeteroTemporalSampler, Relation, SeedsAt, local_parts,
};
pub use labor::LaborSampler;
pub use neighbors::NeighborSampler;
pub use ppr::PprNeighbors;
pub use resident::{Buckets, PartNodes, ResidentGraph};
pub use saint::{EdgeDraw, NodeDraw, SaintDraw, SaintSampler, WalkDraw};
pub use sampler::{Sampler, shuffled_batches};
pub use scratch::Scratch;
pub use temporal::{TemporalBatch, TemporalDraw, TemporalRule, TemporalSampler};
pub use uniform::UniformSampler;
pub use walk::{MetaPathWalk, RandomWalk, WalkNeighbors};
pub use weighted::WeightedSampler;
pub use weights::Weights;
