//! Reader of edge buckets.

use std::ops::Range;
use std::path::{Path, PathBuf};

use gnarl_common::Buf;
use gnarl_common::error::{Context, Error, Result};
use gnarl_graph::{Column, Triple};

use super::{BucketsManifest, BucketsType};

/// The edge buckets of a partition, mapped.
#[derive(Debug, Clone)]
pub struct EdgeBuckets {
    dir: PathBuf,
    manifest: BucketsManifest,
    types: Vec<OfType>,
}

#[derive(Debug, Clone)]
struct OfType {
    offsets: Buf<u64>,
    src: Buf<u32>,
    dst: Buf<u32>,
}

/// The edges of one type from the nodes of a part to those of another (or the same).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bucket<'a> {
    /// Source of each edge: its row among the nodes of its type that the first part owns.
    pub src: &'a [u32],
    /// Destination of each edge, likewise in the second part.
    pub dst: &'a [u32],
    /// Rows of these edges in the columns of their type, see [`EdgeBuckets::column`].
    pub rows: Range<u64>,
}

impl EdgeBuckets {
    /// Opens the buckets in `dir`.
    ///
    /// # Errors
    /// If there are none, a file is missing or truncated, or they do not fit together, naming it.
    pub fn open(dir: impl Into<PathBuf>) -> Result<Self> {
        let dir = dir.into();
        Self::read(&dir).while_doing(|| format!("opening edge buckets {}", dir.display()))
    }

    fn read(dir: &Path) -> Result<Self> {
        let manifest = BucketsManifest::read(dir)?;
        let types = manifest.edge_types.iter().map(|t| OfType::open(dir, t, manifest.parts));
        let types = types.collect::<Result<_>>()?;
        Ok(Self { dir: dir.to_path_buf(), manifest, types })
    }

    /// Directory of the files.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Contents of `buckets.json`.
    pub fn manifest(&self) -> &BucketsManifest {
        &self.manifest
    }

    /// Position of an edge type in the manifest, the `edge_type` of the methods below.
    ///
    /// # Errors
    /// Lists the known ones if there is none.
    pub fn edge_type(&self, triple: &Triple) -> Result<usize> {
        self.manifest.edge_type(triple)
    }

    /// The edges of type `edge_type` from nodes of part `i` to nodes of part `j`.
    ///
    /// # Errors
    /// If there is no such type or part.
    pub fn bucket(&self, edge_type: usize, i: usize, j: usize) -> Result<Bucket<'_>> {
        let parts = self.manifest.parts;
        let t = self.types.get(edge_type).filter(|_| i < parts && j < parts).ok_or_else(|| {
            let types = self.types.len();
            Error::usage(format!("no bucket ({i}, {j}) of edge type {edge_type}"))
                .hint(format!("there are {parts} parts and {types} edge types, counted from 0"))
        })?;
        let rows = t.offsets[i * parts + j]..t.offsets[i * parts + j + 1];
        let slice = rows.start as usize..rows.end as usize;
        match (t.src.get(slice.clone()), t.dst.get(slice)) {
            (Some(src), Some(dst)) => Ok(Bucket { src, dst, rows }),
            _ => Err(Error::invalid(format!(
                "{}: the offsets of bucket ({i}, {j}) are out of range",
                self.dir.display()
            ))),
        }
    }

    /// The column `name` of the edges of a type, if there is one, with one row per edge.
    pub fn column(&self, edge_type: usize, name: &str) -> Result<Option<Column>> {
        let columns = self.manifest.edge_types.get(edge_type).map_or(&[][..], |t| &t.columns);
        let spec = columns.iter().find(|c| c.name == name);
        spec.map(|spec| Column::open(&self.dir, spec)).transpose()
    }

    /// Recomputes the checksums of all files. Returns how many there are.
    ///
    /// # Errors
    /// At the first that differs, naming it.
    pub fn verify(&self) -> Result<usize> {
        let mut files = 0;
        for spec in self.manifest.edge_types.iter().flat_map(|t| &t.columns) {
            Column::open(&self.dir, spec)
                .and_then(|column| column.verify())
                .while_doing(|| format!("verifying {}", self.dir.display()))?;
            files += 1;
        }
        Ok(files)
    }
}

impl OfType {
    fn open(dir: &Path, t: &BucketsType, parts: usize) -> Result<Self> {
        let column = |name: &str, rows: u64| {
            let at = || format!("{}: {}: column {name}", dir.display(), t.triple);
            let spec = t.columns.iter().find(|c| c.name == name);
            let spec = spec.ok_or_else(|| Error::invalid(format!("{} is missing", at())))?;
            let column = Column::open(dir, spec)?;
            match column.rows() as u64 == rows {
                true => Ok(column),
                false => {
                    let found = column.rows();
                    Err(Error::invalid(format!("{} has {found} rows for {rows}", at())))
                }
            }
        };
        let offsets = column("offsets", (parts * parts) as u64 + 1)?.values::<u64>()?;
        if offsets.first() != Some(&0) || offsets.last() != Some(&t.count) {
            let (dir, triple) = (dir.display(), &t.triple);
            return Err(Error::invalid(format!("{dir}: {triple}: offsets do not span the edges")));
        }
        let (src, dst) = (column("src", t.count)?.values()?, column("dst", t.count)?.values()?);
        Ok(Self { offsets, src, dst })
    }
}
