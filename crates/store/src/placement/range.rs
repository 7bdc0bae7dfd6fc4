//! Placement by the partition of the graph.

use gnarl_common::{Buf, Error, Result};

use super::{Place, Placement};

/// The new ids of each part's own nodes are one range, so that the part of a row is found by binary
/// search among as many bounds as parts.
#[derive(Debug, Clone)]
pub struct ByRange {
    new_ids: Buf<u64>,
    ranges: Vec<u64>,
}

impl ByRange {
    /// Row `id` has the new id `new_ids[id]`; part `p` has those in `ranges[p]..ranges[p + 1]`.
    ///
    /// # Errors
    /// If the ranges do not ascend from 0 to the number of rows.
    pub fn new(new_ids: Buf<u64>, ranges: Vec<u64>) -> Result<Self> {
        let whole = ranges.first() == Some(&0) && ranges.last() == Some(&(new_ids.len() as u64));
        if ranges.len() < 2 || !whole || !ranges.is_sorted() {
            let rows = new_ids.len();
            return Err(Error::invalid(format!("ranges {ranges:?} do not cover {rows} rows")));
        }
        Ok(Self { new_ids, ranges })
    }
}

impl Placement for ByRange {
    fn name(&self) -> &'static str {
        "range"
    }

    fn rows(&self) -> u64 {
        self.new_ids.len() as u64
    }

    fn parts(&self) -> usize {
        self.ranges.len() - 1
    }

    fn place(&self, id: u64) -> Place {
        let new = self.new_ids[id as usize];
        Place::Part(self.ranges.partition_point(|&first| first <= new) - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_belong_to_the_part_they_begin() {
        let policy = ByRange::new((0..6).collect::<Vec<u64>>().into(), vec![0, 2, 2, 6]).unwrap();
        let places: Vec<_> = (0..6).map(|id| policy.place(id)).collect();
        assert_eq!(places, [0, 0, 2, 2, 2, 2].map(Place::Part), "part 1 has none");
    }

    #[test]
    fn ranges_that_leave_rows_out_are_refused() {
        for ranges in [vec![], vec![0], vec![0, 2], vec![1, 3], vec![0, 2, 1, 3]] {
            let text = ByRange::new(vec![0, 1, 2].into(), ranges).unwrap_err().to_string();
            assert!(text.contains("do not cover 3 rows"), "{text}");
        }
    }
}
