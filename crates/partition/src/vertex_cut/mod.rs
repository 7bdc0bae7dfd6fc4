//! Edge partitioners: each edge goes to one part, nodes are cut.
//!
//! In: an [`EdgeStream`](gnarl_graph::EdgeStream). Out: the part of every edge, chunk by chunk in
//! the order of the stream, into an [`EdgeSink`]; the assignment is never in memory as a whole. A
//! node is replicated in every part that has one of its edges; [`Replicas`] collects these sets and
//! measures the quality. [`Owner`] picks one replica of each node, which turns any edge
//! partitioner into a [`VertexPartitioner`](crate::VertexPartitioner) that is fit for training.
//!
//! | name | paper | passes | memory |
//! |---|---|---|---|
//! | `hash-1d` | GraphX (Gonzalez et al., OSDI 2014 §4.2) | 1 | none |
//! | `hash-2d` | GraphX, the grid | 1 | none |
//! | `dbh` | Xie et al., NeurIPS 2014 | 2 | 4 bytes a node |
//! | `greedy` | PowerGraph (Gonzalez et al., OSDI 2012 §4.2) | 2 | 4 bytes and p bits a node |
//! | `hdrf` | Petroni et al., CIKM 2015 | 1 | 4 bytes and p bits a node |
//! | `2ps-l` | Mayer, Orujzade, Jacobsen, ICDE 2022 | 4 | 24 bytes and p bits a node |
//! | `dne` | Hanai et al., VLDB 2019 | 3 | the graph |
//! | `adadne` | GLISP §III-B | 3 | the graph |
//!
//! p bits are rounded up to a power of two, beyond 64 to a multiple of 64.
//!
//! Graphs for GNNs hold an undirected edge as two directed ones. The hashes are symmetric in the
//! endpoints, `hash-1d` excepted; the streaming ones meet the second direction with both endpoints
//! replicated in the first one's part; the neighbor expansions merge the two.
//!
//! ```
//! use gnarl_graph::MemoryEdges;
//! use gnarl_partition::PartitionOptions;
//! use gnarl_partition::vertex_cut::{Replicas, by_name};
//!
//! // Two triangles that share node 2.
//! let edges = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 2)];
//! let mut stream = MemoryEdges::new(5, edges)?;
//! let mut replicas = Replicas::new(5, 2);
//! let options = PartitionOptions { parts: 2, ..Default::default() };
//! by_name("dne")?.partition(&mut stream, &options, &mut replicas)?;
//! assert_eq!(replicas.part_edges(), [3, 3]);
//! assert_eq!(replicas.quality().replication_factor, 6.0 / 5.0);
//! # Ok::<(), gnarl_common::Error>(())
//! ```

mod adadne;
mod dbh;
mod degrees;
mod dne;
mod expansion;
mod greedy;
mod hash1d;
mod hash2d;
mod hdrf;
mod loads;
mod owner;
mod partitioner;
mod registry;
mod replicas;
mod sets;
mod twophase;

pub use adadne::AdaDne;
pub use dbh::Dbh;
pub use dne::Dne;
pub use greedy::Greedy;
pub use hash1d::Hash1d;
pub use hash2d::Hash2d;
pub use hdrf::Hdrf;
pub use owner::Owner;
pub(crate) use owner::owners;
pub use partitioner::{EdgePartitioner, EdgeSink};
pub use registry::{by_name, names, registry};
pub use replicas::{CutQuality, Replicas};
pub use sets::PartSets;
pub use twophase::TwoPhase;
