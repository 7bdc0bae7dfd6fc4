//! Endpoints of an edge.

/// The side of an edge that is predicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// Heads, given the tail.
    Head,
    /// Tails, given the head.
    Tail,
}

impl Side {
    /// Both, heads first.
    pub const BOTH: [Self; 2] = [Self::Head, Self::Tail];

    /// The opposite side.
    pub fn other(self) -> Self {
        match self {
            Self::Head => Self::Tail,
            Self::Tail => Self::Head,
        }
    }
}
