//! Layer-neighbor sampling with one random number a source (Balin and Çatalyürek, NeurIPS 2023,
//! section 3.2: LABOR-0, with a fixed number of neighbors as in their appendix on sequential
//! Poisson sampling).

use gnarl_common::Result;
use gnarl_common::rng::Key;

use crate::bottom_k::{Numbers, Smallest, exact_limit, likely_limit};
use crate::hash::Hash;
use crate::lanes::{LANES, Lanes};
use crate::neighbors::{Draw, NeighborSampler};
use crate::view::View;

/// For every node at every hop, the in-neighbors with the smallest random numbers, where a
/// neighbor has one number for the whole batch.
///
/// For a single node that is a uniform sample without replacement, as [`UniformSampler`]'s; but
/// destinations with common neighbors agree on them, and later hops on those of earlier ones. So a
/// batch has fewer nodes: fewer features to fetch and to multiply for as many edges. Time is
/// proportional to the degrees.
///
/// The numbers depend on the key and the source's dataset id. Give each batch a key of its own, or
/// neighbors with large numbers are missing from a whole epoch.
///
/// [`UniformSampler`]: crate::UniformSampler
pub type LaborSampler = NeighborSampler<Labor>;

/// One random number per source, shared by all lists.
#[derive(Debug, Clone, Copy)]
pub struct Labor;

impl Draw for Labor {
    const NAME: &str = "labor";
    type Chooser = Smallest<BySource>;

    fn chooser(_: View<'_>, key: Key) -> Result<Self::Chooser> {
        Ok(Smallest::new(BySource(Hash::new(key))))
    }
}

pub struct BySource(Hash);

impl Numbers for BySource {
    fn turn_to(&mut self, _: u64) {}

    #[inline(always)]
    fn fill(
        &self,
        view: View<'_>,
        list: (usize, u32),
        from: usize,
        limit: u32,
        numbers: &mut [u32; LANES],
    ) -> Lanes {
        self.0.all(view, list, from, numbers);
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
