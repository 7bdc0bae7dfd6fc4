//! Graph partitioning.
//!
//! In: a [`Dataset`](gnarl_graph::Dataset), read as a stream of edges. Out: a
//! [`PartitionedDataset`]: a directory whose parts are datasets of their own, with HALO copies of
//! the neighbors owned elsewhere, and a [`PartitionReport`] of the quality.
//!
//! That is the layout of an edge cut. In a vertex cut ([`PartLayout`]) each edge is in one part, in
//! a [`VertexCutPart`]; and in both, edges can be grouped by the parts of their endpoints
//! ([`EdgeBuckets`]). The edges that a task predicts can be beside the parts ([`PartTargets`]), of
//! which those of its message graph are made.
//!
//! A [`VertexPartitioner`] assigns a part to each node; everything after that (HALO nodes, new ids,
//! columns, edges, the id map) is the same for all of them and streams: edges are never all in
//! memory. The partitioners of [`vertex_cut`] assign a part to each edge, and a node to one of those of
//! its edges.
//!
//! ```
//! use gnarl_graph::{DatasetWriter, FinishOptions, IdWidth, DEFAULT_NODE_TYPE, Triple};
//! use gnarl_partition::{PartitionConfig, Parts, partition_dataset};
//!
//! // Two triangles and a bridge, edges in both directions.
//! let dir = tempfile::tempdir().unwrap();
//! let pairs = [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3), (2, 3)];
//! let (src, dst): (Vec<u64>, Vec<u64>) =
//!     pairs.iter().flat_map(|&(u, v)| [(u, v), (v, u)]).unzip();
//! let mut writer = DatasetWriter::create(dir.path().join("graph"), IdWidth::U32)?;
//! writer.add_node_type(DEFAULT_NODE_TYPE, 6);
//! let mut edges = writer.edge_writer(&Triple::plain(), Some((6, 6)))?;
//! edges.push(&src, &dst)?;
//! writer.add_edge_type(Triple::plain(), edges.finish()?);
//! let graph = writer.finish(FinishOptions::default())?;
//!
//! let config = PartitionConfig {
//!     algorithm: "metis".into(),
//!     parts: Parts::Count(2),
//!     ..Default::default()
//! };
//! let (parts, report) = partition_dataset(&graph, &config, &dir.path().join("parts"))?;
//! assert_eq!(report.part_sizes, [3, 3]);
//! assert_eq!(report.edge_cut, 2.0 / 14.0);
//! // Each part owns a triangle and holds a copy of the bridge's other end.
//! let part = parts.part(0)?;
//! let nodes = part.manifest().node_type(DEFAULT_NODE_TYPE)?;
//! assert_eq!((nodes.core, nodes.count), (Some(3), 4));
//! # Ok::<(), gnarl_common::Error>(())
//! ```

mod assess;
mod auto;
mod balance;
mod by_range;
mod config;
mod dataset;
mod description;
mod edge_cut;
mod part_layout;
mod plan;
mod read;
mod report;
pub mod vertex_cut;
mod write;

pub use assess::{assess, assess_edges};
pub use auto::{Parts, Workers};
pub use balance::constraint::Constraint;
pub use by_range::is_read_whole;
pub use config::PartitionConfig;
pub use dataset::{
    PARTITION, PARTITION_VERSION, PartCounts, PartitionManifest, PartitionedColumn,
    PartitionedDataset, PartitionedEdges, PartitionedType, SourceInfo,
};
pub use description::{CATALOG_MANIFEST, describing_files, verify_description};
pub use edge_cut::fennel::Fennel;
pub use edge_cut::grem::{Grem, Neighbors, expected_cut, expected_cut_refined};
pub use edge_cut::knot::Knot;
pub use edge_cut::ldg::Ldg;
pub use edge_cut::metis::Metis;
pub use edge_cut::partitioner::{Assignment, MAX_PARTS, PartitionOptions, VertexPartitioner};
pub use edge_cut::random::Random;
pub use edge_cut::range::Range;
pub use edge_cut::registry::{by_name, names, registry};
pub use edge_cut::spring::Spring;
pub use edge_cut::two_level::TwoLevel;
pub use part_layout::PartLayout;
pub use plan::{Batches, Counts, Degrees, Fanouts, Plan, PlanOptions, Prediction, Within, plan};
pub use read::chunk::Chunk;
pub use report::{PartitionReport, VertexCutReport};
pub use write::buckets::{
    BUCKETS, BUCKETS_VERSION, Bucket, BucketFiles, BucketsManifest, BucketsType, EdgeBuckets,
    LoadedBucket,
};
pub use write::build::{
    edge_partitioner, partition_dataset, partition_dataset_with, partition_edges_with,
    partition_with_targets,
};
pub use write::describe::fingerprint;
pub use write::nodes::degree_column;
pub use write::targets::{
    LabelOf, PartTargets, SplitTargets, TakeTarget, TargetEdge, TargetLabels, Targets,
    TargetsManifest,
};
pub use write::vertex_cut_layout::{
    CutEdgeType, CutNeighbors, CutNodeType, Direction, InLists, Neighbor, TOPOLOGY, TypeList,
    VERTEX_CUT_VERSION, VertexCutManifest, VertexCutPart,
};
