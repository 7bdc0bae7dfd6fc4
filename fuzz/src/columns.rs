//! Record batches of columns that the input names and fills.

use std::sync::Arc;

use arrow_array::types::{
    ArrowPrimitiveType, Float32Type, Int64Type, UInt8Type, UInt32Type, UInt64Type,
};
use arrow_array::{ArrayRef, LargeListArray, PrimitiveArray, RecordBatch};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::{Field, Schema};

use crate::input::Input;

/// Most columns of a batch.
const COLUMNS: usize = 16;

/// A record batch of one column per section: a byte for its name, or 255 and a section with it; a byte for its type; and
/// its values. With `lists`, the batch has one row of lists.
///
/// None if the columns make no batch.
pub fn record_batch(input: &mut Input<'_>, names: &[&str], lists: bool) -> Option<RecordBatch> {
    let mut fields = Vec::new();
    let mut columns = Vec::new();
    let count = usize::from(input.byte()) % COLUMNS;
    for _ in 0..count {
        let name = match input.byte() {
            255 => String::from_utf8_lossy(input.section()).into_owned(),
            at => names[usize::from(at) % names.len()].to_string(),
        };
        let kind = input.byte();
        let bytes = input.section();
        let values = match kind % 6 {
            0 => array::<UInt64Type, 8>(bytes, u64::from_le_bytes),
            1 => array::<UInt32Type, 4>(bytes, u32::from_le_bytes),
            2 => array::<Int64Type, 8>(bytes, i64::from_le_bytes),
            3 => array::<Float32Type, 4>(bytes, f32::from_le_bytes),
            4 => array::<UInt8Type, 1>(bytes, u8::from_le_bytes),
            // Ids of small graphs, a byte each.
            _ => array::<UInt64Type, 1>(bytes, |[id]| id.into()),
        };
        let column = if lists { list(values) } else { values };
        fields.push(Field::new(name, column.data_type().clone(), false));
        columns.push(column);
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).ok()
}

fn array<T: ArrowPrimitiveType, const N: usize>(
    bytes: &[u8],
    value: impl Fn([u8; N]) -> T::Native,
) -> ArrayRef {
    let values: Vec<T::Native> = bytes.as_chunks().0.iter().map(|&word| value(word)).collect();
    Arc::new(PrimitiveArray::<T>::new(ScalarBuffer::from(values), None))
}

fn list(values: ArrayRef) -> ArrayRef {
    let item = Arc::new(Field::new("item", values.data_type().clone(), false));
    let offsets = OffsetBuffer::from_lengths([values.len()]);
    Arc::new(LargeListArray::new(item, offsets, values, None))
}
