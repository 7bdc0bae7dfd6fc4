//! Distribution of a type's edges to consecutive ranges of one pair of columns, in one pass.

use std::path::Path;

use gnarl_common::error::{Error, Result, ResultExt};
use gnarl_common::{DType, Kind, NpyScatter};
use gnarl_graph::{Column, ColumnSpec, Dataset, EdgeChunk, EdgeType};
use rayon::prelude::*;

use crate::write::columns::ScatterColumn;
use crate::write::edge_order::EdgeOrder;

/// Columns with one row per edge beside its endpoints.
pub(crate) fn extra_columns(t: &EdgeType) -> impl Iterator<Item = &ColumnSpec> {
    let rows = t.columns.iter().filter(|c| !c.name.contains('.'));
    rows.filter(|c| !matches!(c.name.as_str(), "src" | "dst"))
}

/// Copies the tables of an edge type, such as the names of relations: columns of any length whose
/// names have a dot, except the built topology.
pub(crate) fn copy_tables(source: &Dataset, t: &EdgeType, dir: &Path) -> Result<Vec<ColumnSpec>> {
    let named = t.columns.iter().filter(|c| c.name.contains('.'));
    let tables = named.filter(|c| !c.name.starts_with("csc."));
    tables
        .map(|spec| {
            let from = source.dir().join(&spec.file);
            std::fs::copy(&from, dir.join(&spec.file)).at(&from)?;
            Ok(spec.clone())
        })
        .collect()
}

/// Destination of an edge: its range, and its stored source and destination.
pub(crate) type Place = (u32, u32, u32);

/// The columns of an edge type whose rows are distributed over ranges.
pub(crate) struct Deal<'a> {
    /// Directory and stem of the files.
    pub(crate) dir: &'a Path,
    pub(crate) stem: &'a str,
    /// Edges in each range.
    pub(crate) counts: &'a [u64],
    /// Bytes for buffers.
    pub(crate) memory: u64,
}

/// The columns of an edge type after the distribution: `src` and `dst` (u32), then the edge columns.
pub(crate) struct Dealt {
    pub(crate) columns: Vec<ColumnSpec>,
    /// CRC-32 of the values of each column in each range.
    pub(crate) checksums: Vec<Vec<u32>>,
}

impl Deal<'_> {
    /// Distributes every edge of `t`, in the order of `edges`, which they keep within a range. `place` receives the next
    /// edges, in ids of their node types, and sets a place for each.
    ///
    /// # Errors
    /// [`Kind::Limit`] if the ranges' buffers exceed the memory.
    pub(crate) fn run(
        &self,
        source: &Dataset,
        t: &EdgeType,
        edges: &mut dyn EdgeOrder,
        mut place: impl FnMut(&EdgeChunk, &mut Vec<Place>) -> Result<()>,
    ) -> Result<Dealt> {
        let extra: Vec<&ColumnSpec> = extra_columns(t).collect();
        let each = self.share(extra.len() + 2)?;
        let create = |name: &str, dtype: DType, row: &[u64]| {
            ScatterColumn::create(self.dir, self.stem, name, (dtype, row), self.counts, each)
        };
        let mut ends = [create("src", DType::U32, &[])?, create("dst", DType::U32, &[])?];
        let mut copies = Vec::new();
        for spec in extra {
            let column = source.edge_column(&t.triple, &spec.name)?.expect("in the manifest");
            let bytes = column.width() * spec.dtype.size();
            copies.push((create(&spec.name, spec.dtype, &spec.shape[1..])?, column, bytes));
        }
        let mut chunk = EdgeChunk::default();
        let mut rows = Vec::new();
        let mut places = Vec::new();
        while edges.next(&mut chunk, &mut rows)? {
            place(&chunk, &mut places)?;
            for (&(range, src, dst), &row) in places.iter().zip(&rows) {
                ends[0].push(range as usize, &src.to_le_bytes())?;
                ends[1].push(range as usize, &dst.to_le_bytes())?;
                for (copy, column, bytes) in &mut copies {
                    copy.push(range as usize, row_of(column, row, *bytes))?;
                }
            }
        }
        let columns = ends.into_iter().chain(copies.into_iter().map(|c| c.0));
        let finished = columns.map(ScatterColumn::finish).collect::<Result<Vec<_>>>()?;
        let (columns, checksums) = finished.into_iter().unzip();
        Ok(Dealt { columns, checksums })
    }

    /// Buffer bytes per column.
    fn share(&self, columns: usize) -> Result<u64> {
        let least = columns as u64 * self.counts.len() as u64 * NpyScatter::LEAST;
        if least <= self.memory {
            return Ok(self.memory / columns as u64);
        }
        Err(Error::new(
            Kind::Limit,
            format!(
                "{} ranges of {columns} columns require buffers of {} MiB, but {} MiB are left",
                self.counts.len(),
                least >> 20,
                self.memory >> 20
            ),
        )
        .hint("raise --memory"))
    }
}

/// Sets the places of a chunk's edges in parallel by a function of the edge and its position.
pub(crate) fn place_each(
    chunk: &EdgeChunk,
    places: &mut Vec<Place>,
    place: impl Fn(usize, u64, u64) -> Place + Sync,
) {
    /// Edges worth a task: tens of microseconds of look-ups.
    const TASK: usize = 1 << 12;
    let ends = chunk.src.par_iter().zip(&chunk.dst).enumerate().with_min_len(TASK);
    ends.map(|(i, (&u, &v))| place(i, u, v)).collect_into_vec(places);
}

/// The bytes of a row of a column.
#[inline]
pub(crate) fn row_of(column: &Column, row: u64, bytes: usize) -> &[u8] {
    let start = row as usize * bytes;
    &column.bytes()[start..start + bytes]
}
