//! Sources of rows that are added up, and what adds a row.

use std::ops::Range;

use super::prefetch;

/// Rows of numbers, each of [`RowSource::cols`] values once it is read.
pub(crate) trait RowSource: Sync {
    /// Values of a row.
    fn cols(&self) -> usize;

    /// Bytes of all rows as they are stored.
    fn bytes(&self) -> usize;

    /// Bytes from one row to the next.
    fn row_bytes(&self) -> usize;

    /// Bytes of a value.
    fn value_bytes(&self) -> usize;

    /// How many entries ahead rows are fetched into cache.
    fn ahead(&self) -> usize;

    /// Memory that [`RowSource::add`] takes.
    fn scratch(&self) -> Vec<f32>;

    /// Fetches a row into cache.
    fn prefetch(&self, row: usize);

    /// `out += weight * row`, or `out = weight * row` if `fresh`.
    fn add(&self, out: &mut [f32], row: usize, weight: f32, fresh: bool, scratch: &mut [f32]);

    /// Adds the rows of `entries` of the indices, each times its weight, to `out`.
    #[inline(always)]
    fn add_all(
        &self,
        out: &mut [f32],
        entries: Range<usize>,
        indices: &[u32],
        weight: impl Fn(usize) -> f32,
        scratch: &mut [f32],
    ) {
        for entry in entries {
            self.add(out, indices[entry] as usize, weight(entry), false, scratch);
        }
    }
}

/// Values of a row that are added up in registers.
const TILE: usize = 64;
/// Entries whose rows are added up tile by tile at a time.
const RUN: usize = 32;

/// Offsets of a compressed sparse structure.
pub(crate) trait Offset: Copy + Sync {
    /// As an index.
    fn at(self) -> usize;
}

impl Offset for u32 {
    #[inline(always)]
    fn at(self) -> usize {
        self as usize
    }
}

impl Offset for u64 {
    #[inline(always)]
    fn at(self) -> usize {
        self as usize
    }
}

/// Additional rows for the first outputs: the rows, their number, and the weight of each.
pub(crate) type Own<'a> = (Rows<'a>, usize, &'a (dyn Fn(usize) -> f32 + Sync));

/// Rows of `cols` values, `stride` apart.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a> {
    pub(crate) data: &'a [f32],
    pub(crate) stride: usize,
    pub(crate) cols: usize,
}

impl<'a> Rows<'a> {
    /// Adjacent rows.
    pub(crate) fn new(data: &'a [f32], cols: usize) -> Self {
        Self { data, stride: cols, cols }
    }

    #[inline(always)]
    pub(crate) fn get(&self, row: usize) -> &'a [f32] {
        &self.data[row * self.stride..row * self.stride + self.cols]
    }
}

impl RowSource for Rows<'_> {
    fn cols(&self) -> usize {
        self.cols
    }

    fn bytes(&self) -> usize {
        size_of_val(self.data)
    }

    fn row_bytes(&self) -> usize {
        self.stride * size_of::<f32>()
    }

    fn value_bytes(&self) -> usize {
        size_of::<f32>()
    }

    fn ahead(&self) -> usize {
        8
    }

    fn scratch(&self) -> Vec<f32> {
        Vec::new()
    }

    #[inline(always)]
    fn prefetch(&self, row: usize) {
        prefetch(self.get(row));
    }

    #[inline(always)]
    fn add(&self, out: &mut [f32], row: usize, weight: f32, fresh: bool, _: &mut [f32]) {
        add_scaled(out, self.get(row), weight, fresh);
    }

    #[inline(always)]
    fn add_all(
        &self,
        out: &mut [f32],
        entries: Range<usize>,
        indices: &[u32],
        weight: impl Fn(usize) -> f32,
        _: &mut [f32],
    ) {
        // Sums stay in registers, tile by tile, and the rows of a run in the first cache from one tile to the next.
        let mut weights = [0.0; RUN];
        for begin in entries.clone().step_by(RUN) {
            let run = &indices[begin..entries.end.min(begin + RUN)];
            for (i, to) in weights.iter_mut().enumerate().take(run.len()) {
                *to = weight(begin + i);
            }
            let mut tiles = out.chunks_exact_mut(TILE);
            let mut col = 0;
            for tile in &mut tiles {
                let mut sums = [0.0; TILE];
                sums.copy_from_slice(tile);
                for (&row, weight) in run.iter().zip(weights) {
                    for (sum, value) in sums.iter_mut().zip(&self.get(row as usize)[col..][..TILE])
                    {
                        *sum += weight * value;
                    }
                }
                tile.copy_from_slice(&sums);
                col += TILE;
            }
            let rest = tiles.into_remainder();
            if !rest.is_empty() {
                for (&row, weight) in run.iter().zip(weights) {
                    add_scaled(rest, &self.get(row as usize)[col..], weight, false);
                }
            }
        }
    }
}

/// `out += w * row`, or `out = w * row` if `fresh`.
#[inline(always)]
pub(crate) fn add_scaled(out: &mut [f32], row: &[f32], w: f32, fresh: bool) {
    if fresh {
        for (o, v) in out.iter_mut().zip(row) {
            *o = w * v;
        }
    } else {
        for (o, v) in out.iter_mut().zip(row) {
            *o += w * v;
        }
    }
}
