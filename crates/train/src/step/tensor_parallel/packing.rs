//! Packing of rows and columns into messages, on all threads.

use std::ops::Range;

use gnarl_nn::Tensor;
use rayon::prelude::*;

/// Rows per task.
const ROWS: usize = 512;
/// Values per task.
const VALUES: usize = 1 << 15;
/// Bytes of a value.
const BYTES: usize = size_of::<f32>();

/// Some columns of all rows.
pub fn pack(rows: &Tensor, columns: Range<usize>) -> Vec<u8> {
    fill(rows.rows(), columns.len(), |row| &rows.row(row)[columns.clone()])
}

/// Some rows.
pub fn pack_some(rows: &Tensor, chosen: &[u32]) -> Vec<u8> {
    fill(chosen.len(), rows.cols(), |at| rows.row(chosen[at] as usize))
}

/// All values.
pub fn bytes(values: &[f32]) -> Vec<u8> {
    let mut bytes = vec![0; values.len() * BYTES];
    let parts = bytes.par_chunks_mut(VALUES * BYTES).zip(values.par_chunks(VALUES));
    parts.for_each(|(bytes, values)| bytes.copy_from_slice(bytemuck::cast_slice(values)));
    bytes
}

/// `count` rows of `width` values.
fn fill<'a>(count: usize, width: usize, row: impl Fn(usize) -> &'a [f32] + Sync) -> Vec<u8> {
    let mut bytes = vec![0; count * width * BYTES];
    if width == 0 {
        return bytes;
    }
    let parts = bytes.par_chunks_mut(ROWS * width * BYTES).enumerate();
    parts.for_each(|(part, bytes)| {
        for (at, bytes) in bytes.chunks_exact_mut(width * BYTES).enumerate() {
            bytes.copy_from_slice(bytemuck::cast_slice(row(part * ROWS + at)));
        }
    });
    bytes
}

/// Sets `out` to the values of all messages, one after the other; bytes need no alignment.
pub fn write(mut out: &mut [f32], messages: &[Vec<u8>]) {
    for bytes in messages {
        let (own, rest) = out.split_at_mut(bytes.len() / BYTES);
        let parts = own.par_chunks_mut(VALUES).zip(bytes.par_chunks(VALUES * BYTES));
        parts.for_each(|(out, bytes)| decode(out, bytes));
        out = rest;
    }
}

/// Sets some columns of all rows.
pub fn place(rows: &mut Tensor, columns: Range<usize>, bytes: &[u8]) {
    each_row(rows, columns, bytes, decode);
}

/// Adds to some columns of all rows.
pub fn add_columns(rows: &mut Tensor, columns: Range<usize>, bytes: &[u8]) {
    each_row(rows, columns, bytes, add_all);
}

/// Adds to all values.
pub fn add(sums: &mut [f32], bytes: &[u8]) {
    let parts = sums.par_chunks_mut(VALUES).zip(bytes.par_chunks(VALUES * BYTES));
    parts.for_each(|(sums, bytes)| add_all(sums, bytes));
}

fn each_row(
    rows: &mut Tensor,
    columns: Range<usize>,
    bytes: &[u8],
    of: impl Fn(&mut [f32], &[u8]) + Sync,
) {
    let cols = rows.cols();
    let width = columns.len() * BYTES;
    if width == 0 {
        return;
    }
    let parts = rows.data_mut().par_chunks_mut(ROWS * cols).zip(bytes.par_chunks(ROWS * width));
    parts.for_each(|(rows, bytes)| {
        for (row, bytes) in rows.chunks_exact_mut(cols).zip(bytes.chunks_exact(width)) {
            of(&mut row[columns.clone()], bytes);
        }
    });
}

fn decode(out: &mut [f32], bytes: &[u8]) {
    for (value, bytes) in out.iter_mut().zip(bytes.as_chunks().0) {
        *value = f32::from_le_bytes(*bytes);
    }
}

fn add_all(sums: &mut [f32], bytes: &[u8]) {
    for (sum, term) in sums.iter_mut().zip(bytes.as_chunks().0) {
        *sum += f32::from_le_bytes(*term);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_and_rows_come_back_from_messages() {
        let count = 2 * ROWS + 7;
        let values: Vec<f32> = (0..count * 5).map(|value| value as f32).collect();
        let rows = Tensor::from_vec(count, 5, values.clone());
        let left = pack(&rows, 0..2);
        let right = pack(&rows, 2..5);
        let mut back = Tensor::zeros(count, 5);
        place(&mut back, 2..5, &right);
        place(&mut back, 0..2, &left);
        assert_eq!(back, rows);
        add_columns(&mut back, 0..2, &left);
        assert_eq!(
            back.row(count - 1)[..3],
            [2.0 * values[count * 5 - 5], 2.0 * values[count * 5 - 4], values[count * 5 - 3]]
        );
        let some = [count as u32 - 1, 3];
        let mut chosen = vec![0.0; 10];
        write(&mut chosen, &[pack_some(&rows, &some[..1]), pack_some(&rows, &some[1..])]);
        assert_eq!(chosen[..5], *rows.row(count - 1));
        assert_eq!(chosen[5..], *rows.row(3));
        add(&mut chosen, &bytes(&[1.0; 10]));
        assert_eq!(chosen[9], rows.row(3)[4] + 1.0);
        assert!(pack(&rows, 2..2).is_empty());
    }
}
