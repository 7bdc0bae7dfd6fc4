//! Training on a partitioned graph that no rank has as a whole: local parts are read from their
//! files, the others through servers.

mod caches;
mod columns;
mod external;
mod heterogeneous;
mod homogeneous;
mod hot_nodes;
mod peers;
mod ranks;

use gnarl_common::{Buf, Result};
use gnarl_config::{RunConfig, Servers};
use gnarl_graph::splits::Roles;
use gnarl_partition::PartitionedDataset;
use gnarl_sample::parts::Routes;
use gnarl_serve::{PartAccess, Server, describe_type};

use crate::data::graph::Graph;
use crate::data::hetero_graph::HeteroGraph;
use crate::data::node_targets::NodeTargets;

pub(crate) use ranks::Ranks;

/// An open partitioned graph, ready for training.
pub(crate) struct Opened<G> {
    pub graph: G,
    pub targets: NodeTargets,
    /// Roles of all nodes with targets.
    pub roles: Roles,
    /// The type of the nodes with targets.
    pub node_type: String,
    /// The server of this machine's parts.
    pub server: Option<Server>,
}

/// Opens the parts of a homogeneous graph, local or remote, as configured by `partition.servers`. Without `ranks`, the
/// run is one process.
///
/// # Errors
/// If a part is missing or damaged, or its server does not reply.
pub(crate) fn open(
    config: &RunConfig,
    cut: &PartitionedDataset,
    ranks: Option<&Ranks<'_>>,
) -> Result<Opened<Graph>> {
    let (parts, server) = access(config, cut, ranks)?;
    let (graph, (targets, roles)) = homogeneous::open(config, cut, &parts, rank(ranks))?;
    let node_type = cut.manifest().node_types[0].name.clone();
    Ok(Opened { graph, targets, roles, node_type, server })
}

/// Opens the parts of a heterogeneous graph likewise.
///
/// # Errors
/// As [`open`].
pub(crate) fn open_types(
    config: &RunConfig,
    cut: &PartitionedDataset,
    ranks: Option<&Ranks<'_>>,
) -> Result<Opened<HeteroGraph>> {
    let (parts, server) = access(config, cut, ranks)?;
    let (graph, (targets, roles), node_type) =
        heterogeneous::open(config, cut, &parts, rank(ranks))?;
    Ok(Opened { graph, targets, roles, node_type, server })
}

/// The partitioned message graph of `parts`, for tasks of edges over edges whatever their relation.
///
/// # Errors
/// As [`open`].
pub(crate) fn messages(
    config: &RunConfig,
    cut: &PartitionedDataset,
    parts: &[PartAccess],
    ranks: Option<&Ranks<'_>>,
) -> Result<Graph> {
    homogeneous::messages(config, cut, parts, rank(ranks))
}

/// The partitioned message graph of `parts`, for tasks of edges with heads of a type, by edge type.
///
/// # Errors
/// As [`open`].
pub(crate) fn messages_by_type(
    config: &RunConfig,
    cut: &PartitionedDataset,
    (parts, heads): (&[PartAccess], &str),
    ranks: Option<&Ranks<'_>>,
) -> Result<HeteroGraph> {
    heterogeneous::messages(config, cut, parts, (heads, rank(ranks)))
}

/// The time of each node of type `name`, by dataset ids, if nodes have some.
///
/// # Errors
/// If there is no such type, or a part does not reply.
pub(crate) fn node_times(
    cut: &PartitionedDataset,
    parts: &[PartAccess],
    name: &str,
) -> Result<Option<Buf<i64>>> {
    let all = parts.iter().map(PartAccess::describe).collect::<Result<Vec<_>>>()?;
    let abouts = describe_type(cut, &all, name)?;
    let nodes = Routes::of_type(cut, name)?;
    columns::Columns { nodes: &nodes, parts, abouts: &abouts }.times()
}

/// This rank, and the number of ranks.
fn rank(ranks: Option<&Ranks<'_>>) -> (usize, usize) {
    ranks.map_or((0, 1), |ranks| (ranks.comm.rank(), ranks.comm.size()))
}

/// Access to all parts, and the server of this machine's.
///
/// # Errors
/// If a part is missing or damaged, or its server does not reply.
pub(crate) fn access(
    config: &RunConfig,
    cut: &PartitionedDataset,
    ranks: Option<&Ranks<'_>>,
) -> Result<(Vec<PartAccess>, Option<Server>)> {
    Ok(match (&config.partition.servers, ranks) {
        (Some(Servers::At(addresses)), _) => (external::open(config, cut, addresses)?, None),
        (_, Some(ranks)) => peers::open(config, cut, ranks)?,
        _ => (local(cut)?, None),
    })
}

/// All parts from files of this machine.
fn local(cut: &PartitionedDataset) -> Result<Vec<PartAccess>> {
    (0..cut.num_parts()).map(|part| PartAccess::open(cut, part)).collect()
}
