//! The graphs that samplers read, of parts in memory.

use gnarl_common::{Buf, Error, Result};

use super::ResidentGraph;
use crate::{HeteroSampleGraph, SampleGraph};

impl ResidentGraph {
    /// The graph for samplers of homogeneous graphs. Local ids without a node have empty lists.
    ///
    /// # Errors
    /// If there are several types of nodes or edges; [`gnarl_common::Kind::Limit`] without memory.
    pub fn sample_graph(&self) -> Result<SampleGraph> {
        let ([ids], [lists]) = (&self.ids[..], &self.lists[..]) else {
            return Err(Error::invalid("parts in memory have several types of nodes or edges"));
        };
        let degrees = Some(self.degrees(0)?);
        SampleGraph::with_part(lists.csc.clone(), ids.clone().into(), degrees, ids.len())
    }

    /// The graph for samplers of heterogeneous graphs. Local ids without a node have empty lists.
    ///
    /// # Errors
    /// If names of types are there twice; [`gnarl_common::Kind::Limit`] for more than 65,535 edge types, and without memory.
    pub fn hetero_sample_graph(&self) -> Result<HeteroSampleGraph> {
        let mut graph = HeteroSampleGraph::new();
        for (name, ids) in self.schema.node_types().iter().zip(&self.ids) {
            graph = graph.with_part_nodes(name, ids.clone().into(), ids.len())?;
        }
        for (edge_type, triple) in self.schema.edge_types().iter().enumerate() {
            let lists = self.lists[edge_type].csc.clone();
            graph = graph.with_part_edges(triple, lists, Some(self.degrees(edge_type)?))?;
        }
        Ok(graph)
    }

    /// In-degrees over an edge type in the whole graph, by local id.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Limit`] without memory.
    fn degrees(&self, edge_type: usize) -> Result<Buf<u32>> {
        let stride = self.stride(self.schema.ends(edge_type).1) as usize;
        let mut degrees = self.spare.table(self.places.len() * stride)?;
        for (own, nodes) in degrees.chunks_exact_mut(stride).zip(&self.places) {
            let of_part = nodes.as_ref().map_or(&[][..], |nodes| &nodes.degrees[edge_type][..]);
            let (own, others) = own.split_at_mut(of_part.len());
            own.copy_from_slice(of_part);
            others.fill(0);
        }
        Ok(degrees.into())
    }
}
