//! Reverses of edges.

/// What becomes of the reverse of each edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reverses {
    /// It is not stored.
    None,
    /// It is an edge of the same type; self loops are not turned around.
    Same,
    /// It is an edge of a type of its own, [`Triple::reversed`](crate::Triple::reversed).
    Apart,
}

impl Reverses {
    /// Those that an option to symmetrize asks for.
    pub fn within(symmetrize: bool) -> Self {
        if symmetrize { Self::Same } else { Self::None }
    }
}
