//! The classes of nodes or edges from a column of numbers, or of names.

use super::{Batch, Cell, TableReader};
use crate::column::ColumnSpec;
use crate::error::{Error, Result};
use crate::import::columns::ClassChecker;
use crate::import::ids::StringIds;
use crate::manifest::NodeType;
use crate::writer::{ColumnWriter, DatasetWriter};

/// Turns labels into classes. Names are numbered in order of appearance.
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
    /// How a column of labels is read: as names if its first cell is one.
    pub fn cell(reader: &dyn TableReader, column: usize) -> Cell {
        if reader.looks_text(column) { Cell::Text } else { Cell::Number }
    }

    pub fn new(cell: Cell, limit: Option<u64>, memory: u64) -> Self {
        let known = match cell {
            Cell::Text => Known::Names(StringIds::default()),
            _ => Known::Numbers(ClassChecker::new(limit)),
        };
        Self { known, limit, memory }
    }

    /// The classes of a batch, whose labels are its column number `values`.
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
                    b"" => Ok(-1),
                    name => class_of(known, name, self.limit, self.memory)?,
                },
            };
            let named = |e| Error::invalid(format!("{}: {e}", reader.place(place)));
            labels.push(class.map_err(named)?);
        }
        Ok(labels)
    }

    /// Their number.
    pub fn count(&self) -> u64 {
        match &self.known {
            Known::Numbers(classes) => classes.count(),
            Known::Names(names) => self.limit.unwrap_or(names.len()),
        }
    }

    /// The columns `class_name.offsets` and `class_name.bytes`, which lead back to names; `create`
    /// starts them.
    pub fn names(
        &self,
        offsets: impl FnOnce(&str) -> Result<ColumnWriter<u64>>,
        bytes: impl FnOnce(&str) -> Result<ColumnWriter<u8>>,
    ) -> Result<Vec<ColumnSpec>> {
        let Known::Names(names) = &self.known else { return Ok(Vec::new()) };
        let (mut offsets, mut bytes) = (offsets("class_name.offsets")?, bytes("class_name.bytes")?);
        names.write(&mut offsets, &mut bytes)?;
        Ok(vec![offsets.finish()?, bytes.finish()?])
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

    /// Appends the labels of a batch, which are its column number `values`; returns them.
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
        let mut columns = vec![self.column.finish()?];
        columns.extend(self.classes.names(
            |name| writer.node_column(ntype, name, &[]),
            |name| writer.node_column(ntype, name, &[]),
        )?);
        let node_type: &mut NodeType = writer.node_type(ntype)?;
        node_type.columns.extend(columns);
        node_type.classes = Some(self.classes.count());
        Ok(())
    }
}

/// The class of a name; inside, what is wrong with it.
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
