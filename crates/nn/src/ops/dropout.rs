//! Dropout with masks keyed by node, not by position in a batch: a node gets the same mask on
//! whatever rank, worker or block it appears.

use std::sync::Arc;

use gnarl_common::rng::Key;
use rayon::prelude::*;

use crate::kernel::multiversion;
use crate::kernel::spans::over_values;
use crate::{Tape, Tensor, Var};

/// Rows per task.
const ROWS: usize = 64;

/// A dropout mask.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mask {
    key: Key,
    /// Draws below this threshold are dropped.
    threshold: u32,
    /// Factor of the values that are not dropped.
    pub(crate) keep_scale: f32,
}

impl Mask {
    /// A mask that drops with probability `p`.
    ///
    /// # Panics
    /// If `p` is not in `[0, 1)`: configurations are checked where they are read.
    pub(crate) fn new(key: Key, p: f32) -> Self {
        assert!((0.0..1.0).contains(&p), "dropout probability {p}");
        let threshold = (p as f64 * (1u64 << 32) as f64) as u32;
        Self { key, threshold, keep_scale: 1.0 / (1.0 - p) }
    }

    /// The mask of a sub-stream.
    pub(crate) fn narrowed(&self, word: u64) -> Self {
        Self { key: self.key.with(word), ..*self }
    }

    /// The stream of one row.
    #[inline(always)]
    pub(crate) fn row(&self, id: u64) -> u64 {
        self.key.with(id).bits()
    }

    /// 0 or the scale of kept values, for column `col` of a row's stream.
    #[inline(always)]
    pub(crate) fn factor(&self, row: u64, col: u32) -> f32 {
        let draw = hash(row as u32 ^ col.wrapping_mul(0x9e37_79b9), (row >> 32) as u32);
        if draw < self.threshold { 0.0 } else { self.keep_scale }
    }

    /// `x *= mask` for rows with the given ids.
    fn apply_in_place(&self, x: &mut Tensor, ids: &[u64]) {
        let cols = x.cols();
        if cols == 0 {
            return;
        }
        let _span = over_values("dropout", x.data().len());
        let chunks = x.data_mut().par_chunks_mut(ROWS * cols).zip(ids.par_chunks(ROWS));
        chunks.for_each(|(x, ids)| mask_rows(x, None, ids, cols, self));
    }

    /// `out = x * mask` for rows with the given ids, `cols` wide.
    pub(crate) fn apply(&self, out: &mut [f32], x: &[f32], ids: &[u64], cols: usize) {
        if cols == 0 {
            return;
        }
        let _span = over_values("dropout", x.len());
        let chunks = out.par_chunks_mut(ROWS * cols).zip(x.par_chunks(ROWS * cols));
        chunks.zip(ids.par_chunks(ROWS)).for_each(|((out, x), ids)| {
            mask_rows(out, Some(x), ids, cols, self);
        });
    }
}

/// Mixes 32 bits twice, keyed in between; two multiplications, so that loops vectorize.
#[inline(always)]
fn hash(x: u32, key: u32) -> u32 {
    let x = (x ^ (x >> 16)).wrapping_mul(0x7feb_352d);
    let x = (x ^ (x >> 15) ^ key).wrapping_mul(0x846c_a68b);
    x ^ (x >> 16)
}

multiversion! {
    /// `out *= mask`, or `out = x * mask`, for whole rows of `cols` values.
    pub(crate) fn mask_rows(
        out: &mut [f32],
        x: Option<&[f32]>,
        ids: &[u64],
        cols: usize,
        mask: &Mask,
    ) {
        for (i, (out, &id)) in out.chunks_exact_mut(cols).zip(ids).enumerate() {
            let row = mask.row(id);
            if let Some(x) = x {
                let x = &x[i * cols..(i + 1) * cols];
                for (c, (o, v)) in out.iter_mut().zip(x).enumerate() {
                    *o = v * mask.factor(row, c as u32);
                }
            } else {
                for (c, o) in out.iter_mut().enumerate() {
                    *o *= mask.factor(row, c as u32);
                }
            }
        }
    }
}

impl<'b> Tape<'b> {
    /// Drops values with probability `p` and scales the others by 1 / (1 - p). `ids` holds the
    /// dataset ids of the nodes that the rows belong to (a longer slice is cut). Does nothing
    /// outside training.
    ///
    /// # Panics
    /// If there are fewer ids than rows, or `p` is not in `[0, 1)`.
    pub fn dropout(&mut self, x: Var, p: f32, ids: &'b [u64]) -> Var {
        let Some(key) = self.next_key().filter(|_| p != 0.0) else { return x };
        let mask = Mask::new(key, p);
        let (rows, cols) = self.shape(x);
        let ids = &ids[..rows];
        if let Some((sparse, _)) = self.sparse_value(x) {
            let mut values = sparse.values()[..sparse.indptr()[rows] as usize].to_vec();
            for (r, &id) in ids.iter().enumerate() {
                let stream = mask.row(id);
                for e in sparse.indptr()[r] as usize..sparse.indptr()[r + 1] as usize {
                    values[e] *= mask.factor(stream, sparse.indices()[e]);
                }
            }
            return self.push_sparse(Arc::new(sparse.with_values(rows, values)), rows);
        }
        let mut y = Tensor::scratch(rows, cols);
        mask.apply(y.data_mut(), self.value(x).data(), ids, cols);
        self.push_dropped(x, y, mask, ids)
    }

    /// As [`Tape::dropout`] for the last use of dense `x`: reuses its buffer unless it is shared.
    /// `x` is released.
    pub(crate) fn dropout_last(&mut self, x: Var, p: f32, ids: &'b [u64]) -> Var {
        let Some(key) = self.next_key().filter(|_| p != 0.0) else { return x };
        let mask = Mask::new(key, p);
        let mut y = self.take(x);
        let ids = &ids[..y.rows()];
        mask.apply_in_place(&mut y, ids);
        self.push_dropped(x, y, mask, ids)
    }

    fn push_dropped(&mut self, x: Var, y: Tensor, mask: Mask, ids: &'b [u64]) -> Var {
        self.push(y, self.needs_grad(x), move |grads, mut grad| {
            mask.apply_in_place(&mut grad, ids);
            grads.add(x, grad);
        })
    }
}
