//! Edge columns and their storage.

use gnarl_common::{Error, Result};

use super::reverses::Reverses;
use super::weights::{WeightColumn, WeightType};
use crate::column::ColumnSpec;
use crate::manifest::Triple;
use crate::writer::{ColumnWriter, DatasetWriter, EdgeWriter};

/// An edge column and the storage of its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extra {
    /// One column `weight` of that type.
    Weight(WeightType),
    /// One i64 column `time`.
    Time,
    /// One u32 column `relation`.
    Relation,
    /// One u8 column `split`: a number of [`SPLITS`].
    Split,
    /// One i32 column `label`, -1 meaning none.
    Class,
    /// One f32 column `label`.
    Value,
    /// This many columns of 0 and 1 that form the rows of `label`, u8.
    Marks(usize),
    /// This many columns that form the rows of `features`, f32.
    Features(usize),
}

/// Splits of edges, by their number in the column `split`.
pub(super) const SPLITS: [&str; 3] = ["train", "valid", "test"];

/// The number of an edge that is in no split.
pub(super) const NO_SPLIT: u8 = 3;

impl Extra {
    /// Rejects a value, found at `place`, that cannot be stored.
    pub fn check(self, value: f64, place: impl FnOnce() -> String) -> Result<()> {
        let fits = match self {
            Self::Weight(stored) => return stored.check(value, place),
            Self::Relation => value.fract() == 0.0 && (0.0..4_294_967_296.0).contains(&value),
            Self::Time => value.fract() == 0.0,
            Self::Value if !(value as f32).is_finite() => {
                let what = format!("{}: the label of an edge is {value}", place());
                return Err(Error::invalid(what).hint("labels of a regression are finite numbers"));
            }
            Self::Marks(_) => value == 0.0 || value == 1.0,
            Self::Split | Self::Class | Self::Value | Self::Features(_) => value.is_finite(),
        };
        let what = match self {
            Self::Time => "time",
            Self::Features(_) => "feature",
            Self::Marks(_) | Self::Class | Self::Value => "label",
            _ => "value",
        };
        match (fits, value.is_nan()) {
            (true, _) => Ok(()),
            (false, true) => Err(Error::invalid(format!(
                "{}: the edge's {what} is missing (empty or NaN)",
                place()
            ))),
            (false, false) => {
                Err(Error::invalid(format!("{}: the edge's {what} is {value}", place())))
            }
        }
    }

    pub fn width(self) -> usize {
        match self {
            Self::Features(width) | Self::Marks(width) => width,
            _ => 1,
        }
    }
}

/// Edge types being written: the edges, their columns, and their reverses.
pub(super) struct EdgeSink {
    triple: Triple,
    ids: EdgeWriter,
    columns: Columns,
    reverses: Reverses,
    apart: Option<(EdgeWriter, Columns)>,
}

impl EdgeSink {
    /// Starts the columns of an edge type; `limits` are the numbers of source and destination nodes.
    pub fn create(
        writer: &DatasetWriter,
        triple: &Triple,
        limits: (u64, u64),
        extras: &[Extra],
        reverses: Reverses,
    ) -> Result<Self> {
        let turned = triple.reversed();
        let apart = match reverses {
            Reverses::Apart => Some((
                writer.edge_writer(&turned, Some((limits.1, limits.0)))?,
                Columns::create(writer, &turned, extras)?,
            )),
            _ => None,
        };
        let ids = writer.edge_writer(triple, Some(limits))?;
        let columns = Columns::create(writer, triple, extras)?;
        Ok(Self { triple: triple.clone(), ids, columns, reverses, apart })
    }

    /// Appends edges; `values` are their columns, one after the other.
    pub fn push(&mut self, src: &[u64], dst: &[u64], values: &[f64]) -> Result<()> {
        let count = src.len();
        self.ids.push(src, dst)?;
        self.columns.push(values, count, |_| true)?;
        if let Some((ids, columns)) = &mut self.apart {
            ids.push(dst, src)?;
            columns.push(values, count, |_| true)?;
        }
        if self.reverses == Reverses::Same {
            let kept = |i: usize| src[i] != dst[i];
            self.columns.push(values, count, kept)?;
            let (s, d): (Vec<u64>, Vec<u64>) =
                (0..count).filter(|&i| kept(i)).map(|i| (dst[i], src[i])).unzip();
            self.ids.push(&s, &d)?;
        }
        Ok(())
    }

    /// Adds the edge types to the dataset, the first with `more` columns.
    pub fn finish(self, writer: &mut DatasetWriter, more: Vec<ColumnSpec>) -> Result<()> {
        let all = |ids: EdgeWriter, columns: Columns| -> Result<Vec<ColumnSpec>> {
            Ok([ids.finish()?, columns.finish()?].concat())
        };
        let turned = self.triple.reversed();
        writer.add_edge_type(self.triple, [all(self.ids, self.columns)?, more].concat());
        if let Some((ids, columns)) = self.apart {
            writer.add_edge_type(turned, all(ids, columns)?);
        }
        Ok(())
    }
}

enum Column {
    Weight(WeightColumn),
    F32(ColumnWriter<f32>),
    I64(ColumnWriter<i64>),
    I32(ColumnWriter<i32>),
    U32(ColumnWriter<u32>),
    U8(ColumnWriter<u8>),
}

/// The extra columns of an edge type being written.
struct Columns(Vec<(Extra, Column)>);

impl Columns {
    fn create(writer: &DatasetWriter, triple: &Triple, extras: &[Extra]) -> Result<Self> {
        let mut columns = Vec::new();
        for &extra in extras {
            let column = match extra {
                Extra::Weight(stored) => {
                    Column::Weight(WeightColumn::create(writer, triple, stored)?)
                }
                Extra::Time => Column::I64(writer.edge_column(triple, "time", &[])?),
                Extra::Relation => Column::U32(writer.edge_column(triple, "relation", &[])?),
                Extra::Split => Column::U8(writer.edge_column(triple, "split", &[])?),
                Extra::Class => Column::I32(writer.edge_column(triple, "label", &[])?),
                Extra::Value => Column::F32(writer.edge_column(triple, "label", &[])?),
                Extra::Marks(width) => {
                    Column::U8(writer.edge_column(triple, "label", &[width as u64])?)
                }
                Extra::Features(width) => {
                    Column::F32(writer.edge_column(triple, "features", &[width as u64])?)
                }
            };
            columns.push((extra, column));
        }
        Ok(Self(columns))
    }

    /// Appends the values of the `count` edges that `kept` accepts.
    fn push(&mut self, values: &[f64], count: usize, kept: impl Fn(usize) -> bool) -> Result<()> {
        let mut rest = values;
        for (extra, column) in &mut self.0 {
            let (mine, behind) = rest.split_at(extra.width() * count);
            rest = behind;
            let rows = (0..count).filter(|&i| kept(i));
            let cells = rows.flat_map(|i| (0..extra.width()).map(move |c| mine[c * count + i]));
            match column {
                Column::Weight(out) => out.push(&cells.map(|x| x as f32).collect::<Vec<_>>())?,
                Column::F32(out) => out.push(&cells.map(|x| x as f32).collect::<Vec<_>>())?,
                Column::I32(out) => out.push(&cells.map(|x| x as i32).collect::<Vec<_>>())?,
                Column::I64(out) => out.push(&cells.map(|x| x as i64).collect::<Vec<_>>())?,
                Column::U32(out) => out.push(&cells.map(|x| x as u32).collect::<Vec<_>>())?,
                Column::U8(out) => out.push(&cells.map(|x| x as u8).collect::<Vec<_>>())?,
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<Vec<ColumnSpec>> {
        let finish = |(_, column)| match column {
            Column::Weight(column) => column.finish(),
            Column::F32(column) => column.finish(),
            Column::I64(column) => column.finish(),
            Column::I32(column) => column.finish(),
            Column::U32(column) => column.finish(),
            Column::U8(column) => column.finish(),
        };
        self.0.into_iter().map(finish).collect()
    }
}
