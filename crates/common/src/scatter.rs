//! Columns whose rows arrive out of order: consecutive ranges of a file, filled concurrently.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::PathBuf;

use crate::dtype::DType;
use crate::error::{Error, Result, ResultExt};
use crate::npy::{HEADER_LEN, header_bytes};

/// Writes an npy file of consecutive ranges of rows. Rows are pushed to any range at any time, and
/// keep their order within it. Rows are bytes, so that one writer serves all types of values.
///
/// Memory: the given limit, at most 256 KiB and at least 256 bytes per range with rows.
pub struct NpyScatter {
    path: PathBuf,
    file: File,
    dtype: DType,
    shape: Vec<u64>,
    row: usize,
    capacity: usize,
    ranges: Vec<Range>,
}

struct Range {
    /// Bytes of values written before this, over all ranges, and the end of the range.
    next: u64,
    end: u64,
    pending: Vec<u8>,
    crc: crc32fast::Hasher,
}

impl NpyScatter {
    /// Least bytes buffered for a range that has rows.
    pub const LEAST: u64 = 256;

    /// Creates `path` with `counts[i]` rows in range `i`, each row of the dimensions `row`.
    ///
    /// # Errors
    /// If the file cannot be made.
    pub fn create(
        path: impl Into<PathBuf>,
        dtype: DType,
        row: &[u64],
        counts: &[u64],
        memory: u64,
    ) -> Result<Self> {
        let path = path.into();
        let file = File::create(&path).at(&path)?;
        let bytes = row.iter().product::<u64>() * dtype.size() as u64;
        let each = (memory / counts.len().max(1) as u64).clamp(Self::LEAST, 1 << 18);
        let mut next = 0;
        let ranges = counts.iter().map(|count| {
            let start = next;
            next += count * bytes;
            Range { next: start, end: next, pending: Vec::new(), crc: crc32fast::Hasher::new() }
        });
        let ranges = ranges.collect();
        let mut shape = vec![counts.iter().sum()];
        shape.extend(row);
        let capacity = each.max(bytes) as usize;
        Ok(Self { path, file, dtype, shape, row: bytes as usize, capacity, ranges })
    }

    /// Bytes of a row.
    pub fn row_bytes(&self) -> usize {
        self.row
    }

    /// Appends `bytes`, one whole row, to range `range`.
    ///
    /// # Errors
    /// If the range is full already, or the disk.
    #[inline]
    pub fn push(&mut self, range: usize, bytes: &[u8]) -> Result<()> {
        debug_assert_eq!(bytes.len(), self.row);
        let pending = &mut self.ranges[range].pending;
        pending.extend_from_slice(bytes);
        if pending.len() + self.row > self.capacity { self.flush(range) } else { Ok(()) }
    }

    fn flush(&mut self, range: usize) -> Result<()> {
        let r = &mut self.ranges[range];
        let end = r.next + r.pending.len() as u64;
        if end > r.end {
            return Err(self.wrong(range, "more"));
        }
        r.crc.update(&r.pending);
        self.file.seek(SeekFrom::Start(HEADER_LEN as u64 + r.next)).at(&self.path)?;
        self.file.write_all(&r.pending).at(&self.path)?;
        r.next = end;
        r.pending.clear();
        Ok(())
    }

    /// Completes the file; returns its shape and the CRC-32 of the values.
    ///
    /// # Errors
    /// If a range lacks rows, or the disk is full.
    pub fn finish(self) -> Result<(Vec<u64>, u32)> {
        self.finish_ranges().map(|(shape, crc, _)| (shape, crc))
    }

    /// As [`NpyScatter::finish`], with the CRC-32 of the values of each range.
    ///
    /// # Errors
    /// As [`NpyScatter::finish`].
    pub fn finish_ranges(mut self) -> Result<(Vec<u64>, u32, Vec<u32>)> {
        let mut crc = crc32fast::Hasher::new();
        let mut each = Vec::with_capacity(self.ranges.len());
        for range in 0..self.ranges.len() {
            self.flush(range)?;
            if self.ranges[range].next < self.ranges[range].end {
                return Err(self.wrong(range, "fewer"));
            }
            crc.combine(&self.ranges[range].crc);
            each.push(self.ranges[range].crc.clone().finalize());
        }
        self.file.seek(SeekFrom::Start(0)).at(&self.path)?;
        self.file.write_all(&header_bytes(self.dtype, &self.shape)).at(&self.path)?;
        Ok((self.shape, crc.finalize(), each))
    }

    fn wrong(&self, range: usize, how: &str) -> Error {
        let path = self.path.display();
        Error::invalid(format!("{path}: range {range} got {how} rows than it was made for"))
            .hint("the input changed while it was read")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::npy::NpyWriter;

    #[test]
    fn ranges_fill_side_by_side() {
        let dir = tempfile::tempdir().unwrap();
        let (a, b) = (dir.path().join("a.npy"), dir.path().join("b.npy"));
        let counts = [0, 700, 3, 0, 900];
        let mut scatter = NpyScatter::create(&a, DType::U32, &[2], &counts, 0).unwrap();
        let mut rows = vec![Vec::new(); 5];
        for i in 0..900u32 {
            for range in (0..5).filter(|&r| u64::from(i) < counts[r]) {
                scatter.push(range, bytemuck::cast_slice(&[i, range as u32])).unwrap();
                rows[range].extend([i, range as u32]);
            }
        }
        let mut writer = NpyWriter::<u32>::create(&b, &[2]).unwrap();
        rows.iter().for_each(|values| writer.push(values).unwrap());
        let (shape, crc, each) = scatter.finish_ranges().unwrap();
        assert_eq!((shape, crc), writer.finish().unwrap());
        let of_rows = |values: &Vec<u32>| crc32fast::hash(bytemuck::cast_slice(values));
        assert_eq!(each, rows.iter().map(of_rows).collect::<Vec<_>>());
        assert_eq!(std::fs::read(&a).unwrap(), std::fs::read(&b).unwrap());
    }

    #[test]
    fn wrong_counts_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.npy");
        let make = || NpyScatter::create(&path, DType::U8, &[], &[1, 2], 0).unwrap();
        assert!(make().finish().unwrap_err().to_string().contains("fewer"));
        let mut full = make();
        full.push(0, &[1]).unwrap();
        full.push(0, &[2]).unwrap();
        assert!(full.finish().unwrap_err().to_string().contains("a.npy: range 0 got more"));
    }
}
