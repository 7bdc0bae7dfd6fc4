//! Batches as Arrow record batches of one row: each column is a list, so that one message has columns of any length.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Float16Type, Float32Type, UInt8Type, UInt16Type};
use arrow_array::types::{UInt32Type, UInt64Type};
use arrow_array::{ArrayRef, LargeListArray, PrimitiveArray, RecordBatch};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, Schema};
use gnarl_common::{Error, Result};

use super::columns::{Array, Columns};

/// The key of a field's metadata for types that Arrow lacks, and its value for bfloat16 in `u16`.
const TYPE: (&str, &str) = ("gnarl.type", "bf16");

/// The record batch of `columns`.
///
/// # Errors
/// If it is no valid Arrow data.
pub(crate) fn record_batch(columns: Columns) -> Result<RecordBatch> {
    let (mut fields, mut arrays) = (Vec::new(), Vec::new());
    for (name, array) in columns.into_named() {
        let is_bf16 = matches!(array, Array::Bf16(_));
        let (values, len): (ArrayRef, usize) = match array {
            Array::U8(values) => primitive::<UInt8Type>(values),
            Array::U32(values) => primitive::<UInt32Type>(values),
            Array::U64(values) => primitive::<UInt64Type>(values),
            Array::F16(values) => primitive::<Float16Type>(values),
            Array::Bf16(bits) => primitive::<UInt16Type>(bits),
            Array::F32(values) => primitive::<Float32Type>(values),
        };
        let item = Arc::new(Field::new("item", values.data_type().clone(), false));
        let offsets = OffsetBuffer::new(ScalarBuffer::from(vec![0, len as i64]));
        let list = LargeListArray::try_new(item.clone(), offsets, values, None).map_err(invalid)?;
        let mut field = Field::new(name, DataType::LargeList(item), false);
        if is_bf16 {
            field.set_metadata(HashMap::from([(TYPE.0.into(), TYPE.1.into())]));
        }
        fields.push(field);
        arrays.push(Arc::new(list) as ArrayRef);
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).map_err(invalid)
}

fn primitive<T: ArrowPrimitiveType>(values: ScalarBuffer<T::Native>) -> (ArrayRef, usize) {
    let len = values.len();
    (Arc::new(PrimitiveArray::<T>::new(values, None)), len)
}

fn invalid(e: arrow_schema::ArrowError) -> Error {
    Error::invalid(format!("a batch is not valid Arrow data: {e}"))
}

/// The columns of a record batch.
///
/// # Errors
/// If it has another number of rows than one, or columns of other types.
pub(crate) fn columns(batch: &RecordBatch) -> Result<Columns> {
    if batch.num_rows() != 1 {
        return Err(Error::invalid(format!("a batch of {} rows: expected one", batch.num_rows())));
    }
    let mut columns = Columns::default();
    for (field, array) in batch.schema_ref().fields().iter().zip(batch.columns()) {
        let name = field.name();
        let wrong = || {
            let kind = array.data_type();
            Error::invalid(format!("column '{name}' of the batch has the unexpected type {kind}"))
        };
        let list = array.as_list_opt::<i64>().ok_or_else(wrong)?.value(0);
        let array = match list.data_type() {
            DataType::UInt8 => Array::U8(values::<UInt8Type>(&list)),
            DataType::UInt16 if field.metadata().get(TYPE.0).is_some_and(|kind| kind == TYPE.1) => {
                Array::Bf16(values::<UInt16Type>(&list))
            }
            DataType::UInt32 => Array::U32(values::<UInt32Type>(&list)),
            DataType::UInt64 => Array::U64(values::<UInt64Type>(&list)),
            DataType::Float16 => Array::F16(values::<Float16Type>(&list)),
            DataType::Float32 => Array::F32(values::<Float32Type>(&list)),
            _ => return Err(wrong()),
        };
        columns.add_array(name, array);
    }
    Ok(columns)
}

fn values<T: ArrowPrimitiveType>(list: &ArrayRef) -> ScalarBuffer<T::Native> {
    list.as_primitive::<T>().values().clone()
}

#[cfg(test)]
mod tests {
    use half::f16;

    use super::*;

    #[test]
    fn columns_of_all_types_survive() {
        let mut own = Columns::default();
        own.add("a", vec![1_u8, 2]);
        own.add("b", vec![u32::MAX]);
        own.add("c", Vec::<u64>::new());
        own.add("d", vec![f16::from_f32(1.5)]);
        own.add_array("e", Array::Bf16(vec![3_u16, 0].into()));
        own.add("f", vec![0.1_f32; 9]);
        assert_eq!(columns(&record_batch(own.clone()).unwrap()).unwrap(), own);
    }

    #[test]
    fn other_record_batches_are_refused() {
        let ids: ArrayRef = Arc::new(PrimitiveArray::<UInt32Type>::from(vec![1]));
        let error = columns(&RecordBatch::try_from_iter([("id", ids.clone())]).unwrap());
        assert!(error.unwrap_err().to_string().contains("'id'"));
        let two: ArrayRef = Arc::new(PrimitiveArray::<UInt32Type>::from(vec![1, 2]));
        let error = columns(&RecordBatch::try_from_iter([("id", two)]).unwrap());
        assert!(error.unwrap_err().to_string().contains("2 rows"));
    }
}
