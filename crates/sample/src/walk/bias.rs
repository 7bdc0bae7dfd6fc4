//! Second-order walks (node2vec: Grover and Leskovec, KDD 2016, section 3.2.2).

use gnarl_common::rng::Key;
use gnarl_common::{Error, Result};

use crate::view::View;

/// Transition weights of the next nodes, given the previous one.
#[derive(Debug, Clone, Copy)]
pub struct Bias {
    /// Of the previous node: `1 / p`.
    back: f64,
    /// Of nodes that are no neighbors of it: `1 / q`. Its neighbors have 1.
    away: f64,
}

impl Bias {
    /// # Errors
    /// If `p` or `q` is not between 0.01 and 100: beyond, a step would try too many edges.
    pub fn new(p: f64, q: f64) -> Result<Self> {
        for (name, value) in [("p", p), ("q", q)] {
            if !(0.01..=100.0).contains(&value) {
                return Err(Error::usage(format!(
                    "invalid node2vec {name} '{value}': expected a number between 0.01 and 100"
                ))
                .hint("1 is without bias"));
            }
        }
        Ok(Self { back: 1.0 / p, away: 1.0 / q })
    }

    /// A node of `list`, which is not empty, where `before` is the previous node: edges are drawn
    /// uniformly and accepted with a probability in proportion to their weight (rejection sampling,
    /// as in KnightKing: Yang et al., SOSP 2019). So no table for pairs of edges is needed.
    pub fn step(
        self,
        view: View<'_>,
        before: u32,
        (start, degree): (usize, u32),
        key: Key,
    ) -> Result<u32> {
        let most = self.back.max(self.away).max(1.0);
        let mut counter = 0;
        loop {
            let source = view.source(start + key.below(counter, degree.into()) as usize)?;
            if key.unit(counter + 1) * most < self.weight(view, before, source)? {
                return Ok(source);
            }
            counter += 2;
        }
    }

    fn weight(self, view: View<'_>, before: u32, next: u32) -> Result<f64> {
        if next == before {
            return Ok(self.back);
        }
        let (start, degree) = view.list(before)?;
        let list = &view.indices[start..start + degree as usize];
        let found = list.binary_search_by_key(&view.source_id(next), |&s| view.source_id(s));
        Ok(if found.is_ok() { 1.0 } else { self.away })
    }
}
