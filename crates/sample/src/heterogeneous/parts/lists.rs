//! Local parts of a heterogeneous graph, one per edge type.

use std::sync::Arc;

use gnarl_common::{Context, Result};
use gnarl_graph::Triple;
use gnarl_partition::{PartLayout, PartitionedDataset};

use crate::heterogeneous::graph::HeteroSampleGraph;
use crate::parts::LocalPart;
use crate::parts::lists::{EdgesOfType, Lists, NodesByType, Owned, SharedOfType};
use crate::weights::Weights;

/// Opens part `part` of a partitioned graph of any types: the lists of each edge type, in the order of the source.
///
/// A vertex-cut part of several node types takes four bytes a node in memory; all else is mapped.
///
/// # Errors
/// If it is damaged.
pub fn local_parts(parts: &PartitionedDataset, part: usize) -> Result<Vec<(Triple, LocalPart)>> {
    let open = || match parts.manifest().layout {
        PartLayout::EdgeCut => owned(parts, part),
        PartLayout::VertexCut => shared(parts, part),
        PartLayout::Storage => Err(parts.without_lists()),
    };
    let all = open().while_doing(|| format!("opening part {part} to sample from"))?;
    let named = |(triple, lists): (Triple, Box<dyn Lists>)| {
        let name = format!("edge type {triple} of part {part}");
        (triple, LocalPart::of(name, part, lists))
    };
    Ok(all.into_iter().map(named).collect())
}

type ListsByType = Vec<(Triple, Box<dyn Lists>)>;

fn owned(parts: &PartitionedDataset, part: usize) -> Result<ListsByType> {
    let dataset = parts.part(part)?;
    let graph = HeteroSampleGraph::open(&dataset)?;
    let schema = graph.schema();
    let lists = |(number, triple): (usize, &Triple)| -> Result<(Triple, Box<dyn Lists>)> {
        let (graph, sources) = graph.lists_and_sources(number);
        let ids = parts.id_map(&triple.dst)?;
        let (sources, of) = (Some(sources), (dataset.clone(), triple.clone()));
        Ok((triple.clone(), Box::new(Owned { graph, sources, ids, part, of })))
    };
    schema.edge_types().iter().enumerate().map(lists).collect()
}

fn shared(parts: &PartitionedDataset, part: usize) -> Result<ListsByType> {
    let own = parts.part(part)?;
    let part = Arc::new(parts.topology(part)?);
    let nodes = Arc::new(NodesByType::new(part.clone()));
    let schema = parts.schema()?;
    let mut all: ListsByType = Vec::new();
    for (number, triple) in schema.edge_types().iter().enumerate() {
        let edge_type = part.edge_type(triple)?;
        let (src, dst) = schema.ends(number);
        let weights = part.edge_column(edge_type, "weight")?;
        let weights = weights.map(|column| Weights::of(&column)).transpose()?;
        let sources = nodes.of(src)?;
        let of = &part.manifest().node_types[dst];
        let destinations = (of.first, of.count);
        let edges = EdgesOfType {
            part: part.clone(),
            edge_type,
            weights,
            destinations,
            sources,
            nodes: nodes.clone(),
            own: own.clone(),
        };
        all.push((triple.clone(), Box::new(SharedOfType(edges))));
    }
    Ok(all)
}
