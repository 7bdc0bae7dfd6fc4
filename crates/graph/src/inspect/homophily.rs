//! Homophily: the share of edges between nodes of one class.

use gnarl_common::Buf;
use serde::{Deserialize, Serialize};

use crate::edges::EdgeChunk;

/// Label agreement along edges.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Homophily {
    /// Share of the edges with two labeled endpoints whose labels are equal.
    pub edge: f64,
    /// `edge`, corrected for the agreement expected from the classes' degrees: 0 for edges that
    /// ignore labels, 1 for edges that never join two classes (Platonov et al., NeurIPS 2023,
    /// eq. 2).
    /// `None` when all endpoints are of one class.
    pub adjusted: Option<f64>,
    /// Edges with two labeled endpoints.
    pub labelled_edges: u64,
}

/// Counts label pairs along edges.
pub(super) struct Mixing<'a> {
    classes: &'a Buf<i32>,
    /// Endpoints of each class, in both directions.
    ends: Vec<u64>,
    equal: u64,
    edges: u64,
}

impl<'a> Mixing<'a> {
    pub(super) fn new(classes: &'a Buf<i32>, count: usize) -> Self {
        Self { classes, ends: vec![0; count], equal: 0, edges: 0 }
    }

    pub(super) fn add(&mut self, chunk: &EdgeChunk) {
        let classes: &[i32] = self.classes;
        let class =
            |v: u64| classes.get(v as usize).map(|&c| c as usize).filter(|&c| c < self.ends.len());
        let mut ends = vec![0u64; self.ends.len()];
        for (src, dst) in chunk.iter() {
            if let (Some(a), Some(b)) = (class(src), class(dst)) {
                ends[a] += 1;
                ends[b] += 1;
                self.equal += u64::from(a == b);
                self.edges += 1;
            }
        }
        self.ends.iter_mut().zip(ends).for_each(|(sum, more)| *sum += more);
    }

    pub(super) fn finish(&self) -> Option<Homophily> {
        if self.edges == 0 {
            return None;
        }
        let edge = self.equal as f64 / self.edges as f64;
        let share = |&ends: &u64| (ends as f64 / (2 * self.edges) as f64).powi(2);
        let chance: f64 = self.ends.iter().map(share).sum();
        let adjusted = (chance < 1.0).then(|| (edge - chance) / (1.0 - chance));
        Some(Homophily { edge, adjusted, labelled_edges: self.edges })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn homophily(edges: &[(u64, u64)], classes: Vec<i32>) -> Option<Homophily> {
        let classes = Buf::from(classes);
        let mut mixing = Mixing::new(&classes, 2);
        let (src, dst) = edges.iter().copied().unzip();
        mixing.add(&EdgeChunk { src, dst });
        mixing.finish()
    }

    #[test]
    fn a_square_of_two_classes_by_hand() {
        // Classes 0 0 1 1 around a square: two of four edges agree, chance is one half.
        let square = [(0, 1), (1, 2), (2, 3), (3, 0)];
        let found = homophily(&square, vec![0, 0, 1, 1]).unwrap();
        assert_eq!((found.edge, found.adjusted), (0.5, Some(0.0)));
        let found = homophily(&square, vec![0, 1, 0, 1]).unwrap();
        assert_eq!((found.edge, found.adjusted), (0.0, Some(-1.0)));
    }

    #[test]
    fn unlabelled_ends_do_not_count() {
        let found = homophily(&[(0, 1), (1, 2)], vec![0, 0, -1]).unwrap();
        assert_eq!((found.edge, found.adjusted, found.labelled_edges), (1.0, None, 1));
        assert_eq!(homophily(&[(0, 1)], vec![-1, 0]), None);
    }
}
