//! Ids of the rows of a table.

use std::ops::Range;

use gnarl_common::{Error, Result};
use hashbrown::HashMap;
use vers_vecs::{BitVec, RsVec};

/// The ids of a table's rows, and the row of each.
#[derive(Debug, Clone)]
pub struct Ids(Kind);

#[derive(Debug, Clone)]
enum Kind {
    /// Consecutive ids.
    Range(Range<u64>),
    /// Ascending ids: a bit for each id of the whole table, with counts to find its row.
    Ascending(RsVec, usize),
    /// Ids in any order.
    Listed { ids: Vec<u64>, rows: HashMap<u64, u32> },
}

impl Ids {
    /// Consecutive ids.
    pub fn range(ids: Range<u64>) -> Self {
        Self(Kind::Range(ids.start..ids.end.max(ids.start)))
    }

    /// Those of the ids below `count` that belong to the table, ascending: 1.3 bits for each id below `count`, or
    /// nothing if they are consecutive.
    pub fn ascending(count: u64, belongs: impl Fn(u64) -> bool) -> Self {
        let mut bits = BitVec::with_capacity(count as usize);
        let mut first = None;
        let mut last = 0;
        let mut own = 0;
        for id in 0..count {
            let mine = belongs(id);
            bits.append_bit(mine.into());
            if mine {
                first.get_or_insert(id);
                last = id;
                own += 1;
            }
        }
        match first {
            None => Self::range(0..0),
            Some(first) if last - first + 1 == own => Self::range(first..last + 1),
            Some(_) => Self(Kind::Ascending(RsVec::from_bit_vec(bits), own as usize)),
        }
    }

    /// Ids in any order.
    ///
    /// # Errors
    /// If one repeats, or there are more than 32 bits count.
    pub fn listed(ids: Vec<u64>) -> Result<Self> {
        let mut rows = HashMap::with_capacity(ids.len());
        for (row, &id) in ids.iter().enumerate() {
            let row = u32::try_from(row).map_err(|_| too_many(ids.len()))?;
            if rows.insert(id, row).is_some() {
                return Err(Error::invalid(format!("duplicate node {id} among embeddings")));
            }
        }
        Ok(Self(Kind::Listed { ids, rows }))
    }

    /// Number of ids.
    pub fn len(&self) -> usize {
        match &self.0 {
            Kind::Range(ids) => (ids.end - ids.start) as usize,
            Kind::Ascending(_, own) => *own,
            Kind::Listed { ids, .. } => ids.len(),
        }
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The row of `id`, if it has one.
    #[inline]
    pub fn row(&self, id: u64) -> Option<usize> {
        match &self.0 {
            Kind::Range(ids) => ids.contains(&id).then(|| (id - ids.start) as usize),
            Kind::Ascending(bits, _) => {
                let place = usize::try_from(id).ok()?;
                (bits.get(place)? == 1).then(|| bits.rank1(place))
            }
            Kind::Listed { rows, .. } => rows.get(&id).map(|&row| row as usize),
        }
    }

    /// The id of a row.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn id(&self, row: usize) -> u64 {
        assert!(row < self.len(), "row {row} of {}", self.len());
        match &self.0 {
            Kind::Range(ids) => ids.start + row as u64,
            Kind::Ascending(bits, _) => bits.select1(row) as u64,
            Kind::Listed { ids, .. } => ids[row],
        }
    }

    /// Number of ids below `id`: the row of the first that is not below, where ids ascend.
    pub fn below(&self, id: u64) -> usize {
        match &self.0 {
            Kind::Range(ids) => (id.clamp(ids.start, ids.end) - ids.start) as usize,
            Kind::Ascending(bits, _) => bits.rank1((id as usize).min(bits.len())),
            Kind::Listed { ids, .. } => ids.iter().filter(|&&own| own < id).count(),
        }
    }

    /// The ids, in the order of rows.
    pub fn iter(&self) -> Box<dyn Iterator<Item = u64> + '_> {
        match &self.0 {
            Kind::Range(ids) => Box::new(ids.clone()),
            Kind::Ascending(bits, _) => Box::new(bits.iter1().map(|place| place as u64)),
            Kind::Listed { ids, .. } => Box::new(ids.iter().copied()),
        }
    }
}

/// The error of more rows than a table can have.
pub(super) fn too_many(rows: usize) -> Error {
    Error::usage(format!("{rows} embeddings exceed 32-bit rows")).hint("partition the graph first")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_kinds_find_the_rows_of_their_ids() {
        let own = |id: u64| id % 3 == 1 || (600..900).contains(&id);
        let ids: Vec<u64> = (0..2000).filter(|&id| own(id)).collect();
        let consecutive: Vec<u64> = (7..40).collect();
        let all = [
            (Ids::ascending(2000, own), ids.clone()),
            (Ids::listed(ids.clone()).unwrap(), ids),
            (Ids::ascending(50, |id| (7..40).contains(&id)), consecutive.clone()),
            (Ids::range(7..40), consecutive),
            (Ids::ascending(9, |_| false), Vec::new()),
        ];
        for (found, expected) in all {
            assert_eq!(found.iter().collect::<Vec<_>>(), expected);
            assert_eq!((found.len(), found.is_empty()), (expected.len(), expected.is_empty()));
            for (row, &id) in expected.iter().enumerate() {
                assert_eq!(found.id(row), id, "row {row}");
            }
            for id in 0..2100 {
                assert_eq!(found.row(id), expected.iter().position(|&own| own == id), "{id}");
                assert_eq!(found.below(id), expected.partition_point(|&own| own < id), "{id}");
            }
        }
        assert!(matches!(Ids::ascending(50, |id| id > 3).0, Kind::Range(_)), "no bits");
    }

    #[test]
    fn a_repeated_id_is_an_error() {
        let error = Ids::listed(vec![4, 2, 4]).unwrap_err().to_string();
        assert!(error.contains("duplicate node 4"), "{error}");
    }
}
