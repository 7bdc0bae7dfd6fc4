//! Gathering of rows from columns of any type.

use std::ops::Range;

use gnarl_common::error::{Error, Result};
use gnarl_common::{DType, Element};
use gnarl_graph::{Column, ColumnSpec, ColumnWriter};
use half::{bf16, f16};

use crate::write::columns::NamedColumn;

/// Copies chosen rows of a column, in any order.
pub(crate) trait Rows: Send {
    /// Appends row `row`.
    fn row(&mut self, row: u64) -> Result<()>;
    /// Appends the single values of a range, whatever the rows.
    fn values(&mut self, range: Range<u64>) -> Result<()>;
    /// Releases the memory of some rows of the source.
    fn forget(&self, rows: Range<u64>);
    /// Completes the copy.
    fn finish(self: Box<Self>) -> Result<ColumnSpec>;
}

struct Typed<T: Element, W> {
    source: gnarl_common::Buf<T>,
    width: usize,
    writer: W,
}

impl<T: Element, W: TypedColumn<T>> Rows for Typed<T, W> {
    fn row(&mut self, row: u64) -> Result<()> {
        let start = row as usize * self.width;
        self.writer.push(&self.source[start..start + self.width])
    }

    fn values(&mut self, range: Range<u64>) -> Result<()> {
        let values = self.source.get(range.start as usize..range.end as usize);
        self.writer
            .push(values.ok_or_else(|| Error::invalid("offsets are out of range of their values"))?)
    }

    fn forget(&self, rows: Range<u64>) {
        self.source.forget(rows.start as usize * self.width..rows.end as usize * self.width);
    }

    fn finish(self: Box<Self>) -> Result<ColumnSpec> {
        self.writer.finish()
    }
}

/// Starts a copy of some rows of `column`. `create` makes the writer for the row's shape.
pub(crate) fn rows(column: &Column, create: &impl CreateColumn) -> Result<Box<dyn Rows>> {
    fn typed<T: Element>(column: &Column, create: &impl CreateColumn) -> Result<Box<dyn Rows>> {
        let spec = column.spec();
        let writer = create.create::<T>(&spec.name, &spec.shape[1..])?;
        Ok(Box::new(Typed { source: column.values::<T>()?, width: column.width(), writer }))
    }
    match column.spec().dtype {
        DType::U8 => typed::<u8>(column, create),
        DType::U32 => typed::<u32>(column, create),
        DType::U64 => typed::<u64>(column, create),
        DType::I32 => typed::<i32>(column, create),
        DType::I64 => typed::<i64>(column, create),
        DType::F16 => typed::<f16>(column, create),
        DType::BF16 => typed::<bf16>(column, create),
        DType::F32 => typed::<f32>(column, create),
        DType::F64 => typed::<f64>(column, create),
    }
}

/// Creates the writers of copied columns.
pub(crate) trait CreateColumn {
    /// The writer of values of type `T`.
    type Column<T: Element>: TypedColumn<T> + 'static;
    /// Starts the column `name`.
    fn create<T: Element>(&self, name: &str, row: &[u64]) -> Result<Self::Column<T>>;
}

/// The writer of a column of values of one type.
pub(crate) trait TypedColumn<T>: Send {
    /// Appends values.
    fn push(&mut self, values: &[T]) -> Result<()>;
    /// Completes the file and describes it.
    fn finish(self) -> Result<ColumnSpec>;
}

impl<T: Element> TypedColumn<T> for ColumnWriter<T> {
    fn push(&mut self, values: &[T]) -> Result<()> {
        self.push(values)
    }

    fn finish(self) -> Result<ColumnSpec> {
        self.finish()
    }
}

impl<T: Element> TypedColumn<T> for NamedColumn<T> {
    fn push(&mut self, values: &[T]) -> Result<()> {
        self.push(values)
    }

    fn finish(self) -> Result<ColumnSpec> {
        self.finish()
    }
}
