//! Mean reciprocal rank and hits, of ranks among candidates.

use std::collections::BTreeMap;

/// The distribution of ranks of true answers among all candidates, counted exactly: twice the rank,
/// so that a half is a whole number, with the number of times it occurred.
///
/// **Ties.** An answer that scores as `e` others do takes the mean of the places they share: with `g`
/// candidates above, its rank is `1 + g + e / 2` (Sun et al., ACL 2020, show how other rules flatter
/// models that score all alike).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ranks {
    doubled: BTreeMap<u64, u64>,
}

impl Ranks {
    /// The distribution of these doubled ranks.
    pub fn of(doubled: impl IntoIterator<Item = u64>) -> Self {
        let mut ranks = Self::default();
        doubled.into_iter().for_each(|rank| ranks.add(rank));
        ranks
    }

    /// Twice the rank of an answer with `above` candidates above it and `equal` others that score alike.
    pub fn doubled(above: u64, equal: u64) -> u64 {
        2 + 2 * above + equal
    }

    /// Adds twice a rank.
    pub fn add(&mut self, doubled: u64) {
        *self.doubled.entry(doubled).or_default() += 1;
    }

    /// Number of answers.
    pub fn len(&self) -> u64 {
        self.doubled.values().sum()
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.doubled.is_empty()
    }

    /// Mean of 1 / rank; 0 of none.
    pub fn mrr(&self) -> f64 {
        self.mean(|doubled| 2.0 / doubled as f64)
    }

    /// Share of answers of rank `k` or better.
    pub fn hits(&self, k: u64) -> f64 {
        self.mean(|doubled| f64::from(u8::from(doubled <= 2 * k)))
    }

    fn mean(&self, of: impl Fn(u64) -> f64) -> f64 {
        let sum: f64 = self.doubled.iter().map(|(&rank, &count)| of(rank) * count as f64).sum();
        sum / self.len().max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        // Ranks 1, 2.5, 4 and 20.
        let places = [(0, 0), (1, 1), (3, 0), (19, 0)];
        let ranks = Ranks::of(places.map(|(above, equal)| Ranks::doubled(above, equal)));
        assert!((ranks.mrr() - (1.0 + 0.4 + 0.25 + 0.05) / 4.0).abs() < 1e-12);
        assert_eq!([1, 3, 10].map(|k| ranks.hits(k)), [0.25, 0.5, 0.75]);
        assert_eq!((Ranks::default().mrr(), Ranks::default().hits(1)), (0.0, 0.0));
    }

    #[test]
    fn scores_that_are_all_alike_are_not_flattered() {
        let ranks = Ranks::of([Ranks::doubled(0, 99)]);
        assert!((ranks.mrr() - 1.0 / 50.5).abs() < 1e-12);
        assert_eq!(ranks.hits(10), 0.0);
    }
}
