//! Lists of edges, filled and sorted a range of nodes at a time.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};

use gnarl_common::error::{Result, ResultExt};
use gnarl_common::npy::HEADER_LEN;
use gnarl_graph::ColumnSpec;

/// Ids read together: 256 KiB.
pub(super) const BATCH: usize = 1 << 16;

/// Rows of a u32 column in order, read through a buffer: mapped pages would count as the process's
/// memory.
pub(super) struct Words {
    path: PathBuf,
    file: BufReader<File>,
    left: u64,
    bytes: Vec<u8>,
}

impl Words {
    /// `count` rows from `start` on of a column written by this process.
    pub(super) fn open(dir: &Path, spec: &ColumnSpec, start: u64, count: u64) -> Result<Self> {
        let path = dir.join(&spec.file);
        let mut file = File::open(&path).at(&path)?;
        file.seek(SeekFrom::Start(HEADER_LEN as u64 + 4 * start)).at(&path)?;
        Ok(Self { path, file: BufReader::new(file), left: count, bytes: Vec::new() })
    }

    /// Replaces `out` by the next rows, at most [`BATCH`]; `false` at the end.
    pub(super) fn next(&mut self, out: &mut Vec<u32>) -> Result<bool> {
        let count = self.left.min(BATCH as u64) as usize;
        self.bytes.resize(4 * count, 0);
        self.file.read_exact(&mut self.bytes).at(&self.path)?;
        self.left -= count as u64;
        out.clear();
        let words = self.bytes.chunks_exact(4);
        out.extend(words.map(|b| u32::from_le_bytes(b.try_into().expect("four bytes"))));
        Ok(count > 0)
    }
}

/// Turns counts into offsets: entry `v + 1` of `counts` becomes the end of the list of `v`.
pub(super) fn accumulate(counts: &mut [u64]) {
    for v in 1..counts.len() {
        counts[v] += counts[v - 1];
    }
}

/// Consecutive ranges of nodes whose lists together have at most `most` entries, a single node's
/// excepted. `offsets` has an entry more than there are nodes.
pub(super) fn ranges(offsets: &[u64], most: u64) -> impl Iterator<Item = Range<usize>> + '_ {
    let nodes = offsets.len() - 1;
    let mut start = 0;
    std::iter::from_fn(move || {
        let first = start;
        let limit = offsets[first].saturating_add(most);
        let fits = offsets[first..].partition_point(|&offset| offset <= limit);
        start = (first + fits - 1).max(first + 1).min(nodes);
        (first < nodes).then_some(first..start)
    })
}

/// The lists of a range of nodes.
pub(super) struct Lists<'a> {
    /// Offsets of the range's nodes and the end.
    offsets: &'a [u64],
    first: usize,
    filled: Vec<u32>,
    keys: Vec<u64>,
    /// One row per key, or none at all.
    rows: Vec<u64>,
}

impl<'a> Lists<'a> {
    /// Bytes of an entry, beside 4 of its node.
    pub(super) fn entry_bytes(rows: bool) -> u64 {
        if rows { 16 } else { 8 }
    }

    pub(super) fn new(offsets: &'a [u64], range: Range<usize>, rows: bool) -> Self {
        let offsets = &offsets[range.start..=range.end];
        let count = (offsets[range.len()] - offsets[0]) as usize;
        Self {
            offsets,
            first: range.start,
            filled: vec![0; range.len()],
            keys: vec![0; count],
            rows: vec![0; if rows { count } else { 0 }],
        }
    }

    /// Adds an entry to the list of node `v`, if it is in the range.
    #[inline]
    pub(super) fn push(&mut self, v: u32, key: u64, row: u64) {
        let v = (v as usize).wrapping_sub(self.first);
        let Some(filled) = self.filled.get_mut(v) else { return };
        let slot = (self.offsets[v] - self.offsets[0]) as usize + *filled as usize;
        *filled += 1;
        self.keys[slot] = key;
        if let Some(place) = self.rows.get_mut(slot) {
            *place = row;
        }
    }

    /// Sorts every list by key, then by row.
    pub(super) fn sort(&mut self) {
        let mut pairs = Vec::new();
        for w in self.offsets.windows(2) {
            let list = (w[0] - self.offsets[0]) as usize..(w[1] - self.offsets[0]) as usize;
            let keys = &mut self.keys[list.clone()];
            let Some(rows) = self.rows.get_mut(list).filter(|rows| !rows.is_empty()) else {
                keys.sort_unstable();
                continue;
            };
            pairs.clear();
            pairs.extend(keys.iter().copied().zip(rows.iter().copied()));
            pairs.sort_unstable();
            for ((key, row), &pair) in keys.iter_mut().zip(rows).zip(&pairs) {
                (*key, *row) = pair;
            }
        }
    }

    /// Each list's keys and rows, in the order of nodes.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u64], &[u64])> {
        self.offsets.windows(2).map(|w| {
            let list = (w[0] - self.offsets[0]) as usize..(w[1] - self.offsets[0]) as usize;
            (&self.keys[list.clone()], self.rows.get(list).unwrap_or_default())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_cover_all_nodes_within_bounds() {
        let offsets = [0, 0, 5, 5, 6, 20, 21, 21];
        for most in [0, 1, 6, 100] {
            let ranges: Vec<_> = ranges(&offsets, most).collect();
            assert_eq!(ranges.iter().map(|r| r.len()).sum::<usize>(), 7, "{ranges:?}");
            assert!(ranges.windows(2).all(|w| w[0].end == w[1].start));
            let fits = |r: &Range<usize>| r.len() == 1 || offsets[r.end] - offsets[r.start] <= most;
            assert!(ranges.iter().all(fits), "{most}: {ranges:?}");
        }
        assert_eq!(super::ranges(&[0], 3).count(), 0);
    }
}
