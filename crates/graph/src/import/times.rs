//! Times of nodes.

use gnarl_common::{Error, Result};

use crate::writer::{ColumnWriter, DatasetWriter};

/// The column `time` of a node type being written.
pub(super) struct TimeColumn(ColumnWriter<i64>);

impl TimeColumn {
    pub fn create(writer: &DatasetWriter, ntype: &str) -> Result<Self> {
        Ok(Self(writer.node_column::<i64>(ntype, "time", &[])?))
    }

    /// Appends the times of some nodes.
    ///
    /// # Errors
    /// If one is missing or has a fraction; `place` names it.
    pub fn push(&mut self, times: &[f64], place: impl Fn(usize) -> String) -> Result<()> {
        for (row, &time) in times.iter().enumerate() {
            // NaN has a fraction, too.
            if time.fract() != 0.0 {
                let what = if time.is_nan() { "missing".into() } else { time.to_string() };
                let text = format!("{}: the node's time is {what}", place(row));
                return Err(Error::invalid(text).hint("times are integers, of every node"));
            }
            self.0.push(&[time as i64])?;
        }
        Ok(())
    }

    /// Completes the column.
    pub fn finish(self, writer: &mut DatasetWriter, ntype: &str) -> Result<()> {
        let spec = self.0.finish()?;
        writer.node_type(ntype)?.columns.push(spec);
        Ok(())
    }
}
