//! Lists of a part's nodes from old lists and from buckets.

use gnarl_common::{Divisor, Error, Result};
use gnarl_graph::Csc;
use gnarl_partition::LoadedBucket;
use rayon::prelude::*;

/// Lists that one task merges.
const LISTS: usize = 4096;

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
    pub fn lists(&self, rows: usize, ends: &mut [u64], start: u64, out: &mut [u32]) -> Result<()> {
        let (own, others) = ends.split_at_mut(rows);
        own.par_chunks_mut(LISTS)
            .enumerate()
            .for_each(|(chunk, lengths)| self.count((chunk * LISTS) as u32, lengths));
        let mut end = start;
        for value in own.iter_mut() {
            end += *value;
            *value = end;
        }
        others.fill(end);
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
            let last = ends[ends.len() - 1];
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

    /// The lists before of the nodes from `row` on, `rows` of them; none if there are none.
    fn old_lists(&self, row: u32, rows: usize) -> impl Iterator<Item = &[u32]> {
        let first = (self.first + row) as usize;
        self.old.into_iter().flat_map(move |old| {
            let indptr = old.indptr.as_slice();
            let indices = &old.indices[..];
            let mut start = indptr.get(first) as usize;
            indptr.range(first + 1..first + 1 + rows).map(move |end| {
                let list = &indices[start..end as usize];
                start = end as usize;
                list
            })
        })
    }

    /// Writes the lengths of the lists from `row` on.
    fn count(&self, row: u32, lengths: &mut [u64]) {
        let rows = lengths.len();
        for (length, list) in lengths.iter_mut().zip(self.old_lists(row, rows)) {
            *length = list.iter().filter(|&&source| self.sources.is_kept(source)).count() as u64;
        }
        for run in self.runs {
            let (_, dst) = self.run_of(run, row, rows);
            dst.iter().for_each(|&dst| lengths[(dst - row) as usize] += 1);
        }
    }

    /// Writes the lists from `row` on, which end where `ends` says, the first beginning at `start`.
    fn write(&self, row: u32, (start, ends): (u64, &[u64]), out: &mut [u32]) {
        // By edges, not by nodes: most lists are short where parts have few edges between them.
        let starts = std::iter::once(&start).chain(ends);
        let mut next: Vec<usize> =
            starts.take(ends.len()).map(|&at| (at - start) as usize).collect();
        let mut pieces = usize::from(self.old.is_some());
        for (next, list) in next.iter_mut().zip(self.old_lists(row, ends.len())) {
            for &source in list {
                if self.sources.is_kept(source) {
                    out[*next] = source;
                    *next += 1;
                }
            }
        }
        for run in self.runs {
            let (src, dst) = self.run_of(run, row, ends.len());
            pieces += usize::from(!src.is_empty());
            for (source, dst) in src.iter().zip(dst) {
                let next = &mut next[(dst - row) as usize];
                out[*next] = run.first + source;
                *next += 1;
            }
        }
        // Each piece of a list is in order by itself.
        if pieces > 1 {
            self.sort((start, ends), out);
        }
    }

    /// Sorts the lists that end where `ends` says by dataset ids.
    fn sort(&self, (start, ends): (u64, &[u64]), mut out: &mut [u32]) {
        let mut keyed = Vec::new();
        let mut before = start;
        for &end in ends {
            let (list, others) = out.split_at_mut((end - before) as usize);
            out = others;
            before = end;
            if list.len() < 2 || list.is_sorted_by_key(|&node| self.sources.ids[node as usize]) {
                continue;
            }
            keyed.clear();
            keyed.extend(list.iter().map(|&source| self.sources.keyed(source)));
            keyed.sort_unstable();
            list.iter_mut().zip(&keyed).for_each(|(out, &key)| *out = key as u32);
        }
    }
}
