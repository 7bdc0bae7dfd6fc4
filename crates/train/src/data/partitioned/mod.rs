//! Training on a partitioned graph that no rank has as a whole: local parts are read from their
//! files, the others through servers.

mod assemble;
mod external;
mod hot_nodes;
mod peers;
mod ranks;

use gnarl_common::Result;
use gnarl_config::{RunConfig, Servers};
use gnarl_partition::PartitionedDataset;
use gnarl_serve::{PartAccess, Server};

use crate::data::graph::Graph;
use crate::data::node_targets::NodeTargets;

pub(crate) use ranks::Ranks;

/// An open partitioned graph, ready for training.
pub(crate) struct Opened {
    pub graph: Graph,
    pub targets: NodeTargets,
    /// The server of this machine's parts.
    pub server: Option<Server>,
}

/// Opens the parts of `cut`, local or remote, as configured by `partition.servers`. Without
/// `ranks`, the run is one process.
///
/// # Errors
/// If a part is missing or damaged, or its server does not reply.
pub(crate) fn open(
    config: &RunConfig,
    cut: &PartitionedDataset,
    ranks: Option<&Ranks<'_>>,
) -> Result<Opened> {
    let (parts, server) = match (&config.partition.servers, ranks) {
        (Some(Servers::At(addresses)), _) => (external::open(config, cut, addresses)?, None),
        (_, Some(ranks)) => peers::open(config, cut, ranks)?,
        _ => (local(cut)?, None),
    };
    let rank = ranks.map_or((0, 1), |ranks| (ranks.comm.rank(), ranks.comm.size()));
    let (graph, targets) = assemble::open(config, cut, parts, rank)?;
    Ok(Opened { graph, targets, server })
}

/// All parts from files of this machine.
fn local(cut: &PartitionedDataset) -> Result<Vec<PartAccess>> {
    (0..cut.num_parts()).map(|part| external::here(cut, part)).collect()
}
