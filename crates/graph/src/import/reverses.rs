//! Reverses of edges.

/// The storage of reverse edges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reverses {
    /// Not stored.
    None,
    /// Stored as edges of the same type; self-loops are not reversed.
    Same,
    /// Stored as edges of the type [`Triple::reversed`](crate::Triple::reversed).
    Apart,
}

impl Reverses {
    /// The storage that an option to symmetrize selects.
    pub fn within(symmetrize: bool) -> Self {
        if symmetrize { Self::Same } else { Self::None }
    }
}
