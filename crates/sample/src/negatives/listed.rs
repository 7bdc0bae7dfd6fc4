//! Candidates among some nodes.

use gnarl_common::rng::Key;
use gnarl_graph::triples::Side;

use super::{Drawn, NegativeSampler, Positives};

/// A sampler of as many nodes as a list has, which draws positions in it.
pub struct Listed<'a> {
    sampler: Box<dyn NegativeSampler>,
    nodes: &'a [u32],
}

impl<'a> Listed<'a> {
    /// The nodes of `nodes` at the positions that `sampler` draws.
    pub fn new(sampler: Box<dyn NegativeSampler>, nodes: &'a [u32]) -> Self {
        Self { sampler, nodes }
    }
}

impl NegativeSampler for Listed<'_> {
    fn name(&self) -> &'static str {
        self.sampler.name()
    }

    fn choose(&self, batch: &Positives<'_>, side: Side, key: Key) -> Drawn {
        let mut drawn = self.sampler.choose(batch, side, key);
        drawn.ids.iter_mut().for_each(|id| *id = self.nodes[*id as usize]);
        drawn
    }
}

#[cfg(test)]
mod tests {
    use gnarl_graph::triples::Triples;

    use super::super::Joint;
    use super::*;

    #[test]
    fn candidates_are_those_of_the_list_and_true_ones_are_masked() {
        let mut triples = Triples::default();
        (0..5).for_each(|i| triples.push(i, 0, 10 + 3 * i));
        let places = [0, 1, 2, 3, 4];
        let batch = Positives { triples: &triples, places: &places, times: &[], share: 0..5 };
        let nodes = [10, 13, 16];
        let listed = Listed::new(Box::new(Joint::new(3, 50)), &nodes);
        let drawn = listed.draw(&batch, Side::Tail, Key::new(1));
        assert!(drawn.ids.iter().all(|id| nodes.contains(id)));
        let hits = drawn.ids.iter().filter(|&&id| id == 13).count();
        assert!(hits > 0 && drawn.masked.iter().filter(|[edge, _]| *edge == 1).count() == hits);
        // All nodes are as without a list.
        let all: Vec<u32> = (0..20).collect();
        let of_all = Listed::new(Box::new(Joint::new(20, 50)), &all);
        let plain = Joint::new(20, 50).draw(&batch, Side::Tail, Key::new(1));
        assert_eq!(of_all.draw(&batch, Side::Tail, Key::new(1)), plain);
    }
}
