//! Uniform neighbor sampling without replacement (Hamilton et al., NeurIPS 2017, section 3.1).

use gnarl_common::Result;
use gnarl_common::prefetch::item as prefetch;
use gnarl_common::rng::Key;

use crate::Scratch;
use crate::draw::draw;
use crate::neighbors::{Choose, Draw, NeighborSampler};
use crate::view::View;

/// For every node at every hop, a uniform sample of its in-neighbors without replacement.
///
/// The sample is a pure function of the key, the fan-out and the node's dataset id: it chooses
/// positions in the node's list, which is ordered by dataset id. Smaller fan-outs take a prefix of
/// the same draw, so a node met at several hops does not bring new neighbors each time: batches
/// stay smaller than with independent draws, and each hop's sample is uniform all the same. Time is
/// proportional to the number of edges drawn, not to degrees.
pub type UniformSampler = NeighborSampler<Uniform>;

/// Uniform positions in a list.
#[derive(Debug, Clone, Copy)]
pub struct Uniform;

impl Draw for Uniform {
    const NAME: &str = "uniform";
    type Chooser = Positions;

    fn chooser(_: View<'_>, key: Key) -> Result<Positions> {
        Ok(Positions(key))
    }
}

/// Draws positions from one stream of random numbers per node.
pub struct Positions(Key);

impl Choose for Positions {
    fn announce(&self, _: View<'_>, _: (usize, u32)) {}

    #[inline]
    fn choose(
        &mut self,
        view: View<'_>,
        node: u32,
        (start, degree): (usize, u32),
        scratch: &mut Scratch,
        out: &mut [u32],
    ) {
        draw(self.0.with(view.id(node)), degree, out, &mut scratch.seen);
        for &position in &*out {
            prefetch(view.indices, start + position as usize);
        }
    }
}
