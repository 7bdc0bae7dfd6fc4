//! Known edges that lie beside the parts of a graph.

use std::sync::Arc;

use gnarl_common::{Context, IdMap, Result};
use gnarl_graph::triples::{FilteredSet, Side, Triples};
use gnarl_partition::PartitionedDataset;
use gnarl_serve::PartAccess;

use super::known::{KnownEdges, Query};
use super::manifest::of_partition;

/// Known edges in parts: no rank has all of them. Edges of a given head are in the part that owns it, edges of a given
/// tail in any part.
pub(crate) struct KnownInParts {
    parts: Arc<[PartAccess]>,
    /// Number of the first node that is a tail.
    first_tail: u32,
    /// The part of each node that can be a head, mapped.
    owner: Arc<IdMap>,
}

impl KnownInParts {
    /// The edges beside the parts of `cut`; tails are numbered from `first_tail` on.
    ///
    /// # Errors
    /// If the partition has no target edges.
    pub fn new(
        cut: &PartitionedDataset,
        parts: Arc<[PartAccess]>,
        first_tail: u32,
    ) -> Result<Self> {
        let owner = cut.id_map(&of_partition(cut)?.triple.src)?;
        Ok(Self { parts, first_tail, owner })
    }

    fn matching(&self, queries: &[Query], train: bool) -> Result<Arc<FilteredSet>> {
        let mut begun = Vec::new();
        for side in Side::BOTH {
            for (part, keys) in self.parts.iter().zip(self.keys(queries, side)) {
                if !keys.is_empty() {
                    begun.push(part.begin_known(side, keys.into(), train));
                }
            }
        }
        let mut all = Triples::default();
        for reply in begun {
            let found = reply().while_doing(|| "looking up known edges")?;
            all.heads.extend(found.heads);
            all.relations.extend(found.relations);
            all.tails.extend(found.tails.iter().map(|tail| tail + self.first_tail));
        }
        Ok(Arc::new(FilteredSet::new(&[&all])))
    }

    /// The keys of a side to ask each part for. Nodes that are no endpoints on the given side have no edges.
    fn keys(&self, queries: &[Query], side: Side) -> Vec<Vec<[u32; 2]>> {
        let mut keys = vec![Vec::new(); self.parts.len()];
        for &(_, [given, relation]) in queries.iter().filter(|query| query.0 == side) {
            match side {
                Side::Tail => {
                    if (given as usize) < self.owner.len() {
                        keys[self.owner.part(given as usize)].push([given, relation]);
                    }
                }
                Side::Head => {
                    if let Some(tail) = given.checked_sub(self.first_tail) {
                        keys.iter_mut().for_each(|keys| keys.push([tail, relation]));
                    }
                }
            }
        }
        keys
    }
}

impl KnownEdges for KnownInParts {
    fn of(&self, queries: &[Query]) -> Result<Arc<FilteredSet>> {
        self.matching(queries, false)
    }

    fn training(&self, queries: &[Query]) -> Result<Arc<FilteredSet>> {
        self.matching(queries, true)
    }
}
