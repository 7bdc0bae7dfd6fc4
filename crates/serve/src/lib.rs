//! Parts of a graph served over Arrow Flight: neighbor sampling and feature gathering where the
//! data is.
//!
//! A [`Server`] serves parts of a partitioned graph to any Flight client; a [`Client`] is a
//! [`NeighborService`](gnarl_sample::parts::NeighborService), with deadlines, retries, and a bound
//! on concurrent requests; a [`PartAccess`] is a local or remote part, and [`PartitionedFeatures`]
//! gathers features from both alike. The target edges of a task ([`FoundTargets`]) are read from either, too.
//!
//! Batch workers and their [`Coordinator`] are served by the same means ([`Server::of_workers`]): they prepare the batches
//! that compute workers ask for by name ([`WorkRequest`]).
//!
//! In: part directories, and requests as record batches with a JSON command. Out: record batches,
//! one row per requested node. Clients in other languages need no code of ours; `docs/serving.md`
//! documents the commands.
//!
//! ```
//! use std::sync::Arc;
//! use gnarl_common::rng::Key;
//! use gnarl_graph::{Dataset, generate::{RmatOptions, rmat}};
//! use gnarl_partition::{PartitionConfig, Parts, partition_dataset};
//! use gnarl_sample::parts::{NeighborService, PartsSampler, Routes, Rule};
//! use gnarl_sample::{Sampler, Scratch};
//! use gnarl_serve::{Client, ClientConfig, ServedPart, Server, ServerConfig};
//!
//! let dir = tempfile::tempdir().unwrap();
//! let options = RmatOptions { nodes: 500, edges: 3000, ..Default::default() };
//! rmat(&options, &dir.path().join("graph"))?;
//! let graph = Dataset::open(dir.path().join("graph"))?;
//! let config = PartitionConfig { parts: Parts::Count(2), ..Default::default() };
//! let (parts, _) = partition_dataset(&graph, &config, &dir.path().join("parts"))?;
//!
//! let held = vec![Arc::new(ServedPart::open(&parts, 0)?), Arc::new(ServedPart::open(&parts, 1)?)];
//! let server = Server::start(held, &ServerConfig::default())?; // a free port of this machine
//! let client = Client::connect(&ClientConfig::new(server.uri()))?;
//!
//! let services: Vec<Arc<dyn NeighborService>> =
//!     (0..2).map(|p| Arc::new(client.part(p)) as _).collect();
//! let sampler = PartsSampler::new(Rule::Uniform, &[5, 5], Routes::of(&parts)?, services)?;
//! let batch = sampler.sample(&[1, 2, 3], Key::new(1), &mut Scratch::new())?;
//! assert_eq!(batch.targets, [0, 1, 2]);
//! # Ok::<(), gnarl_common::Error>(())
//! ```

mod access;
mod answers;
mod batches;
mod calls;
mod client;
mod codec;
mod command;
mod connect;
mod failure;
mod features;
mod files;
mod heterogeneous;
mod limits;
mod received;
mod remote;
mod remote_description;
mod rows;
mod security;
mod served;
mod server;
mod service;
mod targets;
mod traffic;
mod work;

pub use access::PartAccess;
pub use batches::{BatchServer, DeferredBatches};
pub use client::{Client, ClientConfig, Missed};
pub use command::{Column, Command, SPLITS, Whole, WholeSplit};
pub use connect::{Access, batch_servers, describe_type, find_description, open_parts};
pub use features::PartitionedFeatures;
pub use heterogeneous::HeteroRows;
pub use limits::{Accepted, Connection, Limits, Listener, Peer};
pub use remote::RemotePart;
pub use remote_description::RemoteDescription;
pub use rows::DividedRows;
pub use security::{Guard, Tls, check_address, random_token, read_token};
pub use served::{Description, ServedPart};
pub use server::{Server, ServerConfig};
pub use targets::FoundTargets;
pub use traffic::Traffic;
pub use work::{
    BatchRequest, Coordinator, Handler, Joining, LEASE, Living, Orders, Reply, RowsRequest,
    WorkRequest, at_host,
};
