//! Lists with times of a vertex-cut part of a heterogeneous graph.

use std::ops::Range;
use std::sync::Arc;

use gnarl_common::{Buf, Error, Result};
use gnarl_graph::NarrowSlice;
use gnarl_graph::times::times;
use gnarl_partition::{CutEdgeType, TypeList};

use super::edges_of_type::EdgesOfType;
use super::nodes_of_type::NodesOfType;
use super::shared::times_of_nodes;
use super::{DrawFrom, Lists};
use crate::parts::hop::HopReply;
use crate::view::View;
use crate::weights::Weights;

/// A part's share of the lists of its nodes over one edge type, with times.
///
/// The lists are one array, which takes four bytes an edge and eight a destination: a node is asked about at many times
/// in one request, and lists in the order of time are kept for as long as the part is open, so that copies for each
/// request, as of [`SharedOfType`](super::SharedOfType), would not do.
pub struct TimedOfType {
    of: EdgesOfType,
    /// The destinations.
    nodes: Arc<NodesOfType>,
    indptr: Vec<u64>,
    indices: Vec<u32>,
    times: Option<Buf<i64>>,
    /// Times of all nodes of the part, and those of the sources among them; none if their type has no times.
    source_times: Option<(Buf<i64>, Range<usize>)>,
}

impl TimedOfType {
    /// The lists of edges in one array.
    ///
    /// # Errors
    /// If they are damaged, or times of nodes are missing in the part.
    pub fn new(of: &EdgesOfType) -> Result<Self> {
        let EdgesOfType { part, edge_type, sources, own, .. } = of;
        let CutEdgeType { triple, count, .. } = &part.manifest().edge_types[*edge_type];
        let types = &part.manifest().node_types;
        let dst = types.iter().position(|of| of.name == triple.dst);
        let dst = dst.ok_or_else(|| Error::invalid(format!("there are no nodes for {triple}")))?;
        let nodes = of.nodes.of(dst)?;
        let mut indptr = Vec::with_capacity(nodes.ids().len() + 1);
        indptr.push(0);
        let mut indices = Vec::with_capacity(*count as usize);
        for node in nodes.local() {
            let list = part.in_list(node, *edge_type);
            let list = list.unwrap_or(TypeList { sources: &[], degree: 0, row: 0 });
            // Columns of edges are read by the place of an edge.
            if !list.sources.is_empty() && list.row != indices.len() as u64 {
                return Err(Error::invalid(format!(
                    "the edges {triple} of local node {node} have rows from {} on, expected {}",
                    list.row,
                    indices.len()
                )));
            }
            for &source in list.sources {
                indices.push(sources.place(source)?);
            }
            indptr.push(indices.len() as u64);
        }
        let column = part.edge_column(*edge_type, "time")?;
        let of_edges = column.map_or(Ok(None), |column| times(&column))?;
        let of_nodes = times_of_nodes(part, own, &triple.src)?;
        let range = sources.local().start as usize..sources.local().end as usize;
        let source_times = of_nodes.map(|times| (times, range));
        Ok(Self { of: of.clone(), nodes, indptr, indices, times: of_edges, source_times })
    }
}

impl Lists for TimedOfType {
    fn num_nodes(&self) -> usize {
        self.nodes.ids().len()
    }

    fn local(&self, id: u64) -> Result<Option<u32>> {
        Ok(self.of.local(id)?.map(|local| local - self.nodes.local().start))
    }

    fn read(&self, nodes: &[u32], draw: &mut DrawFrom<'_>) -> Result<HopReply> {
        let source_times = self.source_times.as_ref();
        let view = View {
            indptr: NarrowSlice::U64(&self.indptr),
            indices: &self.indices,
            edge: None,
            weight_rows: None,
            ids: Some(NarrowSlice::U32(self.nodes.ids())),
            num_sources: self.of.sources.ids().len(),
            source_ids: Some(NarrowSlice::U32(self.of.sources.ids())),
            degrees: None,
            weights: self.of.weights.as_ref().map(Weights::as_slice),
            times: self.times.as_deref(),
            source_times: source_times.map(|(times, range)| &times[range.clone()]),
            edge_features: None,
            ahead: false,
        };
        draw(view, nodes)
    }

    fn are_shares(&self) -> bool {
        true
    }

    fn cover_sources(&self) -> bool {
        false
    }
}
