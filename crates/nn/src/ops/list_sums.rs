//! Sums and maxima over lists of a table's rows, without a tape: message passing of inference, where sources are read
//! where they are instead of being copied into a block first.

use gnarl_common::Stored;
use half::{bf16, f16};
use rayon::prelude::*;

use crate::Tensor;
use crate::kernel::gather::gather_rows;
use crate::kernel::row_blocks;
use crate::kernel::row_source::Rows;
use crate::kernel::widen::{Widen, Widened};

/// Rows of `cols` values that begin `stride` values apart.
#[derive(Debug, Clone, Copy)]
pub struct RowTable<'a> {
    data: Stored<'a>,
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
        Self { data: Stored::F32(data), stride, cols }
    }

    /// Rows of `cols` values as they are stored.
    pub fn stored(data: Stored<'a>, cols: usize) -> Self {
        Self { data, stride: cols, cols }
    }

    /// The rows, which are `f32`.
    ///
    /// # Panics
    /// If they are not.
    pub(super) fn wide(self) -> Rows<'a> {
        let Stored::F32(data) = self.data else { panic!("rows of other values than f32") };
        Rows { data, stride: self.stride, cols: self.cols }
    }

    /// Returns true if sums over `lists` of `entries` in all read the rows by row blocks: where rows exceed the caches and
    /// lists are long.
    pub fn is_read_by_row_blocks(&self, lists: usize, entries: usize) -> bool {
        let bytes = match self.data {
            Stored::F32(data) => size_of_val(data),
            Stored::F16(data) => size_of_val(data),
            Stored::Bf16(data) => size_of_val(data),
        };
        row_blocks::pay(bytes, self.cols, lists, entries)
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        let values = match self.data {
            Stored::F32(data) => data.len(),
            Stored::F16(data) => data.len(),
            Stored::Bf16(data) => data.len(),
        };
        values.checked_div(self.stride).unwrap_or(0)
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
    match factors {
        Factors::None => weighted(table, lists, |_, _| 1.0),
        Factors::OfList(factors) => weighted(table, lists, |_, list| factors[list]),
        Factors::OfEntry(factors) => weighted(table, lists, |entry, _| factors[entry]),
    }
}

fn weighted(
    table: RowTable<'_>,
    lists: RowLists<'_>,
    weight: impl Fn(usize, usize) -> f32 + Sync,
) -> Tensor {
    let RowTable { data, stride, cols } = table;
    let mut out = Tensor::scratch(lists.len(), cols);
    let (both, sums) = ((lists.indptr, lists.rows), out.data_mut());
    match data {
        Stored::F32(data) => {
            gather_rows(sums, 0, both, Rows { data, stride, cols }, weight, None);
        }
        Stored::F16(data) => gather_rows(sums, 0, both, Widened { data, cols }, weight, None),
        Stored::Bf16(data) => gather_rows(sums, 0, both, Widened { data, cols }, weight, None),
    }
    out
}

/// The largest value of each column over a list's rows; zeros for an empty list.
///
/// # Panics
/// If there are fewer rows.
pub fn max(table: RowTable<'_>, lists: RowLists<'_>) -> Tensor {
    let RowTable { data, stride, cols } = table;
    match data {
        Stored::F32(data) => {
            let rows = Rows { data, stride, cols };
            largest(cols, lists, |row, wide| wide.copy_from_slice(rows.get(row)))
        }
        Stored::F16(data) => {
            largest(cols, lists, |row, wide| f16::widen(&data[row * cols..][..cols], wide))
        }
        Stored::Bf16(data) => {
            largest(cols, lists, |row, wide| bf16::widen(&data[row * cols..][..cols], wide))
        }
    }
}

/// The largest values of rows that `read` copies.
fn largest(cols: usize, lists: RowLists<'_>, read: impl Fn(usize, &mut [f32]) + Sync) -> Tensor {
    let mut out = Tensor::zeros(lists.len(), cols);
    if cols == 0 {
        return out;
    }
    let each = out.data_mut().par_chunks_mut(cols).enumerate().with_min_len(256);
    each.for_each_init(
        || vec![0.0; cols],
        |wide, (list, out)| {
            let entries = lists.indptr[list] as usize..lists.indptr[list + 1] as usize;
            for (n, &row) in lists.rows[entries].iter().enumerate() {
                if n == 0 {
                    read(row as usize, out);
                    continue;
                }
                read(row as usize, wide);
                for (out, &value) in out.iter_mut().zip(&*wide) {
                    *out = if value > *out { value } else { *out };
                }
            }
        },
    );
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
    fn stored_rows_give_what_wide_ones_do() {
        let values: Vec<f32> = (0..60).map(|i| (i as f32 * 0.37).sin()).collect();
        let half: Vec<f16> = values.iter().map(|&v| f16::from_f32(v)).collect();
        let upper: Vec<bf16> = values.iter().map(|&v| bf16::from_f32(v)).collect();
        let of_half: Vec<f32> = half.iter().map(|v| v.to_f32()).collect();
        let of_upper: Vec<f32> = upper.iter().map(|v| v.to_f32()).collect();
        let lists = RowLists { indptr: &[0, 3, 3, 4], rows: &[2, 0, 1, 2] };
        for (stored, wide) in [(Stored::F16(&half), &of_half), (Stored::Bf16(&upper), &of_upper)] {
            let (stored, wide) = (RowTable::stored(stored, 20), RowTable::new(wide, 20, 20));
            assert_eq!(stored.rows(), 3);
            for factors in [Factors::None, Factors::OfEntry(&[0.3, 1.0, -2.0, 0.7])] {
                let found = sum(stored, lists, factors);
                assert_eq!(found.data(), sum(wide, lists, factors).data());
            }
            assert_eq!(max(stored, lists).data(), max(wide, lists).data());
        }
    }

    #[test]
    fn maxima_are_of_listed_rows_alone() {
        let table = RowTable::new(&TABLE, 2, 2);
        assert_eq!(max(table, LISTS).data(), [2.0, 9.0, 0.0, 0.0, 2.0, 9.0]);
        let below_zero = RowLists { indptr: &[0, 1], rows: &[2] };
        assert_eq!(max(RowTable::new(&TABLE, 2, 1), below_zero).data(), [-4.0]);
    }
}
