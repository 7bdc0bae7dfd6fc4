//! Lists of a part's nodes from old lists and from buckets.

use gnarl_common::{Buf, Divisor, Error, Result};
use gnarl_graph::Csc;
use gnarl_partition::LoadedBucket;
use rayon::prelude::*;

/// Most lists that one task merges.
const LISTS: usize = 8192;
/// Edges from which on a task takes no further list.
const EDGES: usize = 1 << 18;

/// In-neighbor lists of an edge type.
#[derive(Debug, Clone)]
pub(super) struct Lists {
    pub csc: Csc,
    /// Dataset id of each source, to make the next lists by; empty where none follow.
    pub keys: Buf<u32>,
}

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
    pub old: Option<&'a Lists>,
    /// Local id of the place's first node.
    pub first: u32,
    pub runs: &'a [Run],
}

/// The end of a list.
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

    #[inline(always)]
    fn id(&self, node: u32) -> u32 {
        self.ids[node as usize]
    }
}

/// The key that sorts a source by its dataset id.
#[inline(always)]
fn keyed(id: u32, node: u32) -> u64 {
    u64::from(id) << 32 | u64::from(node)
}

impl Merge<'_> {
    /// Writes the lists of `rows` nodes to `out`, the dataset ids of the sources to `keys` unless that is empty, and where each
    /// list ends to `ends`, counted from `start`; the lists of further ends are empty.
    ///
    /// # Errors
    /// If the edges are not as many as `out` has room for.
    pub fn lists<E: End>(
        &self,
        rows: usize,
        ends: &mut [E],
        start: u64,
        (out, keys): (&mut [u32], &mut [u32]),
    ) -> Result<()> {
        let (own, others) = ends.split_at_mut(rows);
        // Few nodes with many edges are work for all threads, too.
        let lists = (rows / (4 * rayon::current_num_threads())).clamp(16, LISTS);
        own.par_chunks_mut(lists)
            .enumerate()
            .for_each(|(chunk, lengths)| self.count((chunk * lists) as u32, lengths));
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
        let mut tasks = Vec::with_capacity(rows.div_ceil(lists));
        let mut left = (out, keys);
        let mut before = start;
        let mut row = 0;
        while row < rows {
            let most = &own[row..(row + lists).min(rows)];
            // One at least: a list of more edges is a task of its own.
            let fit = most.partition_point(|end| end.get() - before < EDGES as u64);
            let ends = &most[..(fit + 1).min(most.len())];
            let last = ends[ends.len() - 1].get();
            let edges = (last - before) as usize;
            let (lists, others) = left.0.split_at_mut(edges);
            let (keys, other_keys) = left.1.split_at_mut(edges.min(left.1.len()));
            tasks.push((row as u32, (before, ends), (lists, keys)));
            left = (others, other_keys);
            before = last;
            row += ends.len();
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

    /// Calls `take` with the number, counted from `row` on, and the list before of each of `rows` nodes, with the dataset ids of
    /// the sources if these are there; not at all if there are no lists before.
    #[inline(always)]
    fn old_lists(&self, row: u32, rows: usize, mut take: impl FnMut(usize, &[u32], &[u32])) {
        let Some(Lists { csc, keys }) = self.old else { return };
        let first = (self.first + row) as usize;
        let indptr = csc.indptr.as_slice();
        let indices = &csc.indices[..];
        let keys = &keys[..];
        let mut start = indptr.get(first) as usize;
        for (i, end) in indptr.range(first + 1..first + 1 + rows).enumerate() {
            let end = end as usize;
            take(i, &indices[start..end], keys.get(start..end).unwrap_or_default());
            start = end;
        }
    }

    /// Writes the lengths of the lists from `row` on.
    fn count<E: End>(&self, row: u32, lengths: &mut [E]) {
        let rows = lengths.len();
        lengths.fill(E::new(0));
        self.old_lists(row, rows, |i, list, _| {
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

    /// Writes the lists from `row` on, which end where `ends` says, the first beginning at `start`, with the dataset ids of
    /// their sources unless `keys` is empty.
    fn write<E: End>(
        &self,
        row: u32,
        (start, ends): (u64, &[E]),
        (out, keys): (&mut [u32], &mut [u32]),
    ) {
        // By edges, not by nodes: most lists are short where parts have few edges between them.
        let starts = std::iter::once(start).chain(ends.iter().map(|end| end.get()));
        let mut next: Vec<usize> =
            starts.take(ends.len()).map(|at| (at - start) as usize).collect();
        let mut all = vec![0; out.len() + 1];
        self.old_lists(row, ends.len(), |i, list, ids| {
            let mut at = next[i];
            let mut add = |source: u32, id: u32| {
                // What has left is written over by what comes next: no branch to guess.
                all[at] = keyed(id, source);
                at += usize::from(self.sources.is_kept(source));
            };
            // With ids at hand a list before is read in sequence; ids by node are all over memory.
            if ids.is_empty() {
                list.iter().for_each(|&source| add(source, self.sources.id(source)));
            } else {
                list.iter().zip(ids).for_each(|(&source, &id)| add(source, id));
            }
            next[i] = at;
        });
        for run in self.runs {
            let (src, dst) = self.run_of(run, row, ends.len());
            for (source, dst) in src.iter().zip(dst) {
                let next = &mut next[(dst - row) as usize];
                let source = run.first + source;
                all[*next] = keyed(self.sources.id(source), source);
                *next += 1;
            }
        }
        let mut first = 0;
        for end in ends {
            let end = (end.get() - start) as usize;
            // Of a few pieces in order, which this sort merges.
            all[first..end].sort();
            first = end;
        }
        out.iter_mut().zip(&all).for_each(|(out, &key)| *out = key as u32);
        keys.iter_mut().zip(&all).for_each(|(out, &key)| *out = (key >> 32) as u32);
    }
}
