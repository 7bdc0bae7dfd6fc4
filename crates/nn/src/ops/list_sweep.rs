//! Sums and maxima over lists of rows that come by in ascending order, a chunk at a time: message passing of inference
//! over more rows than memory holds. Each list is ascending, so its rows come by in its own order, and the additions are
//! those of [`super::list_sums`].

use std::ops::Range;

use rayon::prelude::*;

use crate::Reduce;
use crate::kernel::row_source::add_scaled;
use crate::kernel::{multiversion, prefetch};

/// Lists per task.
const LISTS: usize = 256;
/// How many lists ahead rows are fetched into cache.
const AHEAD: usize = 4;
/// The row of a list that has no more entries: no table has so many.
const ENDED: u32 = u32::MAX;

/// The lists of a sweep.
pub trait SweptLists: Sync {
    /// The entries of list `list`.
    fn entries(&self, list: usize) -> &[u32];

    /// The row of an entry. Rows of a list's entries ascend.
    fn row(&self, entry: u32) -> u32;

    /// The factor of an entry, which is the one at `position` of its list. A maximum has none.
    fn factor(&self, list: usize, position: usize, entry: u32) -> f32;
}

/// A chunk of adjacent rows.
#[derive(Debug, Clone, Copy)]
pub struct Chunk<'a> {
    /// Number of its first row.
    pub first: u32,
    /// The values of its rows.
    pub values: &'a [f32],
}

/// Sums or maxima of lists, of the rows so far.
#[derive(Debug)]
pub struct ListSweep {
    how: Reduce,
    out: Vec<f32>,
    cols: usize,
    /// Of each list, the position of its next entry and that entry's row.
    next: Vec<(u32, u32)>,
    /// True if each list began with a row of its own.
    own: bool,
}

impl ListSweep {
    /// So many lists of rows of `cols` values, none of which came by: sums ([`Reduce::Sum`]) or maxima, made in `memory`.
    ///
    /// # Panics
    /// If means are asked for, which are sums with factors; if a list has 2³² entries or more.
    pub fn new(
        how: Reduce,
        lists: &impl SweptLists,
        (len, cols): (usize, usize),
        mut memory: Vec<f32>,
    ) -> Self {
        assert!(how != Reduce::Mean, "a mean is a sum with factors");
        memory.clear();
        memory.resize(len * cols, 0.0);
        Self { how, out: memory, cols, next: begin(lists, len), own: false }
    }

    /// Sums of lists that each begin with one of the `rows`, times a factor.
    ///
    /// # Panics
    /// If there is another number of rows; as [`ListSweep::new`].
    pub fn of_own(
        lists: &impl SweptLists,
        cols: usize,
        mut rows: Vec<f32>,
        factors: &[f32],
    ) -> Self {
        assert_eq!(rows.len(), cols * factors.len(), "own rows of lists");
        rows.par_chunks_mut(cols.max(1))
            .zip(factors)
            .for_each(|(row, factor)| row.iter_mut().for_each(|value| *value *= factor));
        let next = begin(lists, factors.len());
        Self { how: Reduce::Sum, out: rows, cols, next, own: true }
    }

    /// Number of lists.
    pub fn len(&self) -> usize {
        self.next.len()
    }

    /// Returns whether there are no lists.
    pub fn is_empty(&self) -> bool {
        self.next.is_empty()
    }

    /// Adds the rows of a chunk, which follows the one before.
    pub fn add(&mut self, lists: &impl SweptLists, chunk: Chunk<'_>) {
        let cols = self.cols;
        if cols == 0 {
            return;
        }
        let tasks = self.out.par_chunks_mut(LISTS * cols);
        let tasks = tasks.zip(self.next.par_chunks_mut(LISTS)).enumerate();
        let of = Of { how: self.how, own: self.own, cols };
        tasks.for_each(|(task, (out, next))| sweep(out, next, task * LISTS, lists, chunk, of));
    }

    /// The results, a row a list; `Err` has a list whose rows did not all come by, as those of a list that does not ascend.
    ///
    /// # Errors
    /// If there is such a list.
    pub fn finish(self) -> Result<Vec<f32>, usize> {
        let left = self.next.par_iter().position_first(|&(_, row)| row != ENDED);
        left.map_or(Ok(self.out), Err)
    }
}

/// The first entries of lists.
fn begin(lists: &impl SweptLists, len: usize) -> Vec<(u32, u32)> {
    let first = |list: usize| {
        let entries = lists.entries(list);
        assert!(entries.len() < ENDED as usize, "a list of too many entries");
        (0, entries.first().map_or(ENDED, |&entry| lists.row(entry)))
    };
    (0..len).into_par_iter().map(first).collect()
}

/// The results of a sweep, as its kernel needs to know them.
#[derive(Clone, Copy)]
struct Of {
    how: Reduce,
    own: bool,
    cols: usize,
}

impl Chunk<'_> {
    fn rows(self, cols: usize) -> Range<u32> {
        self.first..self.first + (self.values.len() / cols) as u32
    }
}

multiversion! {
    /// Adds a chunk to the lists from `first` on whose results are `out`.
    fn sweep(
        out: &mut [f32],
        next: &mut [(u32, u32)],
        first: usize,
        lists: &impl SweptLists,
        chunk: Chunk<'_>,
        of: Of,
    ) {
        let rows = chunk.rows(of.cols);
        let row_of = |row: u32| &chunk.values[(row - rows.start) as usize * of.cols..][..of.cols];
        for i in 0..next.len() {
            if let Some((_, ahead)) = next.get(i + AHEAD)
                && rows.contains(ahead)
            {
                prefetch(row_of(*ahead));
            }
            let (mut position, mut row) = next[i];
            if !rows.contains(&row) {
                continue;
            }
            let (list, out) = (first + i, &mut out[i * of.cols..][..of.cols]);
            let entries = lists.entries(list);
            while rows.contains(&row) {
                let at = position as usize;
                let fresh = at == 0 && !of.own;
                match of.how {
                    Reduce::Max if fresh => out.copy_from_slice(row_of(row)),
                    Reduce::Max => {
                        for (out, &value) in out.iter_mut().zip(row_of(row)) {
                            *out = if value > *out { value } else { *out };
                        }
                    }
                    _ => {
                        let factor = lists.factor(list, at, entries[at]);
                        add_scaled(out, row_of(row), factor, fresh);
                    }
                }
                position += 1;
                row = entries.get(position as usize).map_or(ENDED, |&entry| lists.row(entry));
            }
            next[i] = (position, row);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::list_sums::{self, Factors, RowLists, RowTable};
    use gnarl_common::rng::Key;

    /// Lists of rows 0 to 40 that ascend, with some of them twice, and a factor an entry.
    struct Lists {
        indptr: Vec<u32>,
        rows: Vec<u32>,
        factors: Vec<f32>,
    }

    impl Lists {
        fn some() -> Self {
            let key = Key::new(7);
            let (mut indptr, mut rows) = (vec![0], Vec::new());
            for list in 0..900u64 {
                let len = if list == 5 { 700 } else { key.below(list, 6) };
                let mut own: Vec<u32> =
                    (0..len).map(|i| key.with(list + 1).below(i, 40) as u32).collect();
                own.sort_unstable();
                rows.extend(own);
                indptr.push(rows.len() as u32);
            }
            let factors = (0..rows.len() as u64).map(|i| key.with(2).normal(i) as f32).collect();
            Self { indptr, rows, factors }
        }
    }

    impl SweptLists for Lists {
        fn entries(&self, list: usize) -> &[u32] {
            &self.rows[self.indptr[list] as usize..self.indptr[list + 1] as usize]
        }

        fn row(&self, entry: u32) -> u32 {
            entry
        }

        fn factor(&self, list: usize, position: usize, _: u32) -> f32 {
            self.factors[self.indptr[list] as usize + position]
        }
    }

    const COLS: usize = 5;

    /// Rows that pass by `rows` at a time.
    fn swept(mut sweep: ListSweep, lists: &Lists, table: &[f32], rows: usize) -> Vec<f32> {
        for (chunk, values) in table.chunks(rows * COLS).enumerate() {
            sweep.add(lists, Chunk { first: (chunk * rows) as u32, values });
        }
        sweep.finish().unwrap()
    }

    #[test]
    fn swept_rows_give_what_those_in_place_do() {
        let lists = Lists::some();
        let table: Vec<f32> = (0..40 * COLS).map(|i| (i as f32 * 0.71).sin()).collect();
        let in_place = RowTable::new(&table, COLS, COLS);
        let all = RowLists { indptr: &lists.indptr, rows: &lists.rows };
        let sums = list_sums::sum(in_place, all, Factors::OfEntry(&lists.factors));
        let maxima = list_sums::max(in_place, all);
        for rows in [1, 7, 40, 100] {
            for (how, expected) in [(Reduce::Sum, &sums), (Reduce::Max, &maxima)] {
                let sweep = ListSweep::new(how, &lists, (900, COLS), vec![7.0; 3]);
                let found = swept(sweep, &lists, &table, rows);
                assert_eq!(found, expected.data(), "{how:?} by {rows} rows");
            }
        }
    }

    #[test]
    fn lists_may_begin_with_rows_of_their_own() {
        let lists = Lists { indptr: vec![0, 1, 1], rows: vec![1], factors: vec![2.0] };
        let table: Vec<f32> = (0..2 * COLS).map(|i| i as f32).collect();
        let sweep = ListSweep::of_own(&lists, COLS, vec![10.0; 2 * COLS], &[0.5, 1.0]);
        let found = swept(sweep, &lists, &table, 1);
        assert_eq!(found[..COLS], [15.0, 17.0, 19.0, 21.0, 23.0]);
        assert_eq!(found[COLS..], [10.0; COLS]);
    }

    #[test]
    fn a_list_that_does_not_ascend_is_found() {
        let lists = Lists { indptr: vec![0, 1, 3], rows: vec![0, 1, 0], factors: vec![1.0; 3] };
        let mut sweep = ListSweep::new(Reduce::Sum, &lists, (2, 1), Vec::new());
        (0..2).for_each(|row| sweep.add(&lists, Chunk { first: row, values: &[1.0] }));
        assert_eq!(sweep.finish().unwrap_err(), 1);
    }
}
