//! Uniform sampling from a share of a list, as by the servers of a vertex cut (GLISP, section III-C).

use gnarl_common::prefetch::item as prefetch;
use gnarl_common::rng::Key;

use crate::Scratch;
use crate::draw::draw;
use crate::neighbors::Choose;
use crate::view::View;

/// Index of the random number that rounds, apart from those of positions.
const ROUNDING: u64 = u64::MAX;

/// Draws from the lists of one part as many edges as its share of each node's neighbors is of the fan-out, so that all parts
/// together draw the fan-out: on average, since parts round by chance, each for itself. Every neighbor is drawn with the
/// probability fan-out / degree.
pub struct Share(Key);

impl Share {
    /// Draws of part `part`, which are independent of those of other parts.
    pub fn new(key: Key, part: u64) -> Self {
        Self(key.with(part))
    }
}

impl Choose for Share {
    fn announce(&self, _: View<'_>, _: (usize, u32)) {}

    fn count(&self, view: View<'_>, node: u32, here: u32, fanout: u32) -> u32 {
        let degree = view.degree(node);
        if degree <= fanout {
            return here;
        }
        let expected = f64::from(fanout) * f64::from(here) / f64::from(degree);
        let up = self.0.with(view.id(node)).unit(ROUNDING) < expected.fract();
        (expected as u32 + u32::from(up)).min(here)
    }

    fn choose(
        &mut self,
        view: View<'_>,
        node: u32,
        (start, here): (usize, u32),
        scratch: &mut Scratch,
        out: &mut [u32],
    ) {
        draw(self.0.with(view.id(node)), here, out, &mut scratch.seen);
        for &position in &*out {
            prefetch(view.indices, start + position as usize);
        }
    }
}
