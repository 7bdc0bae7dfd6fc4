//! A partitioned homogeneous graph.

use gnarl_common::{Error, Result};
use gnarl_config::RunConfig;
use gnarl_graph::splits::Roles;
use gnarl_partition::PartitionedDataset;
use gnarl_sample::parts::Routes;
use gnarl_serve::{Description, PartAccess, PartitionedFeatures, describe_type};

use super::caches::{cached, copied};
use super::columns::Columns;
use super::hot_nodes::{Seeds, Wanted};
use crate::data::graph::{Graph, Partitioned, Topology, Whole};
use crate::data::node_targets::NodeTargets;
use crate::data::read_ahead::ReadAhead;

/// The partitioned graph of `parts`, for one of some ranks. Memory: an id map, nodes with a role and their labels, and the
/// budget of `[cache]`.
///
/// # Errors
/// If the graph has several node types, nodes lack features or labels, or a part does not reply.
pub(super) fn open(
    config: &RunConfig,
    cut: &PartitionedDataset,
    parts: &[PartAccess],
    rank: (usize, usize),
) -> Result<(Graph, (NodeTargets, Roles))> {
    let (nodes, abouts) = nodes(cut, parts)?;
    let targets = Columns { nodes: &nodes, parts, abouts: &abouts };
    let times = targets.times_of_seeds(config)?;
    let (targets, roles) = targets.targets(config, cut)?;
    let mut graph = graph(config, cut, parts, (nodes, &abouts), (Some(&targets.train), rank))?;
    if let Topology::Partitioned(divided) = &mut graph.topology {
        divided.times = times;
    }
    Ok((graph, (targets, roles)))
}

/// The partitioned graph of `parts` for tasks of edges, whose nodes need no labels. Any node may be a seed.
///
/// # Errors
/// As [`open`], but for labels.
pub(super) fn messages(
    config: &RunConfig,
    cut: &PartitionedDataset,
    parts: &[PartAccess],
    rank: (usize, usize),
) -> Result<Graph> {
    let (nodes, abouts) = nodes(cut, parts)?;
    graph(config, cut, parts, (nodes, &abouts), (None, rank))
}

/// The only node type, and what each part says of it.
fn nodes(cut: &PartitionedDataset, parts: &[PartAccess]) -> Result<(Routes, Vec<Description>)> {
    let [node] = &cut.manifest().node_types[..] else {
        return Err(Error::invalid("the parts belong to a heterogeneous graph"));
    };
    let all = parts.iter().map(PartAccess::describe);
    let all: Vec<Vec<Description>> = all.collect::<Result<_>>()?;
    let abouts = describe_type(cut, &all, &node.name)?;
    if abouts[0].feature_width == 0 {
        return Err(Error::invalid("the nodes of the parts have no features")
            .hint("partition a dataset that has them"));
    }
    Ok((Routes::of_type(cut, &node.name)?, abouts))
}

fn graph(
    config: &RunConfig,
    cut: &PartitionedDataset,
    parts: &[PartAccess],
    (nodes, abouts): (Routes, &[Description]),
    (seeds, rank): (Option<&[u32]>, (usize, usize)),
) -> Result<Graph> {
    let services = parts.iter().map(|part| part.neighbors(None)).collect::<Result<_>>()?;
    let edge_width = edge_width(config, cut)?;
    let mut divided = Partitioned { nodes, services, edge_width, replica: None, times: None };
    let (width, sparse) = (abouts[0].feature_width, abouts[0].sparse);
    let nodes = &divided.nodes;
    let seeds = Seeds { of: 0, train: seeds, rank };
    let wanted = Wanted::new(config, vec![nodes], vec![(0, 0, &divided.services)], parts, seeds);
    let replica = copied(&config.cache, &divided, &wanted)?;
    let memory = (config.cache.policy, config.cache.memory.as_u64());
    let cache = |source| cached(memory, source, (0, sparse), &wanted);
    let (routes, normalize) = (nodes.clone(), config.dataset.normalize);
    let of_type = (&*abouts[0].ntype, routes);
    let shape = (width, sparse);
    let features = PartitionedFeatures::new(of_type, parts.to_vec(), shape, normalize, cache)?;
    divided.replica = replica;
    let (topology, features) = (Topology::Partitioned(divided), Box::new(features));
    let whole = Whole::default();
    Ok(Graph { topology, features, whole, temporal: None, ahead: ReadAhead::default() })
}

/// Values of the features of an edge, if the model reads them.
fn edge_width(config: &RunConfig, cut: &PartitionedDataset) -> Result<usize> {
    if !config.model.edge_features {
        return Ok(0);
    }
    match cut.edge_types()?.first().map_or(0, |edges| edges.width("features")) {
        0 => Err(Error::invalid(format!("{}: edges have no features", cut.dir().display()))
            .hint("partition a dataset whose edges have them, or leave out model.edge_features")),
        width => Ok(width),
    }
}
