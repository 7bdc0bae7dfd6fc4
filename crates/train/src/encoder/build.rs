//! Construction of encoders for edge tasks, by their message graphs.

use std::sync::Arc;

use gnarl_common::Result;
use gnarl_config::RunConfig;
use gnarl_graph::splits::features_of;
use gnarl_graph::{Dataset, Triple};
use gnarl_nn::ParamsBuilder;
use gnarl_store::MappedFeatures;

use super::heterogeneous::Heterogeneous;
use super::homogeneous::Homogeneous;
use super::message_graph::{MessageEdges, by_relation, by_type, regardless};
use crate::data::asked::ways_of_type;
use crate::data::edge_set::{EdgeSet, Ways};
use crate::data::graph::Graph;
use crate::data::hetero_graph::{HeteroGraph, features_of_types};
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
    let graph = regardless(edges)?;
    let features = MappedFeatures::new(features_of(dataset)?, config.dataset.normalize)?;
    let graph = Arc::new(Graph::local(graph, Box::new(features)));
    Homogeneous::new((config, registry), graph, width, params)
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
    let graph = HeteroGraph::new(by_relation(edges)?, vec![features.transpose()?]);
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
    let graph = by_type(dataset, held)?;
    let schema = graph.schema();
    let (src, dst) = schema.ends(schema.edge_type(asked)?);
    let ways = ways_of_type(schema.edge_types(), asked);
    let endpoints = if src == dst { vec![src] } else { vec![src, dst] };
    let features = features_of_types(dataset, config.dataset.normalize)?;
    let graph = HeteroGraph::new(graph, features);
    Heterogeneous::new((config, registry), graph, (endpoints, vec![ways]), width, params)
}
