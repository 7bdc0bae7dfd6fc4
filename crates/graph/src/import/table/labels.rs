//! The classes of nodes from a column of numbers, or of names.

use super::{Batch, Cell, TableReader};
use crate::error::{Error, Result};
use crate::import::columns::ClassChecker;
use crate::import::ids::StringIds;
use crate::manifest::NodeType;
use crate::writer::{ColumnWriter, DatasetWriter};

/// Writes the column `label` of a node type. Names are numbered in order of appearance;
/// `class_name.offsets` and `class_name.bytes` lead back.
pub(super) struct LabelColumn {
    column: ColumnWriter<i32>,
    classes: Classes,
    limit: Option<u64>,
    memory: u64,
}

enum Classes {
    Numbers(ClassChecker),
    Names(StringIds),
}

impl LabelColumn {
    /// How a column of labels is read: as names if its first cell is one.
    pub fn cell(reader: &dyn TableReader, column: usize) -> Cell {
        if reader.looks_text(column) { Cell::Text } else { Cell::Number }
    }

    pub fn create(
        writer: &DatasetWriter,
        ntype: &str,
        cell: Cell,
        limit: Option<u64>,
        memory: u64,
    ) -> Result<Self> {
        let column = writer.node_column::<i32>(ntype, "label", &[])?;
        let classes = match cell {
            Cell::Text => Classes::Names(StringIds::default()),
            _ => Classes::Numbers(ClassChecker::new(limit)),
        };
        Ok(Self { column, classes, limit, memory })
    }

    /// Appends the labels of a batch, which are its column number `values`; returns them.
    ///
    /// # Errors
    /// If one is no class, naming the place.
    pub fn push(
        &mut self,
        reader: &dyn TableReader,
        batch: &Batch,
        values: usize,
    ) -> Result<Vec<i32>> {
        let values = &batch.columns[values];
        let mut labels = Vec::with_capacity(batch.rows());
        for (row, &place) in batch.places.iter().enumerate() {
            let class = match &mut self.classes {
                Classes::Numbers(classes) => classes.class(values.numbers()[row]),
                Classes::Names(known) => match values.text(row) {
                    b"" => Ok(-1),
                    name => class_of(known, name, self.limit, self.memory)?,
                },
            };
            let named = |e| Error::invalid(format!("{}: {e}", reader.place(place)));
            labels.push(class.map_err(named)?);
        }
        self.column.push(&labels)?;
        Ok(labels)
    }

    /// Completes the column and the names of classes.
    pub fn finish(self, writer: &mut DatasetWriter, ntype: &str) -> Result<()> {
        let mut columns = vec![self.column.finish()?];
        let count = match self.classes {
            Classes::Numbers(classes) => classes.count(),
            Classes::Names(names) => {
                let mut offsets = writer.node_column::<u64>(ntype, "class_name.offsets", &[])?;
                let mut bytes = writer.node_column::<u8>(ntype, "class_name.bytes", &[])?;
                names.write(&mut offsets, &mut bytes)?;
                columns.extend([offsets.finish()?, bytes.finish()?]);
                self.limit.unwrap_or(names.len())
            }
        };
        let node_type: &mut NodeType = writer.node_type(ntype)?;
        node_type.columns.extend(columns);
        node_type.classes = Some(count);
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
