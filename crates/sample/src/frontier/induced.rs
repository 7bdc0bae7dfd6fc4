//! Subgraphs that the nodes of a batch induce.

use gnarl_common::{Context, Result};

use super::batch::{FrontierBatch, FrontierEdges};
use super::sampler::FrontierSampler;
use crate::HeteroScratch;
use crate::scratch::Scratch;
use crate::view::View;

impl FrontierSampler {
    /// Replaces the edges of a batch by all edges between its nodes, ordered by destination and then as in its list, as if
    /// one hop had drawn them. Takes the time of reading the lists of all nodes.
    ///
    /// # Errors
    /// If a list is damaged.
    pub fn induce(&self, batch: &mut FrontierBatch, scratch: &mut HeteroScratch) -> Result<()> {
        let schema = batch.schema.clone();
        let places = scratch.start((0..batch.nodes.len()).map(|of| self.graph.num_nodes(of)));
        for (places, nodes) in places.iter_mut().zip(&batch.nodes) {
            places.reserve(nodes.len());
            // Distinct, so that each has the position that it has in the batch.
            places.insert_all(&mut nodes.clone());
        }
        for (edge_type, edges) in batch.edges.iter_mut().enumerate() {
            let (src, dst) = schema.ends(edge_type);
            let view = self.graph.view(edge_type);
            *edges = between(view, &batch.nodes[dst], &places[src])
                .while_doing(|| format!("reading edges of {}", schema.edge_types()[edge_type]))?;
        }
        Ok(())
    }
}

/// All edges to `nodes` from the nodes that have places.
fn between(view: View<'_>, nodes: &[u32], places: &Scratch) -> Result<FrontierEdges> {
    let mut edges = FrontierEdges::default();
    for (destination, &node) in nodes.iter().enumerate() {
        let (start, degree) = view.list(node)?;
        for position in start..start + degree as usize {
            if let Some(source) = places.position(view.source(position)?) {
                edges.sources.push(source);
                edges.destinations.push(destination as u32);
                edges.rows.push(view.row(position));
            }
        }
    }
    edges.of_hop = vec![edges.sources.len()];
    Ok(edges)
}
