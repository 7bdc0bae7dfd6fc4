//! Uniform neighbor sampling with replacement.

use gnarl_common::Result;
use gnarl_common::prefetch::item as prefetch;
use gnarl_common::rng::Key;

use crate::Scratch;
use crate::neighbors::{Choose, Draw};
use crate::view::View;

/// As many in-neighbors as the fan-out, each any of the list: some may be there several times, and of a short list all may
/// be missing but one. Smaller fan-outs take a prefix of the same draw.
#[derive(Debug, Clone, Copy)]
pub(super) struct Replaced;

impl Draw for Replaced {
    const NAME: &str = "uniform with replacement";
    type Chooser = AnyPositions;

    fn chooser(_: View<'_>, key: Key) -> Result<AnyPositions> {
        Ok(AnyPositions(key))
    }
}

/// Draws positions from one stream of random numbers per node.
pub(super) struct AnyPositions(Key);

impl Choose for AnyPositions {
    const REPLACES: bool = true;

    fn announce(&self, _: View<'_>, _: (usize, u32)) {}

    #[inline(always)]
    fn count(&self, _: View<'_>, _: u32, degree: u32, fanout: u32) -> u32 {
        if degree == 0 { 0 } else { fanout }
    }

    #[inline]
    fn choose(
        &mut self,
        view: View<'_>,
        node: u32,
        (start, degree): (usize, u32),
        _: &mut Scratch,
        out: &mut [u32],
    ) {
        let key = self.0.with(view.id(node));
        for (draw, position) in out.iter_mut().enumerate() {
            *position = key.below(draw as u64, degree.into()) as u32;
            prefetch(view.indices, start + *position as usize);
        }
    }
}
