//! Graphs of one node type and many relations: every relation is an edge type of the message graph, and so
//! is every relation turned round (Schlichtkrull et al., "Modeling Relational Data with Graph
//! Convolutional Networks", 2018, section 4).

use gnarl_graph::{Csc, Dataset, Result, Triple};
use gnarl_nn::ParamsBuilder;
use gnarl_sample::TypedGraph;
use gnarl_store::MappedFeatures;

use super::{MessageEdges, TypedEncoder, Ways};
use crate::config::RunConfig;
use crate::typed::TypedTaskGraph;

/// The models that are encoders of this kind.
pub(crate) const MODELS: [&str; 4] = ["rgcn", "rgat", "hgt", "hetero"];

/// The model of `config` over `edges` and their reverses, whose rows are `width` wide, and its parameters
/// added to `params`.
///
/// # Errors
/// If the model is unknown, sizes are impossible, or features damaged.
pub(crate) fn relational(
    config: &RunConfig,
    dataset: &Dataset,
    edges: &MessageEdges<'_>,
    width: usize,
    params: &mut ParamsBuilder,
) -> Result<TypedEncoder> {
    let features = dataset.features(edges.node_type)?;
    let features = features.map(|found| MappedFeatures::new(found, config.dataset.normalize));
    let graph = TypedTaskGraph::of_messages(message_graph(edges)?, vec![features.transpose()?]);
    let ways = (0..edges.relations as u32).map(|relation| ways(relation, edges.relations));
    TypedEncoder::new(config, graph, (vec![0], ways.collect()), width, params)
}

/// How edges of a relation, one of so many, pass messages.
pub(crate) fn ways(relation: u32, relations: usize) -> Ways {
    Ways { forth: relation as usize, back: Some(relation as usize + relations) }
}

/// The edges, an edge type for each relation and one for its reverse.
fn message_graph(edges: &MessageEdges<'_>) -> Result<TypedGraph> {
    let (name, all) = (edges.node_type, edges.edges);
    let mut of = vec![Vec::new(); 2 * edges.relations];
    for i in 0..all.len() {
        let Ways { forth, back } = ways(all.relations[i], edges.relations);
        of[forth].push((all.heads[i], all.tails[i]));
        if let Some(back) = back {
            of[back].push((all.tails[i], all.heads[i]));
        }
    }
    let mut graph = TypedGraph::new().with_nodes(name, edges.nodes)?;
    for (number, mut pairs) in of.into_iter().enumerate() {
        pairs.sort_unstable_by_key(|&(source, destination)| (destination, source));
        pairs.dedup();
        let relation = match number.checked_sub(edges.relations) {
            None => format!("relation-{number}"),
            Some(number) => format!("reverse-{number}"),
        };
        let triple = Triple { src: name.into(), rel: relation, dst: name.into() };
        graph = graph.with_edges(&triple, Csc::from_edges(edges.nodes, &pairs))?;
    }
    Ok(graph)
}
