//! Ids of the rows of a table.

use std::ops::Range;
use std::sync::Arc;

use gnarl_common::{Error, IdMap, Result};
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
    /// Ids of some parts, in the order of parts.
    InParts { map: Arc<IdMap>, parts: Range<usize> },
    /// Ids in any order.
    Listed { ids: Vec<u64>, rows: HashMap<u64, u32> },
}

/// Nodes whose rows are held together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Nodes {
    /// Consecutive ids, of a table whose ids ascend.
    Ids(Range<u64>),
    /// Those of a part, of a table in the order of parts.
    Part(usize),
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

    /// The ids that `map` puts into `parts`, one part after the other, ascending in each: nothing beside the map.
    ///
    /// # Panics
    /// If there are no such parts.
    pub fn in_parts(map: Arc<IdMap>, parts: Range<usize>) -> Self {
        assert!(parts.start <= parts.end && parts.end <= map.parts(), "{parts:?}");
        Self(Kind::InParts { map, parts })
    }

    /// Returns whether rows are in the order of their ids.
    pub fn ascend(&self) -> bool {
        matches!(self.0, Kind::Range(_) | Kind::Ascending(..))
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
            Kind::InParts { map, parts } => {
                (map.starts()[parts.end] - map.starts()[parts.start]) as usize
            }
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
            Kind::InParts { map, parts } => {
                let place = usize::try_from(id).ok().filter(|&place| place < map.len())?;
                let own = parts.contains(&map.part(place));
                own.then(|| (map.new_id(place) - map.starts()[parts.start]) as usize)
            }
            Kind::Listed { rows, .. } => rows.get(&id).map(|&row| row as usize),
        }
    }

    /// The id of a row. In the order of parts it takes time in proportion to all ids.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn id(&self, row: usize) -> u64 {
        assert!(row < self.len(), "row {row} of {}", self.len());
        match &self.0 {
            Kind::Range(ids) => ids.start + row as u64,
            Kind::Ascending(bits, _) => bits.select1(row) as u64,
            Kind::InParts { .. } => self.iter().nth(row).unwrap_or_default(),
            Kind::Listed { ids, .. } => ids[row],
        }
    }

    /// The rows of `nodes`; none if they are not consecutive here.
    pub fn rows_of(&self, nodes: &Nodes) -> Range<usize> {
        match (&self.0, nodes) {
            (Kind::Range(own), Nodes::Ids(ids)) => {
                let row = |id: u64| (id.clamp(own.start, own.end) - own.start) as usize;
                row(ids.start)..row(ids.end)
            }
            (Kind::Ascending(bits, _), Nodes::Ids(ids)) => {
                let row = |id: u64| bits.rank1((id as usize).min(bits.len()));
                row(ids.start)..row(ids.end)
            }
            (Kind::InParts { map, parts }, Nodes::Part(part)) if parts.contains(part) => {
                let row = |part: usize| (map.starts()[part] - map.starts()[parts.start]) as usize;
                row(*part)..row(*part + 1)
            }
            _ => 0..0,
        }
    }

    /// The ids, in the order of rows. In the order of parts it takes a pass over all ids for each part.
    pub fn iter(&self) -> Box<dyn Iterator<Item = u64> + '_> {
        match &self.0 {
            Kind::Range(ids) => Box::new(ids.clone()),
            Kind::Ascending(bits, _) => Box::new(bits.iter1().map(|place| place as u64)),
            Kind::InParts { map, parts } => {
                Box::new(parts.clone().flat_map(move |part| map.ids_of(part)))
            }
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
                let below = |id: u64| expected.partition_point(|&own| own < id);
                let rows = found.rows_of(&Nodes::Ids(id..id + 9));
                let consecutive = if found.ascend() { below(id)..below(id + 9) } else { 0..0 };
                assert_eq!(rows, consecutive, "{id}");
            }
        }
        assert!(matches!(Ids::ascending(50, |id| id > 3).0, Kind::Range(_)), "no bits");
    }

    #[test]
    fn rows_in_the_order_of_parts_are_those_of_a_part_together() {
        let of: Vec<u32> = (0..700u32).map(|id| id * id % 7 % 5).collect();
        let map = Arc::new(IdMap::new(5, &of).unwrap());
        for parts in [0..5, 1..3, 4..5, 2..2] {
            let found = Ids::in_parts(map.clone(), parts.clone());
            let ids = |part: usize| (0..700u64).filter(move |&id| id * id % 7 % 5 == part as u64);
            let expected: Vec<u64> = parts.clone().flat_map(ids).collect();
            assert_eq!(found.iter().collect::<Vec<_>>(), expected);
            assert_eq!((found.len(), found.ascend()), (expected.len(), false));
            for id in 0..710 {
                assert_eq!(found.row(id), expected.iter().position(|&own| own == id), "{id}");
            }
            if let Some(&last) = expected.last() {
                assert_eq!(found.id(expected.len() - 1), last);
            }
            for part in 0..5 {
                let rows = found.rows_of(&Nodes::Part(part));
                let own: Vec<u64> = ids(part).filter(|_| parts.contains(&part)).collect();
                assert_eq!(expected[rows], own, "part {part}");
            }
            assert!(found.rows_of(&Nodes::Ids(0..700)).is_empty());
        }
    }

    #[test]
    fn a_repeated_id_is_an_error() {
        let error = Ids::listed(vec![4, 2, 4]).unwrap_err().to_string();
        assert!(error.contains("duplicate node 4"), "{error}");
    }
}
