//! Edges put aside on disk until every id is known.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::Reverses;
use super::ids::Ids;
use super::weights::{WeightColumn, WeightType};
use crate::column::ColumnSpec;
use crate::error::{Error, Result, ResultExt};
use crate::manifest::Triple;
use crate::writer::{ColumnWriter, DatasetWriter};

/// An extra column of an edge type: how its values are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extra {
    /// One column `weight` of that type.
    Weight(WeightType),
    /// One i64 column `time`.
    Time,
    /// One u32 column `relation`.
    Relation,
    /// One u8 column `split`.
    Split,
    /// So many columns that form the rows of `features`, f32.
    Features(usize),
}

impl Extra {
    /// Refuses a value, found at `place`, that cannot be stored so.
    pub fn check(self, value: f64, place: impl FnOnce() -> String) -> Result<()> {
        let fits = match self {
            Self::Weight(stored) => return stored.check(value, place),
            Self::Relation => value.fract() == 0.0 && (0.0..4_294_967_296.0).contains(&value),
            Self::Time => value.fract() == 0.0,
            Self::Split | Self::Features(_) => value.is_finite(),
        };
        if fits {
            Ok(())
        } else {
            Err(Error::invalid(format!("{}: an edge's value is {value}", place())))
        }
    }

    pub fn width(self) -> usize {
        if let Self::Features(width) = self { width } else { 1 }
    }
}

/// Edges in batches, in an unnamed temporary file: nothing remains of it.
pub(super) struct Spool {
    file: BufWriter<File>,
    dir: PathBuf,
    extras: Vec<Extra>,
    /// Whether source and destination are ids still to be looked up.
    pub raw: (bool, bool),
    pub edges: u64,
}

impl Spool {
    /// A spool in `dir`.
    pub fn create(dir: &Path, extras: Vec<Extra>, raw: (bool, bool)) -> Result<Self> {
        let file = BufWriter::with_capacity(1 << 18, tempfile::tempfile_in(dir).at(dir)?);
        Ok(Self { file, dir: dir.into(), extras, raw, edges: 0 })
    }

    /// Whether edges carry nothing but their ends.
    pub fn plain(&self) -> bool {
        self.extras.is_empty()
    }

    /// Adds a batch; `values` are column after column.
    pub fn push(&mut self, src: &[i64], dst: &[i64], values: &[f64]) -> Result<()> {
        let mut write = |bytes: &[u8]| self.file.write_all(bytes).at(&self.dir);
        write(&(src.len() as u64).to_le_bytes())?;
        write(bytemuck::cast_slice(src))?;
        write(bytemuck::cast_slice(dst))?;
        write(bytemuck::cast_slice(values))?;
        self.edges += src.len() as u64;
        Ok(())
    }

    /// Writes everything as an edge type, with `more` columns, and the reverses; `maps` resolve the
    /// raw ids of sources and destinations.
    pub fn store(
        self,
        writer: &mut DatasetWriter,
        triple: &Triple,
        maps: (&Ids, &Ids),
        reverses: Reverses,
        more: Vec<ColumnSpec>,
    ) -> Result<()> {
        let dir = self.dir;
        let mut file = self.file.into_inner().map_err(|e| e.into_error()).at(&dir)?;
        file.seek(SeekFrom::Start(0)).at(&dir)?;
        let mut file = BufReader::with_capacity(1 << 18, file);
        let limits = (maps.0.count(), maps.1.count());
        let mut ids = writer.edge_writer(triple, Some(limits))?;
        let mut columns = Columns::create(writer, triple, &self.extras)?;
        let turned = triple.reversed();
        let mut apart = match reverses {
            Reverses::Apart => Some((
                writer.edge_writer(&turned, Some((limits.1, limits.0)))?,
                Columns::create(writer, &turned, &self.extras)?,
            )),
            _ => None,
        };
        let width: usize = self.extras.iter().map(|e| e.width()).sum();
        let (mut src, mut dst, mut values) = (Vec::new(), Vec::new(), Vec::new());
        let mut left = self.edges;
        while left > 0 {
            let mut count = [0; 8];
            file.read_exact(&mut count).at(&dir)?;
            let count = u64::from_le_bytes(count) as usize;
            src.resize(count, 0i64);
            dst.resize(count, 0i64);
            values.resize(count * width, 0f64);
            file.read_exact(bytemuck::cast_slice_mut(&mut src)).at(&dir)?;
            file.read_exact(bytemuck::cast_slice_mut(&mut dst)).at(&dir)?;
            file.read_exact(bytemuck::cast_slice_mut(&mut values)).at(&dir)?;
            resolve(&mut src, self.raw.0, maps.0);
            resolve(&mut dst, self.raw.1, maps.1);
            ids.push(bytemuck::cast_slice(&src), bytemuck::cast_slice(&dst))?;
            columns.push(&values, count, |_| true)?;
            if let Some((ids, columns)) = &mut apart {
                ids.push(bytemuck::cast_slice(&dst), bytemuck::cast_slice(&src))?;
                columns.push(&values, count, |_| true)?;
            }
            if reverses == Reverses::Same {
                let kept = |i: usize| src[i] != dst[i];
                columns.push(&values, count, kept)?;
                let (s, d): (Vec<u64>, Vec<u64>) =
                    (0..count).filter(|&i| kept(i)).map(|i| (dst[i] as u64, src[i] as u64)).unzip();
                ids.push(&s, &d)?;
            }
            left -= count as u64;
        }
        let mut specs = ids.finish()?;
        specs.extend(columns.finish()?);
        specs.extend(more);
        writer.add_edge_type(triple.clone(), specs);
        if let Some((ids, columns)) = apart {
            let mut specs = ids.finish()?;
            specs.extend(columns.finish()?);
            writer.add_edge_type(turned, specs);
        }
        Ok(())
    }
}

/// Replaces ids by their nodes. Every id was seen while the map was made, so none is missing.
fn resolve(ids: &mut [i64], raw: bool, map: &Ids) {
    if raw && !matches!(map, Ids::Kept(_)) {
        ids.iter_mut().for_each(|id| *id = map.find(*id).map_or(-1, |node| node as i64));
    }
}

enum Column {
    Weight(WeightColumn),
    F32(ColumnWriter<f32>),
    I64(ColumnWriter<i64>),
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
                Extra::Features(width) => {
                    Column::F32(writer.edge_column(triple, "features", &[width as u64])?)
                }
            };
            columns.push((extra, column));
        }
        Ok(Self(columns))
    }

    /// Appends the values of the `count` edges that are `kept`.
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
            Column::U32(column) => column.finish(),
            Column::U8(column) => column.finish(),
        };
        self.0.into_iter().map(finish).collect()
    }
}
