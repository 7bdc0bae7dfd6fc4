//! Sums and maxima over lists of a table's rows, without a tape: message passing of inference, where sources are read
//! where they are instead of being copied into a block first.

use rayon::prelude::*;

use crate::Tensor;
use crate::kernel::gather::{Rows, gather_sum};

/// Rows of `cols` values that begin `stride` values apart.
#[derive(Debug, Clone, Copy)]
pub struct RowTable<'a> {
    data: &'a [f32],
    stride: usize,
    cols: usize,
}

impl<'a> RowTable<'a> {
    /// The first `cols` values of the rows of `stride` values in `data`.
    ///
    /// # Panics
    /// If a row has fewer values.
    pub fn new(data: &'a [f32], stride: usize, cols: usize) -> Self {
        assert!(cols <= stride, "a row has fewer values than columns are asked for");
        Self { data, stride, cols }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.data.len().checked_div(self.stride).unwrap_or(0)
    }
}

/// Lists of row numbers: that of result `i` is `rows[indptr[i]..indptr[i + 1]]`.
#[derive(Debug, Clone, Copy)]
pub struct RowLists<'a> {
    /// One offset more than there are results.
    pub indptr: &'a [u32],
    /// Numbers of rows.
    pub rows: &'a [u32],
}

impl RowLists<'_> {
    fn len(&self) -> usize {
        self.indptr.len() - 1
    }
}

/// The factor that each entry of the lists is multiplied by.
#[derive(Debug, Clone, Copy)]
pub enum Factors<'a> {
    /// 1.
    None,
    /// One for all entries of a list.
    OfList(&'a [f32]),
    /// One for each entry.
    OfEntry(&'a [f32]),
}

/// The sum of each list's rows, times their factors, in the order of the list; zeros for an empty one. The additions
/// are those of [`crate::Tape::pass`].
///
/// # Panics
/// If there are fewer rows or factors.
pub fn sum(table: RowTable<'_>, lists: RowLists<'_>, factors: Factors<'_>) -> Tensor {
    let mut out = Tensor::scratch(lists.len(), table.cols);
    let RowTable { data, stride, cols } = table;
    let (rows, both) = (Rows { data, stride, cols }, (lists.indptr, lists.rows));
    match factors {
        Factors::None => gather_sum(out.data_mut(), both, rows, |_, _| 1.0, None),
        Factors::OfList(factors) => {
            gather_sum(out.data_mut(), both, rows, |_, list| factors[list], None);
        }
        Factors::OfEntry(factors) => {
            gather_sum(out.data_mut(), both, rows, |entry, _| factors[entry], None);
        }
    }
    out
}

/// The largest value of each column over a list's rows; zeros for an empty list.
///
/// # Panics
/// If there are fewer rows.
pub fn max(table: RowTable<'_>, lists: RowLists<'_>) -> Tensor {
    let mut out = Tensor::zeros(lists.len(), table.cols);
    let RowTable { data, stride, cols } = table;
    if cols == 0 {
        return out;
    }
    let rows = Rows { data, stride, cols };
    let each = out.data_mut().par_chunks_mut(cols).enumerate().with_min_len(256);
    each.for_each(|(list, out)| {
        let entries = lists.indptr[list] as usize..lists.indptr[list + 1] as usize;
        let mut entries = lists.rows[entries].iter().map(|&row| rows.get(row as usize));
        let Some(first) = entries.next() else { return };
        out.copy_from_slice(first);
        for row in entries {
            for (out, &value) in out.iter_mut().zip(row) {
                *out = if value > *out { value } else { *out };
            }
        }
    });
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: [f32; 6] = [1.0, 9.0, 2.0, 9.0, -4.0, 9.0];
    const LISTS: RowLists<'_> = RowLists { indptr: &[0, 2, 2, 5], rows: &[0, 1, 2, 2, 1] };

    #[test]
    fn sums_have_their_factors() {
        let table = RowTable::new(&TABLE, 2, 1);
        assert_eq!(table.rows(), 3);
        assert_eq!(sum(table, LISTS, Factors::None).data(), [3.0, 0.0, -6.0]);
        let of_list = Factors::OfList(&[0.5, 7.0, 1.0]);
        assert_eq!(sum(table, LISTS, of_list).data(), [1.5, 0.0, -6.0]);
        let of_entry = Factors::OfEntry(&[1.0, 0.0, 1.0, 2.0, 3.0]);
        assert_eq!(sum(table, LISTS, of_entry).data(), [1.0, 0.0, -6.0]);
    }

    #[test]
    fn maxima_are_of_listed_rows_alone() {
        let table = RowTable::new(&TABLE, 2, 2);
        assert_eq!(max(table, LISTS).data(), [2.0, 9.0, 0.0, 0.0, 2.0, 9.0]);
        let below_zero = RowLists { indptr: &[0, 1], rows: &[2] };
        assert_eq!(max(RowTable::new(&TABLE, 2, 1), below_zero).data(), [-4.0]);
    }
}
