//! Filtered negatives, without known edges.

use std::sync::Arc;

use gnarl_common::rng::Key;
use gnarl_graph::triples::{FilteredSet, Side};

use super::{Drawn, NegativeSampler, Positives, mask};

/// Masks every candidate that completes a known edge.
pub struct Filtered {
    inner: Box<dyn NegativeSampler>,
    known: Arc<FilteredSet>,
}

impl Filtered {
    /// The candidates of `inner`, without those that complete an edge of the filtered set `known`.
    pub fn new(inner: Box<dyn NegativeSampler>, known: Arc<FilteredSet>) -> Self {
        Self { inner, known }
    }
}

impl NegativeSampler for Filtered {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn choose(&self, batch: &Positives<'_>, side: Side, key: Key) -> Drawn {
        self.inner.choose(batch, side, key)
    }

    fn draw(&self, batch: &Positives<'_>, side: Side, key: Key) -> Drawn {
        let mut drawn = self.inner.draw(batch, side, key);
        drawn.mask_known(batch, side, &self.known);
        drawn
    }
}

impl Drawn {
    /// Masks every candidate that completes an edge of `known`, which need not have the edges of `batch`.
    pub fn mask_known(&mut self, batch: &Positives<'_>, side: Side, known: &FilteredSet) {
        let given = &batch.triples.ends(side.other())[batch.share.clone()];
        let relations = &batch.triples.relations[batch.share.clone()];
        let own = std::mem::take(&mut self.masked);
        mask(self, |edge| known.ends(side, given[edge], relations[edge]));
        self.masked.extend(own);
        self.masked.sort_unstable();
        self.masked.dedup();
    }
}
