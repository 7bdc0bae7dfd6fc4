//! Edges of message graphs, being written.

use std::path::Path;

use gnarl_common::Result;
use gnarl_graph::{ColumnSpec, ColumnWriter, Dataset, DatasetWriter, EdgeWriter, IdWidth, Triple};

/// Edges written together.
const BATCH: usize = 1 << 14;

/// A writer of a graph with the nodes of `source`.
///
/// # Errors
/// If files cannot be made.
pub(super) fn message_writer(source: &Dataset, out: &Path) -> Result<DatasetWriter> {
    let most = source.manifest().node_types.iter().map(|t| t.count).max().unwrap_or(0);
    let mut writer = DatasetWriter::create(out, IdWidth::for_nodes(most))?;
    writer.link_nodes(source)?;
    Ok(writer)
}

/// The edges of one type.
pub(super) struct Outlet {
    writer: EdgeWriter,
    src: Vec<u64>,
    dst: Vec<u64>,
    times: Option<(ColumnWriter<i64>, Vec<i64>)>,
}

impl Outlet {
    /// Starts the files of the edges of type `triple`, with their times if they are `timed`.
    ///
    /// # Errors
    /// If files cannot be made.
    pub fn open(writer: &DatasetWriter, triple: &Triple, timed: bool) -> Result<Self> {
        let times = match timed {
            true => Some((writer.edge_column(triple, "time", &[])?, Vec::new())),
            false => None,
        };
        let writer = writer.edge_writer(triple, None)?;
        Ok(Self { writer, src: Vec::new(), dst: Vec::new(), times })
    }

    /// Appends an edge.
    ///
    /// # Errors
    /// If the disk is full.
    pub fn push(&mut self, src: u32, dst: u32, time: i64) -> Result<()> {
        self.src.push(src.into());
        self.dst.push(dst.into());
        if let Some((_, times)) = &mut self.times {
            times.push(time);
        }
        if self.src.len() < BATCH { Ok(()) } else { self.flush() }
    }

    fn flush(&mut self) -> Result<()> {
        self.writer.push(&self.src, &self.dst)?;
        self.src.clear();
        self.dst.clear();
        if let Some((column, times)) = &mut self.times {
            column.push(times)?;
            times.clear();
        }
        Ok(())
    }

    /// Completes the files.
    ///
    /// # Errors
    /// If the disk is full.
    pub fn finish(mut self) -> Result<Vec<ColumnSpec>> {
        self.flush()?;
        let mut columns = self.writer.finish()?;
        if let Some((column, _)) = self.times {
            columns.push(column.finish()?);
        }
        Ok(columns)
    }
}
