//! Iteration over neighbors.

use std::ops::Range;

use super::part::VertexCutPart;
use super::side::Direction;

/// A neighbor and the edge that leads there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Neighbor {
    /// Local id of the neighbor.
    pub node: u32,
    /// Id of the edge in the part.
    pub edge: u64,
}

/// Neighbors of a node over one edge type. `nth` takes as long as `next`, so that a sampler can
/// access neighbors by position.
#[derive(Debug, Clone)]
pub struct CutNeighbors<'a> {
    part: &'a VertexCutPart,
    direction: Direction,
    slots: Range<u64>,
}

impl VertexCutPart {
    /// Neighbors of a node over an edge type, ascending; none if there is no such type.
    #[inline]
    pub fn neighbors(
        &self,
        local: u32,
        edge_type: usize,
        direction: Direction,
    ) -> CutNeighbors<'_> {
        let slots = self.side(direction).run_of(local, edge_type).map_or(0..0, |run| run.slots);
        CutNeighbors { part: self, direction, slots }
    }
}

impl CutNeighbors<'_> {
    #[inline]
    fn at(&self, slot: u64) -> Neighbor {
        match self.direction {
            Direction::In => Neighbor { node: self.part.source(slot), edge: slot },
            Direction::Out => {
                let edge = self.part.out_edge(slot);
                Neighbor { node: self.part.target(edge), edge }
            }
        }
    }
}

impl Iterator for CutNeighbors<'_> {
    type Item = Neighbor;

    #[inline]
    fn next(&mut self) -> Option<Neighbor> {
        self.slots.next().map(|slot| self.at(slot))
    }

    #[inline]
    fn nth(&mut self, n: usize) -> Option<Neighbor> {
        self.slots.nth(n).map(|slot| self.at(slot))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = (self.slots.end - self.slots.start) as usize;
        (left, Some(left))
    }
}

impl ExactSizeIterator for CutNeighbors<'_> {}
