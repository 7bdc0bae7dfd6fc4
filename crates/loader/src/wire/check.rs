//! Checks of requests that came from elsewhere.

use gnarl_common::{Error, Result};

use crate::graph::LoaderGraph;
use crate::negatives::Negatives;
use crate::request::{Around, BatchRequest};

impl BatchRequest {
    /// Rejects a request that came from elsewhere and does not fit the graph.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::InvalidInput`] naming what does not fit.
    pub fn check(&self, graph: &LoaderGraph) -> Result<()> {
        let examples = self.places.len();
        if examples == 0 {
            return Err(Error::invalid("a request has no examples"));
        }
        let fits = |what: &str, found: usize, expected: usize| match found == expected {
            true => Ok(()),
            false => {
                let message = format!("a request of {examples} examples has {found} {what}");
                Err(Error::invalid(message))
            }
        };
        if let Some(times) = &self.times {
            fits("times", times.len(), examples)?;
        }
        match &self.around {
            Around::Nodes { node_type, nodes } => {
                fits("nodes", nodes.len(), examples)?;
                check_nodes(graph, *node_type, nodes)
            }
            Around::Edges(of, ends) => {
                fits("sources", ends.sources.len(), examples)?;
                fits("destinations", ends.destinations.len(), examples)?;
                let negatives = ends.negative_destinations.len();
                let sources = ends.negative_sources.len();
                match of.negatives {
                    Negatives::None => fits("negatives", negatives + sources, 0)?,
                    Negatives::Destinations(each) => {
                        fits("sources of negatives", sources, 0)?;
                        fits("negatives", negatives, each.saturating_mul(examples))?;
                    }
                    Negatives::Pairs(_) => fits("sources of negatives", sources, negatives)?,
                }
                for (node_type, lists) in [
                    (of.source_type, [&ends.sources, &ends.negative_sources]),
                    (of.destination_type, [&ends.destinations, &ends.negative_destinations]),
                ] {
                    lists.iter().try_for_each(|nodes| check_nodes(graph, node_type, nodes))?;
                }
                let types = graph.schema().edge_types().len();
                let named = of.left_out.map(|of| of.edge_type.max(of.reversed.unwrap_or(0)));
                match named.filter(|&named| named >= types) {
                    Some(named) => Err(Error::invalid(format!("there is no edge type {named}"))),
                    None => Ok(()),
                }
            }
        }
    }
}

/// Rejects nodes that a graph does not have.
fn check_nodes(graph: &LoaderGraph, node_type: usize, nodes: &[u32]) -> Result<()> {
    if node_type >= graph.schema().node_types().len() {
        return Err(Error::invalid(format!("there is no node type {node_type}")));
    }
    let count = graph.num_nodes(node_type);
    match nodes.iter().find(|&&node| node as usize >= count) {
        Some(node) => {
            let name = &graph.schema().node_types()[node_type];
            Err(Error::invalid(format!("node {node} of type '{name}', which has {count}")))
        }
        None => Ok(()),
    }
}
