//! Lists of a vertex-cut part of a heterogeneous graph.

use std::ops::Range;
use std::sync::Arc;

use gnarl_common::{Error, Result};
use gnarl_graph::NarrowSlice;
use gnarl_partition::{TypeList, VertexCutPart};

use super::{DrawFrom, Lists};
use crate::parts::hop::HopReply;
use crate::view::View;
use crate::weights::{WeightSlice, Weights};

/// A part's share of the lists of its nodes over one edge type.
///
/// The lists of a node lie type after type, so that those of one type are not one array: the lists asked for are
/// copied for each request. Rules by random numbers of edges read them whole anyhow; shares of a fan-out alone would read
/// less.
pub struct SharedOfType {
    pub part: Arc<VertexCutPart>,
    /// Number of the edge type in the part.
    pub edge_type: usize,
    pub weights: Option<Weights>,
    /// Graph-wide id of the first node of the destinations' type, and the number of them.
    pub destinations: (u64, u64),
    pub sources: Arc<SourceIds>,
}

/// The nodes of one type in a vertex-cut part.
pub struct SourceIds {
    /// Local ids, which are consecutive.
    local: Range<u32>,
    /// Dataset id of each.
    ids: Vec<u32>,
}

impl SourceIds {
    /// The nodes of type number `node_type`.
    ///
    /// # Errors
    /// If the type has more nodes than 32-bit ids.
    pub fn new(part: &VertexCutPart, node_type: usize) -> Result<Self> {
        let of = &part.manifest().node_types[node_type];
        let [from, to] = of.local;
        let own_id = |local: u64| {
            let id = part.global(local as u32).checked_sub(of.first);
            id.and_then(|id| u32::try_from(id).ok()).ok_or_else(|| {
                Error::invalid(format!("local node {local} has no 32-bit id of type '{}'", of.name))
            })
        };
        let ids = (from..to).map(own_id).collect::<Result<_>>()?;
        Ok(Self { local: from as u32..to as u32, ids })
    }
}

impl Lists for SharedOfType {
    fn num_nodes(&self) -> usize {
        self.part.num_nodes()
    }

    fn local(&self, id: u64) -> Result<Option<u32>> {
        let (first, count) = self.destinations;
        if id >= count {
            return Err(Error::invalid(format!("node {id} is not one of {count} of its type")));
        }
        Ok(self.part.local(first + id))
    }

    fn read(&self, nodes: &[u32], draw: &mut DrawFrom<'_>) -> Result<HopReply> {
        let first = self.sources.local.start;
        let mut indptr = vec![0u64];
        let mut indices = Vec::new();
        let mut weights = self.weights.as_ref().map(|_| Vec::new());
        let mut ids = Vec::with_capacity(nodes.len());
        let mut degrees = Vec::with_capacity(nodes.len());
        for &node in nodes {
            let list = self.part.in_list(node, self.edge_type);
            let list = list.unwrap_or(TypeList { sources: &[], degree: 0, row: 0 });
            for &source in list.sources {
                if !self.sources.local.contains(&source) {
                    return Err(Error::invalid(format!(
                        "an edge comes from node {source} of another type"
                    )));
                }
                indices.push(source - first);
            }
            if let (Some(out), Some(all)) = (&mut weights, &self.weights) {
                let rows = (list.row..).take(list.sources.len());
                out.extend(rows.map(|row| all.as_slice().get(row as usize)));
            }
            indptr.push(indices.len() as u64);
            ids.push(self.part.global(node) - self.destinations.0);
            degrees.push(list.degree);
        }
        let view = View {
            indptr: NarrowSlice::U64(&indptr),
            indices: &indices,
            edge: None,
            weight_rows: None,
            ids: Some(NarrowSlice::U64(&ids)),
            num_sources: self.sources.ids.len(),
            source_ids: Some(NarrowSlice::U32(&self.sources.ids)),
            degrees: Some(&degrees),
            weights: weights.as_deref().map(WeightSlice::F32),
            times: None,
            source_times: None,
            edge_features: None,
        };
        let positions: Vec<u32> = (0..nodes.len() as u32).collect();
        draw(view, &positions)
    }

    fn are_shares(&self) -> bool {
        true
    }

    fn cover_sources(&self) -> bool {
        false
    }
}
