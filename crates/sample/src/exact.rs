//! Bottom-k uniform sampling, consistent over the parts of a vertex cut (GLISP, section III-C, in
//! its exact mode).

use gnarl_common::Result;
use gnarl_common::rng::Key;

use crate::bottom_k::{Numbers, Smallest, exact_limit, likely_limit};
use crate::hash::Hash;
use crate::lanes::{LANES, Lanes};
use crate::neighbors::{Draw, NeighborSampler};
use crate::view::View;

/// For every node at every hop, a uniform sample of its in-neighbors without replacement: the edges
/// with the smallest random numbers.
///
/// An edge's number depends on the key and the dataset ids of both endpoints. So if a node's edges
/// lie in several parts of a vertex cut, each part finds its candidates alone, and merging them
/// gives the sample of the whole graph. [`UniformSampler`] draws another, equally uniform sample
/// faster, in time that does not depend on degrees, but needs the whole list.
///
/// Equal edges are drawn independently; a vertex cut must keep them in one part.
///
/// [`UniformSampler`]: crate::UniformSampler
pub type ExactSampler = NeighborSampler<Exact>;

/// One random number per edge.
#[derive(Debug, Clone, Copy)]
pub struct Exact;

impl Draw for Exact {
    const NAME: &str = "exact";
    type Chooser = Smallest<ByEdge>;

    fn chooser(_: View<'_>, key: Key) -> Result<Self::Chooser> {
        Ok(Smallest::new(ByEdge { key, hash: Hash::new(key) }))
    }
}

pub struct ByEdge {
    key: Key,
    hash: Hash,
}

impl Numbers for ByEdge {
    fn turn_to(&mut self, node: u64) {
        self.hash = Hash::new(self.key.with(node));
    }

    #[inline(always)]
    fn fill(
        &self,
        view: View<'_>,
        list: (usize, u32),
        from: usize,
        limit: u32,
        numbers: &mut [u32; LANES],
    ) -> Lanes {
        self.hash.all_edges(view, list, from, numbers);
        Lanes::at_most(limit, numbers).and(Lanes::of_list(list, from))
    }

    #[inline(always)]
    fn likely_limit(&self, _: View<'_>, (_, degree): (usize, u32), wanted: usize) -> u32 {
        likely_limit(wanted, degree)
    }

    #[inline(always)]
    fn exact_limit(&self, numbers: &[u32], limit: u32, wanted: usize) -> Option<u32> {
        exact_limit(numbers, limit, wanted)
    }
}
