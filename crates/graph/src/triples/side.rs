//! Ends of an edge.

/// Which end of an edge is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// Heads, of a known tail.
    Head,
    /// Tails, of a known head.
    Tail,
}

impl Side {
    /// Both, heads first.
    pub const BOTH: [Self; 2] = [Self::Head, Self::Tail];

    /// The other end.
    pub fn other(self) -> Self {
        match self {
            Self::Head => Self::Tail,
            Self::Tail => Self::Head,
        }
    }
}
