//! Edges as triples of head, relation and tail, and the filtered set of those that are known.

mod filtered_set;
mod side;

pub use filtered_set::FilteredSet;
pub use side::Side;

/// Edges as three columns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Triples {
    /// Sources.
    pub heads: Vec<u32>,
    /// Relation of each; all 0 where there are none.
    pub relations: Vec<u32>,
    /// Destinations.
    pub tails: Vec<u32>,
}

impl Triples {
    /// Number of edges.
    pub fn len(&self) -> usize {
        self.heads.len()
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.heads.is_empty()
    }

    /// The endpoints on a side.
    pub fn ends(&self, side: Side) -> &[u32] {
        match side {
            Side::Head => &self.heads,
            Side::Tail => &self.tails,
        }
    }

    /// Adds an edge.
    pub fn push(&mut self, head: u32, relation: u32, tail: u32) {
        self.heads.push(head);
        self.relations.push(relation);
        self.tails.push(tail);
    }

    /// The edges at `places`, in that order.
    pub fn at(&self, places: &[u32]) -> Self {
        let pick = |column: &[u32]| places.iter().map(|&place| column[place as usize]).collect();
        Self {
            heads: pick(&self.heads),
            relations: pick(&self.relations),
            tails: pick(&self.tails),
        }
    }
}
