//! Edge buckets read into memory, range by range.

use std::fs::File;
use std::path::{Path, PathBuf};

use gnarl_common::error::{Context, Error, Result, ResultExt};
use gnarl_common::npy::NpyHeader;
use gnarl_common::{Buf, read_checked};
use gnarl_graph::Column;

use super::{BucketsType, EdgeBuckets};

/// The buckets of an edge type, which are read and checked one by one.
#[derive(Debug)]
pub struct BucketFiles {
    parts: usize,
    offsets: Buf<u64>,
    /// CRC-32 of each bucket in each column.
    checksums: Buf<u32>,
    /// Values of a row of checksums.
    width: usize,
    ends: [Values; 2],
}

/// A column of 32-bit values, and its place among the checksums.
#[derive(Debug)]
struct Values {
    path: PathBuf,
    file: File,
    start: u64,
    place: usize,
}

/// A bucket in memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LoadedBucket {
    /// Source of each edge: its row among the nodes of its type that the first part owns.
    pub src: Vec<u32>,
    /// Destination of each edge, likewise in the second part; ascending, and for each the sources ascend.
    pub dst: Vec<u32>,
}

impl LoadedBucket {
    /// Bytes read for it.
    pub fn num_bytes(&self) -> u64 {
        8 * self.src.len() as u64
    }
}

impl EdgeBuckets {
    /// The files of an edge type's buckets, see [`EdgeBuckets::edge_type`].
    ///
    /// # Errors
    /// If there is no such type, a file is missing, or the buckets are of version 1, which are not sorted.
    pub fn files(&self, edge_type: usize) -> Result<BucketFiles> {
        let dir = self.dir();
        let of_type = self.manifest().edge_types.get(edge_type).ok_or_else(|| {
            Error::usage(format!("{}: no buckets of edge type {edge_type}", dir.display()))
        })?;
        if self.manifest().version < 2 {
            let message = format!("{}: buckets of version 1 are not sorted", dir.display());
            return Err(
                Error::usage(message).hint("partition the graph again with this version of gnarl")
            );
        }
        let column = |name: &str| {
            let lacks = || Error::invalid(format!("{}: no column {name}", dir.display()));
            self.column(edge_type, name)?.ok_or_else(lacks)
        };
        let checksums = column("checksums")?;
        let parts = self.manifest().parts;
        if checksums.rows() != parts * parts {
            let rows = checksums.rows();
            let message = format!("{}: {rows} checksums for {parts} parts", dir.display());
            return Err(Error::invalid(message));
        }
        // What says where buckets are and whether they are whole is not taken on trust.
        let offsets = column("offsets")?;
        let verified = offsets.verify().and_then(|()| checksums.verify());
        verified.while_doing(|| format!("opening edge buckets {}", dir.display()))?;
        let offsets = offsets.values::<u64>()?;
        if !offsets.is_sorted() {
            let message = format!("{}: offsets of buckets do not ascend", dir.display());
            return Err(Error::invalid(message));
        }
        Ok(BucketFiles {
            parts,
            offsets,
            width: checksums.width(),
            checksums: checksums.values()?,
            ends: [values(dir, of_type, "src", &column)?, values(dir, of_type, "dst", &column)?],
        })
    }
}

/// The file of a column; its place is that among the columns with a row per edge.
fn values(
    dir: &Path,
    of_type: &BucketsType,
    name: &str,
    column: &dyn Fn(&str) -> Result<Column>,
) -> Result<Values> {
    // Opening it as a column checks its size and its type.
    column(name)?.values::<u32>()?;
    let rows = of_type.columns.iter().filter(|c| c.name != "offsets" && !c.name.contains('.'));
    let (place, spec) = rows.enumerate().find(|(_, c)| c.name == name).expect("it was opened");
    let path = dir.join(&spec.file);
    let start = NpyHeader::read(&path)?.offset;
    let file = File::open(&path).at(&path)?;
    Ok(Values { path, file, start, place })
}

impl BucketFiles {
    /// Number of edges from nodes of part `i` to nodes of part `j`.
    pub fn len(&self, i: usize, j: usize) -> usize {
        let bucket = i * self.parts + j;
        (self.offsets[bucket + 1] - self.offsets[bucket]) as usize
    }

    /// True if there is no edge in any bucket.
    pub fn is_empty(&self) -> bool {
        self.offsets.last() == Some(&0)
    }

    /// Reads the edges from nodes of part `i` to nodes of part `j`.
    ///
    /// # Errors
    /// If a file is truncated, or a checksum differs, naming the file and the bucket.
    ///
    /// # Panics
    /// If there is no such part.
    pub fn read(&self, i: usize, j: usize) -> Result<LoadedBucket> {
        assert!(i < self.parts && j < self.parts, "bucket ({i}, {j}) of {} parts", self.parts);
        let [src, dst] = [0, 1].map(|end| self.read_end(&self.ends[end], (i, j)));
        Ok(LoadedBucket { src: src?, dst: dst? })
    }

    fn read_end(&self, column: &Values, (i, j): (usize, usize)) -> Result<Vec<u32>> {
        let bucket = i * self.parts + j;
        let mut values = vec![0u32; self.len(i, j)];
        let start = column.start + 4 * self.offsets[bucket];
        let bytes = bytemuck::cast_slice_mut(&mut values);
        let found = read_checked(&column.file, &column.path, start, bytes)?;
        if found == self.checksums[bucket * self.width + column.place] {
            return Ok(values);
        }
        let path = column.path.display();
        Err(Error::invalid(format!("{path}: bucket ({i}, {j}): checksum differs")).hint(
            "the file was damaged or changed after it was written; partition the graph again",
        ))
    }
}
