//! One direction of a part's edges.

use std::ops::Range;
use std::path::Path;

use gnarl_common::error::{Error, Result};
use gnarl_common::{Buf, Element};
use gnarl_graph::{Column, ColumnSpec, Narrow};

/// The direction of a node's edges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// In-edges: their sources are the neighbors from which messages come.
    In,
    /// Out-edges.
    Out,
}

impl Direction {
    /// Prefix of its columns' names.
    pub(super) fn prefix(self) -> &'static str {
        match self {
            Self::In => "in",
            Self::Out => "out",
        }
    }
}

/// Ranges of each node's edges, and of each type among them.
#[derive(Debug, Clone)]
pub(super) struct Side {
    pub(super) indptr: Narrow,
    /// Degrees in the whole graph.
    pub(super) degree: Buf<u32>,
    types: Option<TypeIndex>,
}

/// One entry per node and type of its edges: GLISP's aggregated types.
#[derive(Debug, Clone)]
struct TypeIndex {
    indptr: Narrow,
    kind: Narrow,
    /// End of the type's edges, relative to the node's first.
    end: Narrow,
    degree: Buf<u32>,
    row: Option<Narrow>,
}

/// The edges of one type of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) kind: usize,
    pub(super) slots: Range<u64>,
    /// Degree over the type in the whole graph.
    pub(super) degree: u32,
    /// First row in the columns of the type; in-edges only.
    pub(super) row: u64,
}

/// Columns of a directory by name.
pub(super) struct Columns<'a>(pub(super) &'a Path, pub(super) &'a [ColumnSpec]);

impl Columns<'_> {
    pub(super) fn has(&self, name: &str) -> bool {
        self.1.iter().any(|c| c.name == name)
    }

    /// The column `name`, which must have `rows` rows.
    pub(super) fn column(&self, name: &str, rows: u64) -> Result<Column> {
        let dir = self.0.display();
        let spec = self.1.iter().find(|c| c.name == name);
        let spec =
            spec.ok_or_else(|| Error::invalid(format!("{dir}: column {name} is missing")))?;
        let column = Column::open(self.0, spec)?;
        if column.rows() as u64 == rows {
            return Ok(column);
        }
        let found = column.rows();
        Err(Error::invalid(format!("{dir}: column {name} has {found} rows for {rows}")))
    }

    pub(super) fn values<T: Element>(&self, name: &str, rows: u64) -> Result<Buf<T>> {
        self.column(name, rows)?.values()
    }

    fn narrow(&self, name: &str, rows: u64) -> Result<Narrow> {
        Narrow::of(&self.column(name, rows)?)
    }

    /// Offsets of `lists` lists of `values` values in all.
    fn offsets(&self, name: &str, lists: u64, values: u64) -> Result<Narrow> {
        let offsets = self.narrow(name, lists + 1)?;
        if offsets.get(0) == 0 && offsets.get(lists) == values {
            return Ok(offsets);
        }
        let dir = self.0.display();
        Err(Error::invalid(format!("{dir}: column {name} does not span {values} values")))
    }
}

impl Side {
    /// Opens the columns that begin with the direction's prefix.
    pub(super) fn open(
        columns: &Columns<'_>,
        direction: Direction,
        nodes: u64,
        edges: u64,
    ) -> Result<Self> {
        let name = |rest: &str| format!("{}.{rest}", direction.prefix());
        let types = match columns.has(&name("types.indptr")) {
            false => None,
            true => {
                let kinds = columns.1.iter().find(|c| c.name == name("types.type"));
                let entries = kinds.and_then(|c| c.shape.first()).copied().unwrap_or(0);
                let row = name("types.row");
                let rows = columns.has(&row).then(|| columns.narrow(&row, entries));
                Some(TypeIndex {
                    indptr: columns.offsets(&name("types.indptr"), nodes, entries)?,
                    kind: columns.narrow(&name("types.type"), entries)?,
                    end: columns.narrow(&name("types.end"), entries)?,
                    degree: columns.values(&name("types.degree"), entries)?,
                    row: rows.transpose()?,
                })
            }
        };
        Ok(Self {
            indptr: columns.offsets(&name("indptr"), nodes, edges)?,
            degree: columns.values(&name("degree"), nodes)?,
            types,
        })
    }

    /// All edges of `v`.
    #[inline]
    pub(super) fn slots(&self, v: u32) -> Range<u64> {
        self.indptr.get(v.into())..self.indptr.get(u64::from(v) + 1)
    }

    /// The node whose list has `slot`.
    pub(super) fn node_of(&self, slot: u64, nodes: u64) -> u32 {
        (self.indptr.partition_point(0..nodes + 1, |offset| offset <= slot) - 1) as u32
    }

    /// The edges of `v`, by type.
    pub(super) fn runs(&self, v: u32) -> impl Iterator<Item = Run> + '_ {
        let entries = self.entries(v);
        let only = self.types.is_none().then(|| self.whole(v)).filter(|r| !r.slots.is_empty());
        only.into_iter().chain(entries.clone().map(move |e| self.run(v, entries.start, e)))
    }

    /// The edges of `v` of type `kind`, if it has any.
    #[inline]
    pub(super) fn run_of(&self, v: u32, kind: usize) -> Option<Run> {
        let Some(types) = &self.types else { return (kind == 0).then(|| self.whole(v)) };
        let entries = self.entries(v);
        let entry =
            entries.start + types.kind.partition_point(entries.clone(), |k| k < kind as u64);
        let found = entry < entries.end && types.kind.get(entry) == kind as u64;
        found.then(|| self.run(v, entries.start, entry))
    }

    /// The edges of `v` of the same type as `slot`, one of them.
    pub(super) fn run_at(&self, v: u32, slot: u64) -> Run {
        let Some(types) = &self.types else { return self.whole(v) };
        let (entries, offset) = (self.entries(v), slot - self.indptr.get(v.into()));
        let before = types.end.partition_point(entries.clone(), |end| end <= offset);
        self.run(v, entries.start, entries.start + before)
    }

    fn entries(&self, v: u32) -> Range<u64> {
        let v = u64::from(v);
        self.types.as_ref().map_or(0..0, |t| t.indptr.get(v)..t.indptr.get(v + 1))
    }

    fn whole(&self, v: u32) -> Run {
        let slots = self.slots(v);
        Run { kind: 0, row: slots.start, slots, degree: self.degree[v as usize] }
    }

    fn run(&self, v: u32, first: u64, entry: u64) -> Run {
        let types = self.types.as_ref().expect("entries are of an index");
        let start = self.indptr.get(v.into());
        let from = if entry == first { 0 } else { types.end.get(entry - 1) };
        Run {
            kind: types.kind.get(entry) as usize,
            slots: start + from..start + types.end.get(entry),
            degree: types.degree[entry as usize],
            row: types.row.as_ref().map_or(0, |row| row.get(entry)),
        }
    }
}
