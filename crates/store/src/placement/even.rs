//! Even placement: equal ranges in the order of ids.

use super::{Place, Placement};

/// Every part has a range of ids; range sizes differ by at most one. For datasets that are not
/// partitioned.
#[derive(Debug, Clone, Copy)]
pub struct Even {
    rows: u64,
    parts: usize,
}

impl Even {
    /// Splits `rows` rows among `parts` parts.
    ///
    /// # Panics
    /// If there is no part.
    pub fn new(rows: u64, parts: usize) -> Self {
        assert!(parts > 0, "rows need at least one part");
        Self { rows, parts }
    }
}

impl Placement for Even {
    fn name(&self) -> &'static str {
        "even"
    }

    fn rows(&self) -> u64 {
        self.rows
    }

    fn parts(&self) -> usize {
        self.parts
    }

    fn place(&self, id: u64) -> Place {
        // Part p owns the ids from rows · p / parts on, so the last p whose first id is not above
        // `id`.
        let id = u128::from(id);
        let rows = u128::from(self.rows);
        let parts = self.parts as u128;
        Place::Part((((id + 1) * parts - 1) / rows.max(1)) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_differ_by_one_at_most() {
        for (rows, parts) in [(10, 3), (7, 7), (3, 5), (1000, 6), (1, 1)] {
            let policy = Even::new(rows, parts);
            let mut counts = vec![0u64; parts];
            let mut last = 0;
            for id in 0..rows {
                let Place::Part(part) = policy.place(id) else { panic!("one part has a row") };
                assert!(part >= last, "parts ascend with ids");
                last = part;
                counts[part] += 1;
            }
            let firsts: Vec<u64> = (0..=parts as u64).map(|p| rows * p / parts as u64).collect();
            let shares: Vec<u64> = firsts.windows(2).map(|pair| pair[1] - pair[0]).collect();
            assert_eq!(counts, shares, "{rows} rows in {parts} parts");
        }
    }
}
