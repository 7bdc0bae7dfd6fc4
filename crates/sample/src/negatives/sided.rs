//! Separate samplers for heads and tails of different types.

use gnarl_common::rng::Key;
use gnarl_graph::triples::Side;

use super::{Drawn, NegativeSampler, Positives};

/// One sampler per side, for edges between two node types; each counts its nodes from 0.
pub struct Sided<'a> {
    heads: Box<dyn NegativeSampler + 'a>,
    tails: Box<dyn NegativeSampler + 'a>,
    first_tail: u32,
}

impl<'a> Sided<'a> {
    /// Candidates of `heads` for heads; for tails those of `tails`, whose first node is `first_tail`.
    pub fn new(
        heads: Box<dyn NegativeSampler + 'a>,
        tails: Box<dyn NegativeSampler + 'a>,
        first_tail: u32,
    ) -> Self {
        Self { heads, tails, first_tail }
    }
}

impl NegativeSampler for Sided<'_> {
    fn name(&self) -> &'static str {
        self.heads.name()
    }

    fn choose(&self, batch: &Positives<'_>, side: Side, key: Key) -> Drawn {
        match side {
            Side::Head => self.heads.choose(batch, side, key),
            Side::Tail => {
                let mut drawn = self.tails.choose(batch, side, key);
                drawn.ids.iter_mut().for_each(|id| *id += self.first_tail);
                drawn
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Joint;
    use super::*;
    use gnarl_graph::triples::Triples;

    #[test]
    fn candidates_are_of_the_type_of_their_side() {
        let mut triples = Triples::default();
        (0..5).for_each(|i| triples.push(i, 0, 10 + i % 3));
        let places = [0, 1, 2, 3, 4];
        let batch = Positives { triples: &triples, places: &places, times: &[], share: 0..5 };
        let sided = Sided::new(Box::new(Joint::new(10, 50)), Box::new(Joint::new(3, 50)), 10);
        let of = |side| sided.draw(&batch, side, Key::new(1));
        assert!(of(Side::Head).ids.iter().all(|&id| id < 10));
        let tails = of(Side::Tail);
        assert!(tails.ids.iter().all(|id| (10..13).contains(id)));
        let hit = tails.ids.iter().filter(|&&id| id == 10).count();
        assert_eq!(tails.masked.iter().filter(|[edge, _]| *edge == 0).count(), hit);
    }
}
