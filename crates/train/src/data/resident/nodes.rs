//! The nodes of the parts in memory, for those who draw among them.

use std::sync::{Arc, OnceLock};

use gnarl_sample::{PartNodes, ResidentGraph};

/// The nodes of the parts in memory, by dataset ids.
#[derive(Debug)]
pub(crate) struct NodesInMemory {
    parts: Vec<Arc<PartNodes>>,
    /// Those of each type with endpoints.
    types: Vec<OfType>,
}

/// The nodes of a type.
#[derive(Debug)]
struct OfType {
    number: usize,
    /// Merged when they are first asked for.
    ids: OnceLock<Vec<u32>>,
}

impl NodesInMemory {
    /// Those of the node types `types` of `graph`.
    pub fn of(graph: &ResidentGraph, types: impl Iterator<Item = usize>) -> Self {
        let parts = graph.places().iter().flatten().cloned().collect();
        let types = types.map(|number| OfType { number, ids: OnceLock::new() });
        Self { parts, types: types.collect() }
    }

    /// Dataset ids of the nodes of a type with endpoints, ascending: which part a node is in changes no draw.
    pub fn ids(&self, of: usize) -> &[u32] {
        let OfType { number, ids } = &self.types[of];
        ids.get_or_init(|| {
            let all = self.parts.iter().flat_map(|part| &part.ids[*number][..]);
            let mut ids: Vec<u32> = all.map(|&id| id as u32).collect();
            ids.sort_unstable();
            ids
        })
    }
}
