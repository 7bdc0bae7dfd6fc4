//! Placement by the partition of the graph.

use std::sync::Arc;

use gnarl_common::IdMap;

use super::{Place, Placement};

/// The new ids of each part's own nodes are one range.
#[derive(Debug, Clone)]
pub struct ByRange(Arc<IdMap>);

impl ByRange {
    /// Row `id` is in the part that `ids` says.
    pub fn new(ids: Arc<IdMap>) -> Self {
        Self(ids)
    }
}

impl Placement for ByRange {
    fn name(&self) -> &'static str {
        "range"
    }

    fn rows(&self) -> u64 {
        self.0.len() as u64
    }

    fn parts(&self) -> usize {
        self.0.parts()
    }

    fn id_map(&self) -> Option<&Arc<IdMap>> {
        Some(&self.0)
    }

    fn place(&self, id: u64) -> Place {
        Place::Part(self.0.part(id as usize))
    }
}
