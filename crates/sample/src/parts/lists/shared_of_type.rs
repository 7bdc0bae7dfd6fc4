//! Lists of a vertex-cut part of a heterogeneous graph.

use gnarl_common::Result;
use gnarl_graph::NarrowSlice;
use gnarl_partition::TypeList;

use super::edges_of_type::EdgesOfType;
use super::timed_of_type::TimedOfType;
use super::{DrawFrom, Lists};
use crate::parts::hop::HopReply;
use crate::view::View;
use crate::weights::WeightSlice;

/// A part's share of the lists of its nodes over one edge type.
///
/// The lists of a node lie type after type, so that those of one type are not one array: the lists asked for are
/// copied for each request. Rules by random numbers of edges read them whole anyhow; shares of a fan-out alone would read
/// less.
pub struct SharedOfType(pub EdgesOfType);

impl Lists for SharedOfType {
    fn num_nodes(&self) -> usize {
        self.0.part.num_nodes()
    }

    fn local(&self, id: u64) -> Result<Option<u32>> {
        self.0.local(id)
    }

    fn read(&self, nodes: &[u32], draw: &mut DrawFrom<'_>) -> Result<HopReply> {
        let EdgesOfType { part, edge_type, weights: all_weights, destinations, sources, .. } =
            &self.0;
        let mut indptr = vec![0u64];
        let mut indices = Vec::new();
        let mut weights = all_weights.as_ref().map(|_| Vec::new());
        let mut ids = Vec::with_capacity(nodes.len());
        let mut degrees = Vec::with_capacity(nodes.len());
        for &node in nodes {
            let list = part.in_list(node, *edge_type);
            let list = list.unwrap_or(TypeList { sources: &[], degree: 0, row: 0 });
            for &source in list.sources {
                indices.push(sources.place(source)?);
            }
            if let (Some(out), Some(all)) = (&mut weights, all_weights) {
                let rows = (list.row..).take(list.sources.len());
                out.extend(rows.map(|row| all.as_slice().get(row as usize)));
            }
            indptr.push(indices.len() as u64);
            ids.push(part.global(node) - destinations.0);
            degrees.push(list.degree);
        }
        let view = View {
            indptr: NarrowSlice::U64(&indptr),
            indices: &indices,
            edge: None,
            weight_rows: None,
            ids: Some(NarrowSlice::U64(&ids)),
            num_sources: sources.ids().len(),
            source_ids: Some(NarrowSlice::U32(sources.ids())),
            degrees: Some(&degrees),
            weights: weights.as_deref().map(WeightSlice::F32),
            times: None,
            source_times: None,
            edge_features: None,
            ahead: false,
        };
        let positions: Vec<u32> = (0..nodes.len() as u32).collect();
        draw(view, &positions)
    }

    fn with_times(&self) -> Result<Box<dyn Lists>> {
        Ok(Box::new(TimedOfType::new(&self.0)?))
    }

    fn are_shares(&self) -> bool {
        true
    }

    fn cover_sources(&self) -> bool {
        false
    }
}
