//! The trait of orders.

/// The properties of a node that orders go by.
#[derive(Debug, Clone, Copy)]
pub(super) struct About {
    /// Its part of the graph; 0 if there are no parts.
    pub part: u32,
    /// Number of its in-neighbors.
    pub degree: u32,
}

/// A sort of nodes by keys; ties are by number.
pub(super) trait Sort: Sync {
    /// The key of a node.
    fn key(&self, about: About) -> u64;
}
