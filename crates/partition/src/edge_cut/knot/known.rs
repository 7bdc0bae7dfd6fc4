//! Partitions that a cycle starts from.

use std::borrow::Cow;

/// One or two partitions of a level's nodes, which its clusters must not cross.
pub(super) struct Known<'a> {
    /// The one that is inherited.
    pub best: Cow<'a, [u16]>,
    /// Another.
    pub other: Option<Cow<'a, [u16]>>,
}

impl Known<'_> {
    /// The nodes that may be in one cluster with `node`: all with the same value.
    #[inline]
    pub fn region(&self, node: u32) -> u32 {
        let part = |of: &[u16]| u32::from(of[node as usize]);
        part(&self.best) << 16 | self.other.as_deref().map_or(0, part)
    }

    /// The partitions of `count` clusters, which are the nodes of the next level; `map` has that of
    /// each node.
    pub fn of_clusters(&self, map: &[u32], count: usize) -> Known<'static> {
        let inherited = |of: &[u16]| {
            let mut parts = vec![0; count];
            let of_nodes = map.iter().zip(of);
            of_nodes.for_each(|(&cluster, &part)| parts[cluster as usize] = part);
            Cow::Owned(parts)
        };
        Known { best: inherited(&self.best), other: self.other.as_deref().map(inherited) }
    }
}
