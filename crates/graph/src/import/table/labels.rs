//! The classes of nodes or edges from a column of numbers, or of names.

use gnarl_common::{Error, Result};

use super::numbers::{first_texts, is_missing, is_number};
use super::{Batch, Cell, TableReader};
use crate::column::ColumnSpec;
use crate::import::classes::{ClassChecker, Numbering, finish_labels};
use crate::import::ids::StringIds;
use crate::manifest::Triple;
use crate::writer::{ColumnWriter, DatasetWriter};

/// Converts labels to classes. Names are numbered in order of appearance.
pub(super) struct Classes {
    known: Known,
    limit: Option<u64>,
    memory: u64,
}

enum Known {
    Numbers(ClassChecker),
    Names(StringIds),
}

impl Classes {
    /// The cell type of a label column: names if its first label is one. `open` reopens the table,
    /// to look for a label where the first cell is empty.
    ///
    /// # Errors
    /// If the table cannot be read.
    pub fn cell(
        reader: &dyn TableReader,
        column: usize,
        open: impl FnOnce() -> Result<Box<dyn TableReader>>,
    ) -> Result<Cell> {
        if reader.is_numeric(column) {
            return Ok(Cell::Number);
        }
        if reader.looks_text(column) {
            return Ok(Cell::Text);
        }
        let first = first_texts(&mut *open()?, &[column])?.pop().flatten();
        Ok(if first.is_none_or(|label| is_number(&label)) { Cell::Number } else { Cell::Text })
    }

    pub fn new(cell: Cell, limit: Option<u64>, memory: u64) -> Self {
        let known = match cell {
            Cell::Text => Known::Names(StringIds::default()),
            _ => Known::Numbers(ClassChecker::new(limit)),
        };
        Self { known, limit, memory }
    }

    /// The class ids of a batch, whose labels are its column number `values`.
    ///
    /// # Errors
    /// If one is no class, naming the place.
    pub fn read(
        &mut self,
        reader: &dyn TableReader,
        batch: &Batch,
        values: usize,
    ) -> Result<Vec<i32>> {
        let values = &batch.columns[values];
        let mut labels = Vec::with_capacity(batch.rows());
        for (row, &place) in batch.places.iter().enumerate() {
            let class = match &mut self.known {
                Known::Numbers(classes) => classes.class(values.numbers()[row]),
                Known::Names(known) => match values.text(row) {
                    name if is_missing(&String::from_utf8_lossy(name)) => Ok(-1),
                    name => class_of(known, name, self.limit, self.memory)?,
                },
            };
            let named = |e| Error::invalid(format!("{}: {e}", reader.place(place)));
            labels.push(class.map_err(named)?);
        }
        Ok(labels)
    }

    /// The classes once all labels are read.
    pub fn seal(self) -> Sealed {
        match self.known {
            Known::Numbers(classes) => Sealed::Numbers(classes.numbering()),
            Known::Names(names) => {
                let count = self.limit.unwrap_or(names.len());
                Sealed::Names { names, count }
            }
        }
    }
}

/// The complete set of classes.
pub(super) enum Sealed {
    Numbers(Numbering),
    Names { names: StringIds, count: u64 },
}

impl Sealed {
    /// Number of classes.
    pub fn count(&self) -> u64 {
        match self {
            Self::Numbers(numbering) => numbering.count(),
            Self::Names { count, .. } => *count,
        }
    }

    /// The numbering of class ids, if labels were numbers.
    pub fn numbering(self) -> Option<Numbering> {
        if let Self::Numbers(numbering) = self { Some(numbering) } else { None }
    }

    /// Logs renumbered class ids of edges.
    pub fn report(&self, writer: &mut DatasetWriter, triple: &Triple) {
        if let Self::Numbers(numbering) = self {
            numbering.report(writer, &triple.to_string(), "edges");
        }
    }

    /// The columns `class_name.offsets` and `class_name.bytes`, which map classes to names; the
    /// closures start them.
    pub fn names(
        &self,
        offsets: impl FnOnce(&str) -> Result<ColumnWriter<u64>>,
        bytes: impl FnOnce(&str) -> Result<ColumnWriter<u8>>,
    ) -> Result<Vec<ColumnSpec>> {
        match self {
            Self::Numbers(numbering) => numbering.names(offsets, bytes),
            Self::Names { names, .. } => {
                let mut offsets = offsets("class_name.offsets")?;
                let mut bytes = bytes("class_name.bytes")?;
                names.write(&mut offsets, &mut bytes)?;
                Ok(vec![offsets.finish()?, bytes.finish()?])
            }
        }
    }
}

/// Writes the column `label` of a node type.
pub(super) struct LabelColumn {
    column: ColumnWriter<i32>,
    classes: Classes,
}

impl LabelColumn {
    pub fn create(writer: &DatasetWriter, ntype: &str, classes: Classes) -> Result<Self> {
        Ok(Self { column: writer.node_column::<i32>(ntype, "label", &[])?, classes })
    }

    /// Appends the labels of a batch, which are its column number `values`; returns their class ids.
    ///
    /// # Errors
    /// As [`Classes::read`].
    pub fn push(
        &mut self,
        reader: &dyn TableReader,
        batch: &Batch,
        values: usize,
    ) -> Result<Vec<i32>> {
        let labels = self.classes.read(reader, batch, values)?;
        self.column.push(&labels)?;
        Ok(labels)
    }

    /// Completes the column and the names of classes.
    pub fn finish(self, writer: &mut DatasetWriter, ntype: &str) -> Result<()> {
        let spec = self.column.finish()?;
        if let Known::Numbers(checker) = self.classes.known {
            return finish_labels(writer, ntype, spec, checker);
        }
        let sealed = self.classes.seal();
        let names = sealed.names(
            |name| writer.node_column(ntype, name, &[]),
            |name| writer.node_column(ntype, name, &[]),
        )?;
        let node_type = writer.node_type(ntype)?;
        node_type.columns.push(spec);
        node_type.columns.extend(names);
        node_type.classes = Some(sealed.count());
        Ok(())
    }
}

/// The class of a name, or the reason why it is invalid.
fn class_of(
    known: &mut StringIds,
    name: &[u8],
    limit: Option<u64>,
    memory: u64,
) -> Result<std::result::Result<i32, String>> {
    let class = known.insert(name, memory)?.0;
    let most = limit.unwrap_or(i32::MAX as u64);
    Ok(match class < most {
        true => Ok(class as i32),
        false => {
            let name = String::from_utf8_lossy(name);
            Err(format!("label '{name}' is another than the {most} classes before"))
        }
    })
}
