//! Lists of values under names: one row of a record batch.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, LargeListArray, PrimitiveArray, RecordBatch,
};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, Field, Schema};
use gnarl_common::{Error, Kind, Result};

/// Lists that are written.
#[derive(Default)]
pub(super) struct ListWriter {
    fields: Vec<Field>,
    columns: Vec<ArrayRef>,
}

impl ListWriter {
    /// Adds a list.
    pub fn push<T: ArrowPrimitiveType>(&mut self, name: impl Into<String>, values: Vec<T::Native>) {
        let offsets = OffsetBuffer::from_lengths([values.len()]);
        let item = Arc::new(Field::new("item", T::DATA_TYPE, false));
        let values = PrimitiveArray::<T>::new(ScalarBuffer::from(values), None);
        let list = LargeListArray::new(item, offsets, Arc::new(values), None);
        self.fields.push(Field::new(name, list.data_type().clone(), false));
        self.columns.push(Arc::new(list));
    }

    /// All of them, as a message of at most `longest` bytes.
    ///
    /// # Errors
    /// [`Kind::Limit`] if they are longer; if they make no valid Arrow data.
    pub fn finish(self, longest: usize) -> Result<RecordBatch> {
        let bytes: usize = self.columns.iter().map(|column| column.get_buffer_memory_size()).sum();
        if bytes > longest {
            let message =
                format!("{bytes} bytes of a batch to or from a server: at most {longest}");
            return Err(Error::new(Kind::Limit, message)
                .hint("take smaller batches, fewer negatives or smaller fan-outs"));
        }
        RecordBatch::try_new(Arc::new(Schema::new(self.fields)), self.columns).map_err(wrong)
    }
}

/// The values of the list `name`, if there is one.
///
/// # Errors
/// If it has values of another type.
pub(super) fn list<T: ArrowPrimitiveType>(
    batch: &RecordBatch,
    name: &str,
) -> Result<Option<ScalarBuffer<T::Native>>> {
    let Some(column) = batch.column_by_name(name) else { return Ok(None) };
    let values = column.as_list_opt::<i64>().filter(|lists| lists.len() == 1);
    let values = values.map(|lists| lists.value(0));
    let values = values.as_ref().and_then(|values| values.as_primitive_opt::<T>());
    let expected = || {
        let expected = T::DATA_TYPE;
        Error::invalid(format!("invalid list '{name}' of a batch: expected one of {expected}"))
    };
    Ok(Some(
        values.filter(|values| values.null_count() == 0).ok_or_else(expected)?.values().clone(),
    ))
}

/// The values of the list `name`.
///
/// # Errors
/// If there is none, or it has values of another type.
pub(super) fn expected<T: ArrowPrimitiveType>(
    batch: &RecordBatch,
    name: &str,
) -> Result<ScalarBuffer<T::Native>> {
    let missing = || Error::invalid(format!("a batch lacks the list '{name}'"));
    list::<T>(batch, name)?.ok_or_else(missing)
}

fn wrong(e: ArrowError) -> Error {
    Error::invalid(format!("a batch is no valid Arrow data: {e}"))
}
