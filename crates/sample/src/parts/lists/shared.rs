//! Lists of a vertex-cut part of a homogeneous graph.

use std::sync::Arc;

use gnarl_common::Result;
use gnarl_partition::VertexCutPart;

use super::{DrawFrom, Lists};
use crate::edge_features::EdgeFeatures;
use crate::parts::hop::HopReply;
use crate::view::View;
use crate::weights::Weights;

/// A part's share of the lists of its nodes.
pub struct Shared {
    pub part: VertexCutPart,
    pub weights: Option<Weights>,
    pub edge_features: Option<Arc<dyn EdgeFeatures>>,
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
            times: None,
            source_times: None,
            edge_features: self.edge_features.as_deref(),
        };
        draw(view, nodes)
    }

    fn are_shares(&self) -> bool {
        true
    }
}
