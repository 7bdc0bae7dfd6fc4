//! Lists of a part's nodes from old lists and from buckets.

use gnarl_common::{Divisor, Error, Result};
use gnarl_graph::Csc;
use gnarl_partition::LoadedBucket;
use rayon::prelude::*;

/// Lists that one task merges.
const LISTS: usize = 2048;

/// The parts that sources are in.
pub(super) struct Sources<'a> {
    pub stride: Divisor,
    /// True for places with the same part as before.
    pub kept: &'a [bool],
    /// Dataset id of each local node.
    pub ids: &'a [u32],
}

/// A bucket whose sources are in one place.
pub(super) struct Run {
    /// Local id of the first node of that place.
    pub first: u32,
    pub bucket: LoadedBucket,
}

/// The lists of the nodes in one place.
pub(super) struct Merge<'a> {
    pub sources: &'a Sources<'a>,
    /// The lists before, where the place has the same part.
    pub old: Option<&'a Csc>,
    /// Local id of the place's first node.
    pub first: u32,
    pub runs: &'a [Run],
}

/// Where a list ends.
pub(super) trait End: Copy + Send + Sync {
    fn new(end: u64) -> Self;
    fn get(self) -> u64;
}

impl End for u32 {
    fn new(end: u64) -> Self {
        end as u32
    }

    fn get(self) -> u64 {
        self.into()
    }
}

impl End for u64 {
    fn new(end: u64) -> Self {
        end
    }

    fn get(self) -> u64 {
        self
    }
}

impl Sources<'_> {
    #[inline(always)]
    fn is_kept(&self, node: u32) -> bool {
        self.kept[self.stride.quotient(node) as usize]
    }

    /// Sorts by dataset id.
    #[inline(always)]
    fn keyed(&self, node: u32) -> u64 {
        u64::from(self.ids[node as usize]) << 32 | u64::from(node)
    }
}

impl Merge<'_> {
    /// Writes the lists of `rows` nodes to `out`, and where each ends to `ends`, counted from `start`; the lists of further
    /// ends are empty.
    ///
    /// # Errors
    /// If the edges are not as many as `out` has room for.
    pub fn lists<E: End>(
        &self,
        rows: usize,
        ends: &mut [E],
        start: u64,
        out: &mut [u32],
    ) -> Result<()> {
        let (own, others) = ends.split_at_mut(rows);
        own.par_chunks_mut(LISTS)
            .enumerate()
            .for_each(|(chunk, lengths)| self.count((chunk * LISTS) as u32, lengths));
        let mut end = start;
        for value in own.iter_mut() {
            end += value.get();
            *value = E::new(end);
        }
        others.fill(E::new(end));
        if end - start != out.len() as u64 {
            let found = end - start;
            let room = out.len();
            let message = format!("{found} edges among parts that have {room} by their buckets");
            return Err(Error::invalid(message).hint("partition the graph again"));
        }
        let mut tasks = Vec::with_capacity(rows.div_ceil(LISTS));
        let mut left = out;
        let mut before = start;
        for (chunk, ends) in own.chunks(LISTS).enumerate() {
            let last = ends[ends.len() - 1].get();
            let (lists, others) = left.split_at_mut((last - before) as usize);
            tasks.push(((chunk * LISTS) as u32, (before, ends), lists));
            left = others;
            before = last;
        }
        tasks.into_par_iter().for_each(|(row, ends, out)| self.write(row, ends, out));
        Ok(())
    }

    /// The edges of a run into the nodes from `row` on, `rows` of them.
    fn run_of<'r>(&self, run: &'r Run, row: u32, rows: usize) -> (&'r [u32], &'r [u32]) {
        let LoadedBucket { src, dst } = &run.bucket;
        let start = dst.partition_point(|&dst| dst < row);
        let end = start + dst[start..].partition_point(|&dst| (dst as usize) < row as usize + rows);
        (&src[start..end], &dst[start..end])
    }

    /// Calls `take` with the number, counted from `row` on, and the list before of each of `rows` nodes, if there are lists before.
    #[inline(always)]
    fn old_lists(&self, row: u32, rows: usize, mut take: impl FnMut(usize, &[u32])) {
        let Some(old) = self.old else { return };
        let first = (self.first + row) as usize;
        let indptr = old.indptr.as_slice();
        let indices = &old.indices[..];
        let mut start = indptr.get(first) as usize;
        for (i, end) in indptr.range(first + 1..first + 1 + rows).enumerate() {
            take(i, &indices[start..end as usize]);
            start = end as usize;
        }
    }

    /// Writes the lengths of the lists from `row` on.
    fn count<E: End>(&self, row: u32, lengths: &mut [E]) {
        let rows = lengths.len();
        lengths.fill(E::new(0));
        self.old_lists(row, rows, |i, list| {
            let kept = list.iter().map(|&source| u64::from(self.sources.is_kept(source)));
            lengths[i] = E::new(kept.sum());
        });
        for run in self.runs {
            let (_, dst) = self.run_of(run, row, rows);
            for dst in dst {
                let length = &mut lengths[(dst - row) as usize];
                *length = E::new(length.get() + 1);
            }
        }
    }

    /// Writes the lists from `row` on, which end where `ends` says, the first beginning at `start`.
    fn write<E: End>(&self, row: u32, (start, ends): (u64, &[E]), out: &mut [u32]) {
        // By edges, not by nodes: most lists are short where parts have few edges between them. The loads of dataset ids,
        // which are all over the nodes in memory, do not wait for each other, as they would in comparisons.
        let starts = std::iter::once(start).chain(ends.iter().map(|end| end.get()));
        let mut next: Vec<usize> =
            starts.take(ends.len()).map(|at| (at - start) as usize).collect();
        let mut keyed = vec![0; out.len() + 1];
        self.old_lists(row, ends.len(), |i, list| {
            let mut at = next[i];
            for &source in list {
                // What has left is written over by what comes next: no branch to guess.
                keyed[at] = self.sources.keyed(source);
                at += usize::from(self.sources.is_kept(source));
            }
            next[i] = at;
        });
        for run in self.runs {
            let (src, dst) = self.run_of(run, row, ends.len());
            for (source, dst) in src.iter().zip(dst) {
                let next = &mut next[(dst - row) as usize];
                keyed[*next] = self.sources.keyed(run.first + source);
                *next += 1;
            }
        }
        let mut first = 0;
        for &end in ends {
            let end = (end.get() - start) as usize;
            keyed[first..end].sort_unstable();
            first = end;
        }
        out.iter_mut().zip(&keyed).for_each(|(out, &key)| *out = key as u32);
    }
}
