//! Lists of a vertex-cut part of a homogeneous graph.

use std::sync::Arc;

use gnarl_common::{Buf, Error, Result};
use gnarl_graph::Dataset;
use gnarl_graph::times::{node_times, times};
use gnarl_partition::VertexCutPart;

use super::{DrawFrom, Lists};
use crate::edge_features::EdgeFeatures;
use crate::parts::hop::HopReply;
use crate::view::View;
use crate::weights::Weights;

/// A part's share of the lists of its nodes.
#[derive(Clone)]
pub struct Shared {
    pub part: VertexCutPart,
    pub weights: Option<Weights>,
    pub edge_features: Option<Arc<dyn EdgeFeatures>>,
    /// The nodes that the part owns.
    pub own: Dataset,
    /// Time of each edge.
    pub times: Option<Buf<i64>>,
    /// Time of each node.
    pub source_times: Option<Buf<i64>>,
}

/// The times of all nodes of `part`, if those of type `name` have some, as the nodes that it owns, `own`, tell.
///
/// # Errors
/// If the part was written without them: its edges would be there before their sources.
pub fn times_of_nodes(part: &VertexCutPart, own: &Dataset, name: &str) -> Result<Option<Buf<i64>>> {
    if node_times(own, name)?.is_none() {
        return Ok(None);
    }
    part.times_of_nodes()?.map(Some).ok_or_else(|| {
        Error::usage(format!("the part lacks the times of nodes of type '{name}' that others own"))
            .hint("partition the graph again with this version of gnarl")
    })
}

impl Lists for Shared {
    fn num_nodes(&self) -> usize {
        self.part.num_nodes()
    }

    fn local(&self, id: u64) -> Result<Option<u32>> {
        Ok(self.part.local(id))
    }

    fn read(&self, nodes: &[u32], draw: &mut DrawFrom<'_>) -> Result<HopReply> {
        let lists = self.part.in_lists();
        let ids = Some(lists.ids);
        let view = View {
            indptr: lists.indptr,
            indices: lists.sources,
            edge: None,
            weight_rows: None,
            ids,
            num_sources: lists.indptr.len() - 1,
            source_ids: ids,
            degrees: Some(lists.degrees),
            weights: self.weights.as_ref().map(Weights::as_slice),
            times: self.times.as_deref(),
            source_times: self.source_times.as_deref(),
            edge_features: self.edge_features.as_deref(),
            ahead: false,
        };
        draw(view, nodes)
    }

    fn with_times(&self) -> Result<Box<dyn Lists>> {
        let column = self.part.edge_column(0, "time")?;
        let of_edges = column.map_or(Ok(None), |column| times(&column))?;
        let name = &self.part.manifest().node_types[0].name;
        let source_times = times_of_nodes(&self.part, &self.own, name)?;
        Ok(Box::new(Self { times: of_edges, source_times, ..self.clone() }))
    }

    fn are_shares(&self) -> bool {
        true
    }
}
