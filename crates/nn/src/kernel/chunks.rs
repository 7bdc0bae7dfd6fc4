//! Parallel loops over chunks of buffers. They take their bodies as trait objects: a chunk is thousands of values, and
//! the code that splits a loop over threads is larger than most bodies, so that it is compiled once for all.

use rayon::prelude::*;

/// Output rows per task, of sums of gathered rows.
pub(super) const ROWS: usize = 256;

/// Calls `f` with the number of each chunk of `len` values and the chunk; the last one may be shorter.
pub(crate) fn each_chunk(out: &mut [f32], len: usize, f: &(dyn Fn(usize, &mut [f32]) + Sync)) {
    out.par_chunks_mut(len).enumerate().for_each(|(i, out)| f(i, out));
}

/// Calls `f` with the first row of each of successive `chunks`, given by their numbers of rows, and the chunk.
pub(crate) fn each_of(
    mut out: &mut [f32],
    cols: usize,
    chunks: &[usize],
    f: &(dyn Fn(usize, &mut [f32]) + Sync),
) {
    let mut first = 0;
    let mut parts = Vec::with_capacity(chunks.len());
    for rows in chunks {
        let (chunk, rest) = out.split_at_mut(rows * cols);
        parts.push((first, chunk));
        first += rows;
        out = rest;
    }
    parts.into_par_iter().for_each(|(first, chunk)| f(first, chunk));
}

/// Calls `f` with each chunk of `len` values of `out`, and the chunk of `from_len` values of `from` with the same number.
pub(crate) fn each_pair(
    (out, len): (&mut [f32], usize),
    (from, from_len): (&[f32], usize),
    f: &(dyn Fn(&mut [f32], &[f32]) + Sync),
) {
    out.par_chunks_mut(len).zip(from.par_chunks(from_len)).for_each(|(out, from)| f(out, from));
}
