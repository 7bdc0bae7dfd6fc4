//! Edge buckets read into memory, range by range.

use std::path::Path;
use std::sync::Arc;

use gnarl_common::error::{Context, Error, Result};
use gnarl_common::{Buf, DType, FileRange, Place};
use gnarl_graph::{Column, ColumnSpec, Triple};
use rayon::prelude::*;

use super::BucketsManifest;

/// The buckets of an edge type, which are read and checked one by one.
#[derive(Debug)]
pub struct BucketFiles {
    parts: usize,
    place: Arc<dyn Place>,
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
    file: String,
    start: u64,
    position: usize,
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

impl BucketFiles {
    /// Opens the buckets of each of `edge_types`: those in `dir`, which has the manifest, the offsets and the checksums, with
    /// edges in files of `place`.
    ///
    /// # Errors
    /// If there is no such type, a file is missing, or the buckets are of version 1, which are not sorted.
    pub fn open(dir: &Path, place: &Arc<dyn Place>, edge_types: &[Triple]) -> Result<Vec<Self>> {
        let read = || {
            let manifest = BucketsManifest::read(dir)?;
            if manifest.version < 2 {
                return Err(Error::usage("buckets of version 1 are not sorted")
                    .hint("partition the graph again with this version of gnarl"));
            }
            let of_type =
                |triple: &Triple| Self::read_tables((dir, &manifest), place.clone(), triple);
            edge_types.par_iter().map(of_type).collect()
        };
        read().while_doing(|| format!("opening edge buckets {}", dir.display()))
    }

    fn read_tables(
        (dir, manifest): (&Path, &BucketsManifest),
        place: Arc<dyn Place>,
        triple: &Triple,
    ) -> Result<Self> {
        let columns = &manifest.edge_types[manifest.edge_type(triple)?].columns;
        let spec = |name: &str| {
            let found = columns.iter().find(|column| column.name == name);
            found.ok_or_else(|| Error::invalid(format!("no column {name}")))
        };
        let checksums = Column::open(dir, spec("checksums")?)?;
        let parts = manifest.parts;
        if checksums.rows() != parts * parts {
            let rows = checksums.rows();
            return Err(Error::invalid(format!("{rows} checksums for {parts} parts")));
        }
        // What says where buckets are and whether they are whole is not taken on trust.
        let offsets = Column::open(dir, spec("offsets")?)?;
        offsets.verify().and_then(|()| checksums.verify())?;
        let offsets = offsets.values::<u64>()?;
        if offsets.len() != parts * parts + 1 || !offsets.is_sorted() {
            return Err(Error::invalid("offsets of buckets do not ascend"));
        }
        let rows = columns.iter().filter(|c| c.name != "offsets" && !c.name.contains('.'));
        let names: Vec<&str> = rows.map(|c| c.name.as_str()).collect();
        let edges = offsets.last().copied().unwrap_or(0);
        let values = |name: &str| {
            let spec = spec(name)?;
            let start = values_start(place.as_ref(), spec, edges)?;
            let position = names.iter().position(|other| *other == name).expect("it is a column");
            Ok(Values { file: spec.file.clone(), start, position })
        };
        Ok(Self {
            parts,
            offsets,
            width: checksums.width(),
            checksums: checksums.values()?,
            ends: [values("src")?, values("dst")?],
            place,
        })
    }
    /// Number of edges from nodes of part `i` to nodes of part `j`.
    pub fn len(&self, i: usize, j: usize) -> usize {
        let bucket = i * self.parts + j;
        (self.offsets[bucket + 1] - self.offsets[bucket]) as usize
    }

    /// True if there is no edge in any bucket.
    pub fn is_empty(&self) -> bool {
        self.offsets.last() == Some(&0)
    }

    /// Begins to read buckets (i, j), as far as their place can.
    ///
    /// # Panics
    /// If there is no such part.
    pub fn expect(&self, wanted: &[(usize, usize)]) {
        for &(i, j) in wanted {
            let bucket = i * self.parts + j;
            let [first, end] = [0, 1].map(|of| 4 * self.offsets[bucket + of]);
            for column in &self.ends {
                self.place.expect(&column.file, column.start + first..column.start + end);
            }
        }
    }

    /// Reads buckets (i, j), the edges from nodes of part `i` to nodes of part `j`; several at a time.
    ///
    /// # Errors
    /// If a file is truncated, or a checksum differs, naming the file and the bucket.
    ///
    /// # Panics
    /// If there is no such part.
    pub fn read(&self, wanted: &[(usize, usize)]) -> Result<Vec<LoadedBucket>> {
        let mut buckets: Vec<LoadedBucket> = wanted
            .iter()
            .map(|&(i, j)| {
                assert!(i < self.parts && j < self.parts, "bucket ({i}, {j})");
                let len = self.len(i, j);
                LoadedBucket { src: vec![0; len], dst: vec![0; len] }
            })
            .collect();
        let [of_src, of_dst] = &self.ends;
        let mut ranges = Vec::new();
        for (&(i, j), LoadedBucket { src, dst }) in wanted.iter().zip(&mut buckets) {
            let first = 4 * self.offsets[i * self.parts + j];
            for (column, values) in [(of_src, src), (of_dst, dst)] {
                ranges.push(FileRange {
                    file: &column.file,
                    start: column.start + first,
                    out: bytemuck::cast_slice_mut(values),
                });
            }
        }
        let found = self.place.read(&mut ranges)?;
        for (&(i, j), found) in wanted.iter().zip(found.chunks(2)) {
            let of_bucket = &self.checksums[(i * self.parts + j) * self.width..];
            for (column, crc) in self.ends.iter().zip(found) {
                if of_bucket[column.position] != *crc {
                    let path = self.place.path_of(&column.file);
                    let message = format!("{path}: bucket ({i}, {j}): checksum differs");
                    return Err(Error::invalid(message).hint(
                        "the file was damaged or changed after it was written; partition the graph again",
                    ));
                }
            }
        }
        Ok(buckets)
    }
}

/// Position of the first value of the column `spec` of `place`, which has a 32-bit value for each of `edges` edges.
///
/// # Errors
/// If the file is truncated, or holds something else.
fn values_start(place: &dyn Place, spec: &ColumnSpec, edges: u64) -> Result<u64> {
    if spec.num_bytes() != 4 * edges || spec.dtype != DType::U32 {
        let path = place.path_of(&spec.file);
        return Err(Error::invalid(format!("{path}: {:?} values for {edges} edges", spec.shape)));
    }
    spec.checked_start(place)
}
