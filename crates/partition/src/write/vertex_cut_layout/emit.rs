//! Streaming writers beside the lists: the index of edge types, and the edge columns.

use gnarl_common::error::Result;
use gnarl_graph::{Column, ColumnSpec};

use super::dealt::Part;
use super::side::Direction;
use crate::write::columns::{NamedColumn, NarrowColumn, ScatterColumn};
use crate::write::deal::row_of;

/// Bits of a list's key below the edge type.
pub(super) const TYPE_SHIFT: u32 = 48;

/// Writes the index of edge types of one direction, where there is more than one type.
pub(super) struct Types {
    direction: Direction,
    columns: Option<TypeColumns>,
}

struct TypeColumns {
    indptr: NarrowColumn,
    kind: NarrowColumn,
    end: NarrowColumn,
    degree: NamedColumn<u32>,
    /// Rows of in-edges in the edge columns, if there are any.
    row: Option<NarrowColumn>,
    entries: u64,
    /// Next edge row of each type.
    next_row: Vec<u64>,
}

impl Types {
    pub(super) fn create(part: &Part<'_>, direction: Direction) -> Result<Self> {
        if !part.heterogeneous() {
            return Ok(Self { direction, columns: None });
        }
        let name = |rest: &str| format!("{}.types.{rest}", direction.prefix());
        let narrow = |rest: &str, most| NarrowColumn::create(part.dir, "", &name(rest), most);
        let types = part.job.dealt.len();
        let rows = direction == Direction::In && part.carries();
        let mut indptr = narrow("indptr", part.edges)?;
        indptr.push(0)?;
        let columns = TypeColumns {
            indptr,
            kind: narrow("type", types as u64 - 1)?,
            end: narrow("end", part.edges)?,
            degree: NamedColumn::create(part.dir, "", &name("degree"), &[])?,
            row: rows.then(|| narrow("row", part.edges)).transpose()?,
            entries: 0,
            next_row: vec![0; types],
        };
        Ok(Self { direction, columns: Some(columns) })
    }

    /// Appends the next list, of local node `v`.
    pub(super) fn push(&mut self, part: &Part<'_>, v: usize, keys: &[u64]) -> Result<()> {
        let Some(columns) = &mut self.columns else { return Ok(()) };
        let (_, own) = part.own_id(part.ids[v]);
        let mut end = 0;
        for run in keys.chunk_by(|a, b| a >> TYPE_SHIFT == b >> TYPE_SHIFT) {
            let kind = (run[0] >> TYPE_SHIFT) as usize;
            end += run.len() as u64;
            columns.kind.push(kind as u64)?;
            columns.end.push(end)?;
            columns.degree.push(&[part.job.degrees.of(kind, own, self.direction)])?;
            if let Some(row) = &mut columns.row {
                row.push(columns.next_row[kind])?;
            }
            columns.next_row[kind] += run.len() as u64;
            columns.entries += 1;
        }
        columns.indptr.push(columns.entries)
    }

    pub(super) fn finish(self) -> Result<Vec<ColumnSpec>> {
        let Some(c) = self.columns else { return Ok(Vec::new()) };
        let mut specs =
            vec![c.indptr.finish()?, c.kind.finish()?, c.end.finish()?, c.degree.finish()?];
        if let Some(row) = c.row {
            specs.push(row.finish()?);
        }
        Ok(specs)
    }
}

/// Copies edge columns into the order of edge ids.
pub(super) struct Carried {
    types: Vec<Vec<Copy>>,
}

struct Copy {
    from: Column,
    /// The part's first row there.
    start: u64,
    bytes: usize,
    to: ScatterColumn,
}

impl Carried {
    pub(super) fn create(part: &Part<'_>) -> Result<Self> {
        let mut types = Vec::new();
        for (kind, columns) in part.job.dealt.iter().enumerate() {
            let (start, count) = part.dealt(kind);
            let stem = format!("edges-{kind}");
            let copy = |spec: &ColumnSpec| {
                let (bytes, of) = (spec.dtype.size(), (spec.dtype, &spec.shape[1..]));
                let from = Column::open(part.job.dir, spec)?;
                let to = ScatterColumn::create(part.dir, &stem, &spec.name, of, &[count], 1 << 18)?;
                Ok(Copy { bytes: bytes * from.width(), from, start, to })
            };
            types.push(columns[2..].iter().map(copy).collect::<Result<_>>()?);
        }
        Ok(Self { types })
    }

    /// Appends the next list's keys and rows.
    pub(super) fn push(&mut self, keys: &[u64], rows: &[u64]) -> Result<()> {
        for (key, row) in keys.iter().zip(rows) {
            for copy in &mut self.types[(key >> TYPE_SHIFT) as usize] {
                copy.to.push(0, row_of(&copy.from, copy.start + row, copy.bytes))?;
            }
        }
        Ok(())
    }

    /// The columns of each type.
    pub(super) fn finish(self) -> Result<Vec<Vec<ColumnSpec>>> {
        let columns = |copies: Vec<Copy>| {
            copies.into_iter().map(|c| c.to.finish().map(|(spec, _)| spec)).collect()
        };
        self.types.into_iter().map(columns).collect()
    }
}
