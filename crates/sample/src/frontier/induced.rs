//! Subgraphs that the nodes of a batch induce.

use gnarl_common::{Context, Error, Result, read_ahead};

use super::batch::{FrontierBatch, FrontierEdges};
use super::sampler::FrontierSampler;
use crate::HeteroScratch;
use crate::scratch::Scratch;
use crate::view::View;

/// Lists that are read ahead at a time: few enough to be in memory until then.
const WINDOW: usize = 4096;

impl FrontierSampler {
    /// Replaces the edges of a batch by all edges between its nodes, ordered by destination and then as in its list, as if
    /// one hop had drawn them. Takes the time of reading the lists of all nodes.
    ///
    /// # Errors
    /// If nodes are in trees of their own, or a list is damaged.
    pub fn induce(&self, batch: &mut FrontierBatch, scratch: &mut HeteroScratch) -> Result<()> {
        if batch.trees.is_some() {
            return Err(Error::usage("trees of their own induce no subgraph"));
        }
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
    for (window, nodes) in nodes.chunks(WINDOW).enumerate() {
        let lists = nodes.iter().map(|&node| view.list(node)).collect::<Result<Vec<_>>>()?;
        let range = |of: usize| lists[of].0..lists[of].0 + lists[of].1 as usize;
        if view.ahead {
            read_ahead::bring(view.indices, lists.len(), &range);
        }
        for of in 0..lists.len() {
            let destination = (window * WINDOW + of) as u32;
            for position in range(of) {
                if let Some(source) = places.position(view.source(position)?) {
                    edges.sources.push(source);
                    edges.destinations.push(destination);
                    edges.rows.push(view.row(position));
                }
            }
        }
    }
    edges.of_hop = vec![edges.sources.len()];
    Ok(edges)
}
