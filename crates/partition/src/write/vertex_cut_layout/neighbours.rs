//! Iteration over neighbors.

use std::ops::Range;

use super::part::VertexCutPart;
use super::side::Direction;

/// A neighbor and the edge that leads there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Neighbour {
    /// Local id of the neighbor.
    pub node: u32,
    /// Id of the edge in the part.
    pub edge: u64,
}

/// Neighbors of a node over one edge type. `nth` takes as long as `next`, so that a sampler can
/// access neighbors by position.
#[derive(Debug, Clone)]
pub struct CutNeighbours<'a> {
    part: &'a VertexCutPart,
    direction: Direction,
    slots: Range<u64>,
}

impl VertexCutPart {
    /// Neighbors of a node over an edge type, ascending; none if there is no such type.
    #[inline]
    pub fn neighbours(
        &self,
        local: u32,
        edge_type: usize,
        direction: Direction,
    ) -> CutNeighbours<'_> {
        let slots = self.side(direction).run_of(local, edge_type).map_or(0..0, |run| run.slots);
        CutNeighbours { part: self, direction, slots }
    }
}

impl CutNeighbours<'_> {
    #[inline]
    fn at(&self, slot: u64) -> Neighbour {
        match self.direction {
            Direction::In => Neighbour { node: self.part.source(slot), edge: slot },
            Direction::Out => {
                let edge = self.part.out_edge(slot);
                Neighbour { node: self.part.target(edge), edge }
            }
        }
    }
}

impl Iterator for CutNeighbours<'_> {
    type Item = Neighbour;

    #[inline]
    fn next(&mut self) -> Option<Neighbour> {
        self.slots.next().map(|slot| self.at(slot))
    }

    #[inline]
    fn nth(&mut self, n: usize) -> Option<Neighbour> {
        self.slots.nth(n).map(|slot| self.at(slot))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = (self.slots.end - self.slots.start) as usize;
        (left, Some(left))
    }
}

impl ExactSizeIterator for CutNeighbours<'_> {}
