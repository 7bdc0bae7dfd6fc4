//! Places of nodes among the rows of a layer.

use std::sync::Arc;

use gnarl_common::Result;

use crate::needed::Needed;
use crate::order::Sequence;

/// The nodes of one type whose rows a rank has: those that it computes, in their order, then those that it fetches.
#[derive(Debug, Clone)]
pub struct Places {
    sequence: Option<Arc<Sequence>>,
    /// By position in the sequence, as the next.
    own: Needed,
    fetched: Option<Needed>,
}

impl From<Needed> for Places {
    /// Places by number.
    fn from(own: Needed) -> Self {
        Self { sequence: None, own, fetched: None }
    }
}

impl Places {
    /// Places in a sequence, of nodes whose bits are set.
    pub(crate) fn new(
        sequence: Option<&Arc<Sequence>>,
        nodes: usize,
        own: Vec<u64>,
        fetched: Option<Vec<u64>>,
    ) -> Self {
        let of = |bits: Vec<u64>| match sequence {
            Some(sequence) => Needed::of_bits(nodes, sequence.by_position(&bits)),
            None => Needed::of_bits(nodes, bits),
        };
        let fetched = fetched.filter(|bits| bits.iter().any(|&word| word != 0));
        Self { own: of(own), fetched: fetched.map(of), sequence: sequence.cloned() }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.own.len() + self.fetched.as_ref().map_or(0, Needed::len)
    }

    /// Returns whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether every node has a row, whose place is its number.
    pub fn is_by_number(&self) -> bool {
        self.sequence.is_none() && self.own.is_all()
    }

    /// Returns whether places ascend with nodes.
    pub fn is_ascending(&self) -> bool {
        self.sequence.is_none() && self.fetched.is_none()
    }

    /// The place of a node; none if it has no row.
    #[inline]
    pub fn place(&self, node: u32) -> Option<usize> {
        let position = match &self.sequence {
            Some(sequence) => sequence.position(node)?,
            None => node,
        };
        match (self.own.place(position), &self.fetched) {
            (None, Some(fetched)) => fetched.place(position).map(|place| self.own.len() + place),
            (place, _) => place,
        }
    }

    /// Number of own rows.
    pub(crate) fn num_own(&self) -> usize {
        self.own.len()
    }

    /// Returns whether every row is needed and none is fetched.
    pub(crate) fn is_all_own(&self) -> bool {
        self.own.is_all()
    }

    /// The own nodes, in their order.
    pub(crate) fn own(&self) -> impl Iterator<Item = u32> + '_ {
        self.own.iter().map(|position| self.node(position))
    }

    /// The fetched nodes, in their order.
    pub(crate) fn fetched(&self) -> impl Iterator<Item = u32> + '_ {
        let fetched = self.fetched.iter().flat_map(Needed::iter);
        fetched.map(|position| self.node(position))
    }

    /// Calls `visit` with about `each` own nodes at a time, in no order, on all threads.
    ///
    /// # Errors
    /// Those of `visit`.
    pub(crate) fn for_each_own(
        &self,
        each: usize,
        visit: impl Fn(&[u32]) -> Result<()> + Sync,
    ) -> Result<()> {
        self.own.for_each(each, |positions| match &self.sequence {
            None => visit(positions),
            Some(_) => {
                visit(&positions.iter().map(|&position| self.node(position)).collect::<Vec<_>>())
            }
        })
    }

    fn node(&self, position: u32) -> u32 {
        self.sequence.as_ref().map_or(position, |sequence| sequence.node(position))
    }
}
