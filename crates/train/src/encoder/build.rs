//! Construction of encoders for edge tasks, by their message graphs.

use std::sync::Arc;

use gnarl_common::Result;
use gnarl_config::RunConfig;
use gnarl_graph::blocks::Schema;
use gnarl_graph::splits::features_of;
use gnarl_graph::times::node_times;
use gnarl_graph::{Dataset, Triple};
use gnarl_nn::ParamsBuilder;
#[cfg(feature = "serve")]
use gnarl_partition::PartitionedDataset;
#[cfg(feature = "serve")]
use gnarl_serve::PartAccess;
use gnarl_store::{FeatureStore, MappedFeatures};

use super::heterogeneous::Heterogeneous;
use super::homogeneous::Homogeneous;
#[cfg(feature = "serve")]
use super::message_graph::MessageForm;
use super::message_graph::{MessageEdges, by_relation, by_type, regardless};
use crate::data::asked::ways_of_type;
use crate::data::edge_set::{EdgeSet, Ways};
use crate::data::graph::Graph;
use crate::data::hetero_graph::{HeteroGraph, features_of_types};
#[cfg(feature = "serve")]
use crate::data::partitioned::{self, Ranks};
use crate::data::read_ahead::{Files, ReadAhead};
use crate::data::times::draw_of;
use crate::registry::Registry;

/// Heterogeneous models that can treat every relation of one edge type as an edge type.
pub(crate) const RELATIONAL: [&str; 4] = ["rgcn", "rgat", "hgt", "hetero"];

/// The homogeneous model of `config` over `edges` in both directions, whatever their relation.
///
/// # Errors
/// If the model is unknown, or nodes have no features.
pub(crate) fn over_edges(
    (config, registry): (&RunConfig, &Registry),
    dataset: &Dataset,
    edges: &MessageEdges<'_>,
    width: usize,
    params: &mut ParamsBuilder,
) -> Result<Homogeneous> {
    let mut graph = regardless(edges)?;
    let rule = config.time_rule();
    if rule.is_some()
        && let Some(times) = node_times(dataset, edges.node_type)?
    {
        graph = graph.with_node_times(times)?;
    }
    let features = MappedFeatures::new(features_of(dataset)?, config.dataset.normalize)?;
    let files = Files { lists: 0, features: features.num_bytes(), rows: features.file_bytes() };
    let ahead = ReadAhead::new(&config.dataset, files);
    let mut graph = Graph { ahead, ..Graph::local(graph, Box::new(features)) };
    if let Some(rule) = rule {
        graph = graph.in_time(draw_of(config, rule))?;
    }
    Homogeneous::new((config, registry), Arc::new(graph), width, params)
}

/// The heterogeneous model of `config` over `edges`, every relation being an edge type, and their reverses.
///
/// # Errors
/// If the model is unknown, sizes are impossible, or features damaged.
pub(crate) fn over_relations(
    (config, registry): (&RunConfig, &Registry),
    dataset: &Dataset,
    edges: &MessageEdges<'_>,
    width: usize,
    params: &mut ParamsBuilder,
) -> Result<Heterogeneous> {
    let features = dataset.features(edges.node_type)?;
    let features = features.map(|found| MappedFeatures::new(found, config.dataset.normalize));
    let mut graph = by_relation(edges)?;
    let rule = config.time_rule();
    if rule.is_some()
        && let Some(times) = node_times(dataset, edges.node_type)?
    {
        graph = graph.with_node_times(edges.node_type, &times)?;
    }
    let features = vec![features.transpose()?];
    let mut graph = HeteroGraph::of_lists_in_memory(graph, features, &config.dataset);
    if let Some(rule) = rule {
        graph = graph.in_time(draw_of(config, rule))?;
    }
    let all = 0..edges.relations as u32;
    let ways = all.map(|relation| Ways::of_relation(relation, edges.relations)).collect();
    Heterogeneous::new((config, registry), graph, (vec![0], ways), width, params)
}

/// The heterogeneous model of `config` over all edge types of a dataset without the edges `held`.
/// The task's edges are of type `asked`.
///
/// # Errors
/// If the model is unknown, sizes are impossible, or features damaged.
pub(crate) fn over_types(
    (config, registry): (&RunConfig, &Registry),
    dataset: &Dataset,
    asked: &Triple,
    held: &EdgeSet,
    width: usize,
    params: &mut ParamsBuilder,
) -> Result<Heterogeneous> {
    let mut graph = by_type(dataset, held)?;
    let rule = config.time_rule();
    if rule.is_some() {
        graph = graph.with_times_of(dataset)?;
    }
    let ends = endpoints_and_ways(graph.schema(), asked)?;
    let features = features_of_types(dataset, config.dataset.normalize)?;
    let mut graph = HeteroGraph::of_lists_in_memory(graph, features, &config.dataset);
    if let Some(rule) = rule {
        graph = graph.in_time(draw_of(config, rule))?;
    }
    Heterogeneous::new((config, registry), graph, ends, width, params)
}

/// The node types of the endpoints of edges of type `asked`, each once, and the edge types that they pass messages over.
fn endpoints_and_ways(schema: &Schema, asked: &Triple) -> Result<(Vec<usize>, Vec<Ways>)> {
    let (src, dst) = schema.ends(schema.edge_type(asked)?);
    let ways = ways_of_type(schema.edge_types(), asked);
    Ok((if src == dst { vec![src] } else { vec![src, dst] }, vec![ways]))
}

/// The parts of a task's message graph, for one of some ranks.
#[cfg(feature = "serve")]
pub(crate) struct PartsOfTask<'a> {
    pub cut: &'a PartitionedDataset,
    pub parts: &'a [PartAccess],
    pub ranks: Option<&'a Ranks<'a>>,
    /// The type of the target edges.
    pub triple: &'a Triple,
    pub relations: usize,
}

/// [`over_edges`], over the parts of the message graph.
///
/// # Errors
/// If the model is unknown, nodes have no features, or a part does not reply.
#[cfg(feature = "serve")]
pub(crate) fn over_parts(
    (config, registry): (&RunConfig, &Registry),
    of: &PartsOfTask<'_>,
    width: usize,
    params: &mut ParamsBuilder,
) -> Result<Homogeneous> {
    let graph = partitioned::messages(config, of.cut, of.parts, of.ranks)?;
    Homogeneous::new((config, registry), Arc::new(graph), width, params)
}

/// [`over_relations`] or [`over_types`], over the parts of the message graph.
///
/// # Errors
/// If the model is unknown, sizes are impossible, or a part does not reply.
#[cfg(feature = "serve")]
pub(crate) fn over_typed_parts(
    (config, registry): (&RunConfig, &Registry),
    of: &PartsOfTask<'_>,
    form: MessageForm,
    width: usize,
    params: &mut ParamsBuilder,
) -> Result<Heterogeneous> {
    let heads = (of.parts, &*of.triple.src);
    let graph = partitioned::messages_by_type(config, of.cut, heads, of.ranks)?;
    let ends = match form {
        MessageForm::Types => endpoints_and_ways(graph.schema(), of.triple)?,
        _ => {
            let all = 0..of.relations as u32;
            (vec![0], all.map(|relation| Ways::of_relation(relation, of.relations)).collect())
        }
    };
    Heterogeneous::new((config, registry), graph, ends, width, params)
}
