//! Numbers of nodes, which a regression learns.

use gnarl_common::{Error, Result};

use crate::writer::{ColumnWriter, DatasetWriter};

/// The column `value` of a node type being written.
pub(super) struct ValueColumn {
    column: ColumnWriter<f32>,
    values: Vec<f32>,
}

impl ValueColumn {
    pub fn create(writer: &DatasetWriter, ntype: &str) -> Result<Self> {
        Ok(Self { column: writer.node_column::<f32>(ntype, "value", &[])?, values: Vec::new() })
    }

    /// Appends the values of some nodes, NaN of those that have none.
    ///
    /// # Errors
    /// If one is infinite, as given or as f32; `place` names it.
    pub fn push(&mut self, values: &[f64], place: impl Fn(usize) -> String) -> Result<()> {
        self.values.clear();
        for (row, &value) in values.iter().enumerate() {
            if (value as f32).is_infinite() {
                let place = place(row);
                return Err(Error::invalid(format!("{place}: the value {value} is not finite"))
                    .hint("leave it empty, or give NaN, where a node has no value"));
            }
            self.values.push(value as f32);
        }
        self.column.push(&self.values)
    }

    /// Completes the column.
    pub fn finish(self, writer: &mut DatasetWriter, ntype: &str) -> Result<()> {
        let spec = self.column.finish()?;
        writer.node_type(ntype)?.columns.push(spec);
        Ok(())
    }
}
