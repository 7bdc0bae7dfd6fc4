//! The nodes of the parts in memory, for those who draw among them.

use std::sync::{Arc, OnceLock};

use gnarl_sample::{PartNodes, ResidentGraph};

/// The nodes of the parts in memory, by dataset ids.
#[derive(Debug)]
pub(crate) struct NodesInMemory {
    parts: Vec<Arc<PartNodes>>,
    /// Merged when they are first asked for.
    ids: OnceLock<Vec<u32>>,
}

impl NodesInMemory {
    /// Those of `graph`.
    pub fn of(graph: &ResidentGraph) -> Self {
        let parts = graph.places().iter().flatten().cloned().collect();
        Self { parts, ids: OnceLock::new() }
    }

    /// Dataset ids, ascending: which part a node is in changes no draw.
    pub fn ids(&self) -> &[u32] {
        self.ids.get_or_init(|| {
            let all = self.parts.iter().flat_map(|part| &part.ids[..]);
            let mut ids: Vec<u32> = all.map(|&id| id as u32).collect();
            ids.sort_unstable();
            ids
        })
    }
}
