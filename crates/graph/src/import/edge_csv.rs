//! Edges from delimited text, with edge columns from separate files.

use std::path::Path;

use gnarl_common::{Error, Result};

use super::errors::empty_graph;
use super::extra::Extra;
use super::ids::{Ids, unknown};
use super::reverses::Reverses;
use super::spool::Spool;
use super::table::{Batch, Cell, CsvFormat, CsvReader, TableReader};
use crate::manifest::Triple;
use crate::writer::DatasetWriter;

/// Comma-separated, without a header.
pub(super) const BARE: CsvFormat = CsvFormat { delimiter: Some(b','), header: Some(false) };

/// A file with one number per edge.
pub(super) struct Follower {
    extra: Extra,
    reader: CsvReader,
    batch: Batch,
    /// Rows of the batch already taken.
    at: usize,
}

impl Follower {
    /// Opens a file of one column that becomes `extra`.
    pub fn open(extra: Extra, path: &Path) -> Result<Self> {
        let mut reader = CsvReader::open(path, &BARE)?;
        if reader.columns().len() != 1 {
            let count = reader.columns().len();
            return Err(Error::invalid(format!("{}: {count} columns, not 1", reader.name())));
        }
        reader.select(vec![(0, Cell::Number)])?;
        Ok(Self { extra, reader, batch: Batch::default(), at: 0 })
    }

    /// Appends the numbers of the next `count` edges.
    fn take(&mut self, count: usize, out: &mut Vec<f64>) -> Result<()> {
        let end = out.len() + count;
        while out.len() < end {
            if self.at == self.batch.rows() {
                self.at = 0;
                if !self.reader.next(&mut self.batch)? {
                    let name = self.reader.name();
                    return Err(Error::invalid(format!("{name}: fewer rows than edges")));
                }
            }
            let value = self.batch.columns[0].numbers()[self.at];
            self.extra.check(value, || self.reader.place(self.batch.places[self.at]))?;
            out.push(value);
            self.at += 1;
        }
        Ok(())
    }

    fn expect_end(&mut self) -> Result<()> {
        if self.at == self.batch.rows() && !self.reader.next(&mut self.batch)? {
            return Ok(());
        }
        Err(Error::invalid(format!("{}: more rows than edges", self.reader.name())))
    }
}

/// Writes an edge type from a text table of two integers; `counts` are the numbers of source and
/// destination nodes. Returns the number of edges read.
///
/// # Errors
/// For the first id out of range, by file and line; if a follower has another number of rows.
pub(super) fn csv_edges(
    writer: &mut DatasetWriter,
    triple: &Triple,
    counts: (u64, u64),
    path: &Path,
    mut followers: Vec<Follower>,
    symmetrize: bool,
) -> Result<u64> {
    let mut reader = CsvReader::open(path, &BARE)?;
    if reader.columns().len() != 2 {
        return Err(Error::invalid(format!("{}: edges have 2 columns", path.display())));
    }
    reader.select(vec![(0, Cell::Integer), (1, Cell::Integer)])?;
    let (sources, destinations) = (Ids::Kept(counts.0), Ids::Kept(counts.1));
    let extras = followers.iter().map(|f| f.extra).collect();
    let mut spool = Spool::create(writer.tmp_dir(), extras, (false, false))?;
    let (mut batch, mut values) = (Batch::default(), Vec::new());
    while reader.next(&mut batch)? {
        let ends = [(0, &triple.src, &sources), (1, &triple.dst, &destinations)];
        for (column, ntype, ids) in ends {
            let values = batch.columns[column].integers();
            if let Some(row) = values.iter().position(|&id| id as u64 >= ids.count()) {
                let place = reader.place(batch.places[row]);
                return Err(unknown(&place, &values[row].to_string(), ntype, ids));
            }
        }
        values.clear();
        for follower in &mut followers {
            follower.take(batch.rows(), &mut values)?;
        }
        spool.push(batch.columns[0].integers(), batch.columns[1].integers(), &values)?;
    }
    if spool.edges == 0 {
        return Err(empty_graph(path));
    }
    followers.iter_mut().try_for_each(Follower::expect_end)?;
    let edges = spool.edges;
    let reverses = Reverses::within(symmetrize);
    spool.store(writer, triple, (&sources, &destinations), reverses, Vec::new())?;
    Ok(edges)
}
