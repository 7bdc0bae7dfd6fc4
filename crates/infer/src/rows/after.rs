//! The output of a layer while it is computed.

use std::path::PathBuf;

use gnarl_common::{Error, Result};

use super::cache::Cache;
use super::pieces::Kept;
use super::{Before, Values, chunks, file, memory};
use crate::budget::Budget;
use crate::places::Places;

/// The output of a layer while it is computed: rows are appended in the order of their places.
pub struct After<'a> {
    budget: &'a Budget,
    /// None for rows that are read in place.
    cache: Option<&'a Cache>,
    /// Names of the files of types that outlive the process.
    names: Option<Box<dyn Fn(usize) -> PathBuf + Send + 'a>>,
    /// Bytes of further rows that may be in memory.
    left: u64,
    types: Vec<(Places, Option<Writer>)>,
}

enum Writer {
    Memory(memory::Rows),
    File(file::Writer),
}

impl<'a> After<'a> {
    /// Rows of nodes of each type at `places`; `left` bytes of them may be in memory.
    pub fn new(budget: &'a Budget, places: Vec<Places>, left: u64) -> Self {
        let types = places.into_iter().map(|places| (places, None)).collect();
        Self { budget, cache: None, names: None, left, types }
    }

    /// The same rows, all in files that are read by chunks.
    pub(crate) fn behind(self, cache: Option<&'a Cache>) -> Self {
        Self { cache, ..self }
    }

    /// The same rows, all in files with names, behind those that were `kept` of each type.
    ///
    /// # Errors
    /// If files are damaged.
    pub(crate) fn kept(
        mut self,
        names: impl Fn(usize) -> PathBuf + Send + 'a,
        kept: &[Kept],
    ) -> Result<Self> {
        for (node_type, kept) in kept.iter().enumerate().filter(|(_, kept)| !kept.is_empty()) {
            let writer = file::Writer::reopened(&names(node_type), kept.width, &kept.pieces)?;
            self.types[node_type].1 = Some(Writer::File(writer));
        }
        Ok(Self { names: Some(Box::new(names)), ..self })
    }

    /// Rows of a type so far.
    pub(crate) fn num_rows(&self, node_type: usize) -> usize {
        match &self.types[node_type].1 {
            None => 0,
            Some(Writer::Memory(rows)) => rows.values.len() / rows.width.max(1),
            Some(Writer::File(file)) => file.bytes() as usize / 4 / file.width().max(1),
        }
    }

    /// Brings all rows to the disk, and returns what is there of each type.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub(crate) fn sync(&mut self) -> Result<Vec<Kept>> {
        let of = |(_, writer): &mut (Places, Option<Writer>)| match writer {
            Some(Writer::File(file)) => Ok(Kept { width: file.width(), pieces: file.sync()? }),
            _ => Ok(Kept::default()),
        };
        self.types.iter_mut().map(of).collect()
    }

    /// Appends rows of the next nodes of a type, `width` values each.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn append(&mut self, node_type: usize, rows: &[f32], width: usize) -> Result<()> {
        let (places, writer) = &mut self.types[node_type];
        let writer = match writer {
            Some(writer) => writer,
            None => {
                let bytes = 4 * places.len() as u64 * width as u64;
                writer.insert(match &self.names {
                    Some(names) => Writer::File(file::Writer::named(&names(node_type), width)?),
                    None if bytes <= self.left && self.cache.is_none() => {
                        self.left -= bytes;
                        Writer::Memory(memory::Rows::with_capacity(places.len(), width))
                    }
                    None => Writer::File(file::Writer::unnamed(self.budget.scratch(), width)?),
                })
            }
        };
        let (known, kept) = match writer {
            Writer::Memory(all) => {
                all.values.extend_from_slice(rows);
                (all.width, Ok(()))
            }
            Writer::File(file) => (file.width(), file.append(rows)),
        };
        match known == width {
            true => kept,
            false => Err(Error::invalid(format!("rows of {width} values among rows of {known}"))),
        }
    }

    /// Ends the own rows of a type, so that they can be read.
    ///
    /// # Errors
    /// If a file cannot be written or mapped.
    pub(crate) fn end_own(&mut self, node_type: usize) -> Result<()> {
        match &mut self.types[node_type].1 {
            Some(Writer::File(file)) => file.end_own(),
            _ => Ok(()),
        }
    }

    /// An own row, after [`After::end_own`].
    ///
    /// # Errors
    /// If it was not computed.
    pub(crate) fn own_row(&self, node_type: usize, node: u32) -> Result<&[f32]> {
        let (places, writer) = &self.types[node_type];
        let (values, width) = match writer {
            None => (&[][..], 0),
            Some(Writer::Memory(rows)) => (&rows.values[..], rows.width),
            Some(Writer::File(file)) => (file.own(), file.width()),
        };
        let first = places.place(node).filter(|&place| place < places.num_own());
        let row = first.and_then(|place| values.get(place * width..(place + 1) * width));
        row.ok_or_else(|| Error::invalid(format!("node {node} was not computed by its rank")))
    }

    /// The finished layer, and the bytes of it that are in files.
    ///
    /// # Errors
    /// If a file cannot be written or mapped.
    pub fn finish(self) -> Result<(Before, u64)> {
        let mut spilled = 0;
        let cache = self.cache;
        let of = |(places, writer): (Places, Option<Writer>)| -> Result<Option<(Places, Values)>> {
            Ok(match writer {
                None => None,
                Some(Writer::Memory(rows)) => Some((places, Values::Memory(rows))),
                Some(Writer::File(file)) => {
                    spilled += file.bytes();
                    let values = match cache {
                        None => Values::File(file.finish()?),
                        Some(cache) => Values::Chunks(chunks::Rows::new(file.end()?, cache)),
                    };
                    Some((places, values))
                }
            })
        };
        let types = self.types.into_iter().map(of).collect::<Result<_>>()?;
        Ok((Before { types }, spilled))
    }
}
