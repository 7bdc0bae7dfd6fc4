//! Edges buffered on disk until every id is known.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use gnarl_common::{Result, ResultExt};

use super::classes::Numbering;
use super::extra::{EdgeSink, Extra};
use super::ids::Ids;
use super::reverses::Reverses;
use crate::column::ColumnSpec;
use crate::manifest::Triple;
use crate::writer::DatasetWriter;

/// Batches of edges in an unnamed temporary file, which leaves no trace.
pub(super) struct Spool {
    file: BufWriter<File>,
    dir: PathBuf,
    extras: Vec<Extra>,
    /// True if source and destination are ids still to be looked up.
    pub raw: (bool, bool),
    pub edges: u64,
    /// The new numbering of class ids, if they are renumbered.
    pub classes: Option<Numbering>,
}

impl Spool {
    /// A spool in `dir`.
    pub fn create(dir: &Path, extras: Vec<Extra>, raw: (bool, bool)) -> Result<Self> {
        let file = BufWriter::with_capacity(1 << 18, tempfile::tempfile_in(dir).at(dir)?);
        Ok(Self { file, dir: dir.into(), extras, raw, edges: 0, classes: None })
    }

    /// Returns whether edges have no columns beside their endpoints.
    pub fn plain(&self) -> bool {
        self.extras.is_empty()
    }

    /// Appends a batch; `values` are column after column.
    pub fn push(&mut self, src: &[i64], dst: &[i64], values: &[f64]) -> Result<()> {
        let mut write = |bytes: &[u8]| self.file.write_all(bytes).at(&self.dir);
        write(&(src.len() as u64).to_le_bytes())?;
        write(bytemuck::cast_slice(src))?;
        write(bytemuck::cast_slice(dst))?;
        write(bytemuck::cast_slice(values))?;
        self.edges += src.len() as u64;
        Ok(())
    }

    /// Writes all edges as an edge type, with `more` columns, and the reverses; `maps` resolve the
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
        let mut sink = EdgeSink::create(writer, triple, limits, &self.extras, reverses)?;
        let width: usize = self.extras.iter().map(|e| e.width()).sum();
        let mut src = Vec::new();
        let mut dst = Vec::new();
        let mut values = Vec::new();
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
            if let Some(numbering) = &self.classes {
                renumber(&mut values, &self.extras, count, numbering);
            }
            resolve(&mut src, self.raw.0, maps.0);
            resolve(&mut dst, self.raw.1, maps.1);
            sink.push(bytemuck::cast_slice(&src), bytemuck::cast_slice(&dst), &values)?;
            left -= count as u64;
        }
        sink.finish(writer, more)
    }
}

/// Replaces class ids among the values of `count` edges by classes.
fn renumber(values: &mut [f64], extras: &[Extra], count: usize, numbering: &Numbering) {
    let before = extras.iter().take_while(|extra| **extra != Extra::Class);
    let start = before.map(|extra| extra.width()).sum::<usize>() * count;
    let classes = values.iter_mut().skip(start).take(count);
    classes.for_each(|class| *class = f64::from(numbering.class(*class as i32)));
}

/// Replaces ids by their nodes. All ids are in the map, which was made from them.
fn resolve(ids: &mut [i64], raw: bool, map: &Ids) {
    if raw && !matches!(map, Ids::Kept(_)) {
        ids.iter_mut().for_each(|id| *id = map.find(*id).map_or(-1, |node| node as i64));
    }
}
