//! Lists of an edge-cut part.

use std::sync::Arc;

use gnarl_common::{Error, IdMap, Result};
use gnarl_graph::{Dataset, Narrow, Triple};

use super::{DrawFrom, Lists};
use crate::SampleGraph;
use crate::parts::hop::HopReply;
use crate::view::View;

/// Complete lists of a part's own nodes over one edge type.
pub struct Owned {
    pub graph: SampleGraph,
    /// The nodes that edges come from, in a heterogeneous graph.
    pub sources: Option<Sources>,
    /// The parts of the nodes of the destinations' type.
    pub ids: Arc<IdMap>,
    /// The number of this part.
    pub part: usize,
    /// The dataset of the part, and the edge type.
    pub of: (Dataset, Triple),
}

/// The nodes of the sources' type in a part.
#[derive(Clone)]
pub struct Sources {
    pub count: usize,
    /// Dataset ids; none if they equal local ids.
    pub ids: Option<Narrow>,
}

impl Lists for Owned {
    fn num_nodes(&self) -> usize {
        self.graph.num_nodes()
    }

    fn local(&self, id: u64) -> Result<Option<u32>> {
        let local = self.ids.position_in(self.part, id);
        local
            .map(|local| Some(local as u32))
            .ok_or_else(|| Error::invalid(format!("node {id} belongs to another part")))
    }

    fn read(&self, nodes: &[u32], draw: &mut DrawFrom<'_>) -> Result<HopReply> {
        let view = self.graph.view();
        let view = match &self.sources {
            None => view,
            Some(Sources { count, ids }) => {
                let source_ids = ids.as_ref().map(Narrow::as_slice);
                View { num_sources: *count, source_ids, ..view }
            }
        };
        draw(view, nodes)
    }

    fn with_times(&self) -> Result<Box<dyn Lists>> {
        let (dataset, triple) = &self.of;
        let graph = match self.graph.is_timed() {
            true => self.graph.clone(),
            false => self.graph.clone().with_times_of(dataset, triple)?,
        };
        let sources = self.sources.clone();
        let ids = self.ids.clone();
        Ok(Box::new(Self { graph, sources, ids, part: self.part, of: self.of.clone() }))
    }

    fn cover_sources(&self) -> bool {
        self.sources.is_none()
    }
}
