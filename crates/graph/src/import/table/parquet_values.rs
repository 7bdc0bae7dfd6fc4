//! Values of Parquet columns as integers, numbers and text.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type,
    Decimal256Type, DecimalType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{ArrowError, DataType, TimeUnit};
use arrow_select::take::take;

use super::numbers::in_unit;
use super::{Cell, Values};

/// The type of a column's values: that of its dictionary, if it has one.
pub(super) fn value_type(kind: &DataType) -> &DataType {
    if let DataType::Dictionary(_, values) = kind { values } else { kind }
}

/// Whether [`texts`] alone reads a column of type `kind`.
pub(super) fn is_text(kind: &DataType) -> bool {
    matches!(value_type(kind), DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

/// Whether [`numbers`] reads a column of type `kind`, or of lists of some type.
pub(super) fn is_numeric(kind: &DataType) -> bool {
    let kind = value_type(kind);
    kind.is_numeric()
        || matches!(
            kind,
            DataType::Boolean
                | DataType::Null
                | DataType::Date32
                | DataType::Date64
                | DataType::Timestamp(..)
                | DataType::List(_)
                | DataType::LargeList(_)
                | DataType::FixedSizeList(..)
        )
}

/// The array itself, or the values that the keys of a dictionary stand for.
pub(super) fn plain(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    match array.as_any_dictionary_opt() {
        None => Ok(array.clone()),
        Some(dictionary) => take(dictionary.values(), dictionary.keys(), None),
    }
}

/// A row that has no integer of 63 bits and a sign.
pub(super) enum NoInteger {
    Null(usize),
    Large(usize),
}

/// Appends integers; `false` if the array holds others.
///
/// # Errors
/// Gives the first row that has none, or a larger one.
pub(super) fn integers(array: &dyn Array, out: &mut Vec<i64>) -> Result<bool, NoInteger> {
    if !array.data_type().is_integer() {
        return Ok(false);
    }
    if let Some(row) = (0..array.len()).find(|&row| array.is_null(row)) {
        return Err(NoInteger::Null(row));
    }
    match array.data_type() {
        DataType::Int8 => each::<Int8Type>(array, |x| out.push(x.unwrap_or_default().into())),
        DataType::Int16 => each::<Int16Type>(array, |x| out.push(x.unwrap_or_default().into())),
        DataType::Int32 => each::<Int32Type>(array, |x| out.push(x.unwrap_or_default().into())),
        DataType::Int64 => each::<Int64Type>(array, |x| out.push(x.unwrap_or_default())),
        DataType::UInt8 => each::<UInt8Type>(array, |x| out.push(x.unwrap_or_default().into())),
        DataType::UInt16 => each::<UInt16Type>(array, |x| out.push(x.unwrap_or_default().into())),
        DataType::UInt32 => each::<UInt32Type>(array, |x| out.push(x.unwrap_or_default().into())),
        _ => {
            let first = out.len();
            each::<UInt64Type>(array, |x| out.push(x.unwrap_or_default() as i64));
            if let Some(row) = out[first..].iter().position(|&id| id < 0) {
                return Err(NoInteger::Large(row));
            }
        }
    }
    Ok(true)
}

/// Appends numbers, NaN for null: booleans as 0 and 1, dates and timestamps in the unit of `cell`;
/// `false` if the array holds others.
pub(super) fn numbers(array: &dyn Array, cell: Cell, out: &mut Vec<f64>) -> bool {
    const MILLI: i64 = 1_000;
    let moment = |ticks: i64, a_second: i64| {
        let nanoseconds = ticks.rem_euclid(a_second) * (1_000_000_000 / a_second);
        in_unit(ticks.div_euclid(a_second), nanoseconds as u32, cell)
    };
    let mut push = |x: Option<f64>| out.push(x.unwrap_or(f64::NAN));
    match array.data_type() {
        DataType::Null => (0..array.len()).for_each(|_| push(None)),
        DataType::Boolean => {
            array.as_boolean().iter().for_each(|x| push(x.map(|x| f64::from(u8::from(x)))));
        }
        DataType::Int8 => each::<Int8Type>(array, |x| push(x.map(f64::from))),
        DataType::Int16 => each::<Int16Type>(array, |x| push(x.map(f64::from))),
        DataType::Int32 => each::<Int32Type>(array, |x| push(x.map(f64::from))),
        DataType::Int64 => each::<Int64Type>(array, |x| push(x.map(|x| x as f64))),
        DataType::UInt8 => each::<UInt8Type>(array, |x| push(x.map(f64::from))),
        DataType::UInt16 => each::<UInt16Type>(array, |x| push(x.map(f64::from))),
        DataType::UInt32 => each::<UInt32Type>(array, |x| push(x.map(f64::from))),
        DataType::UInt64 => each::<UInt64Type>(array, |x| push(x.map(|x| x as f64))),
        DataType::Float16 => each::<Float16Type>(array, |x| push(x.map(f64::from))),
        DataType::Float32 => each::<Float32Type>(array, |x| push(x.map(f64::from))),
        DataType::Float64 => each::<Float64Type>(array, push),
        DataType::Decimal32(..) => each_decimal::<Decimal32Type>(array, push),
        DataType::Decimal64(..) => each_decimal::<Decimal64Type>(array, push),
        DataType::Decimal128(..) => each_decimal::<Decimal128Type>(array, push),
        DataType::Decimal256(..) => each_decimal::<Decimal256Type>(array, push),
        DataType::Date32 => each::<Date32Type>(array, |x| {
            push(x.map(|days| in_unit(i64::from(days) * 86_400, 0, cell)));
        }),
        DataType::Date64 => each::<Date64Type>(array, |x| push(x.map(|x| moment(x, MILLI)))),
        DataType::Timestamp(TimeUnit::Second, _) => {
            each::<TimestampSecondType>(array, |x| push(x.map(|x| moment(x, 1))));
        }
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            each::<TimestampMillisecondType>(array, |x| push(x.map(|x| moment(x, MILLI))));
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            each::<TimestampMicrosecondType>(array, |x| push(x.map(|x| moment(x, MILLI * MILLI))));
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            let a_second = MILLI * MILLI * MILLI;
            each::<TimestampNanosecondType>(array, |x| push(x.map(|x| moment(x, a_second))));
        }
        _ => return false,
    }
    true
}

/// Appends texts, empty for null: also of integers, of booleans (`true`, `false`) and of floating-point
/// numbers; `false` if the array holds others.
pub(super) fn texts(array: &dyn Array, out: &mut Values) -> bool {
    let mut push = |x: Option<&str>| out.push_text(x.unwrap_or_default().as_bytes());
    match array.data_type() {
        DataType::Utf8 => array.as_string::<i32>().iter().for_each(push),
        DataType::LargeUtf8 => array.as_string::<i64>().iter().for_each(push),
        DataType::Utf8View => array.as_string_view().iter().for_each(push),
        DataType::Null => (0..array.len()).for_each(|_| push(None)),
        DataType::Boolean => {
            let name = |x| if x { "true" } else { "false" };
            array.as_boolean().iter().for_each(|x| push(x.map(name)));
        }
        DataType::Int8 => each_text::<Int8Type>(array, push),
        DataType::Int16 => each_text::<Int16Type>(array, push),
        DataType::Int32 => each_text::<Int32Type>(array, push),
        DataType::Int64 => each_text::<Int64Type>(array, push),
        DataType::UInt8 => each_text::<UInt8Type>(array, push),
        DataType::UInt16 => each_text::<UInt16Type>(array, push),
        DataType::UInt32 => each_text::<UInt32Type>(array, push),
        DataType::UInt64 => each_text::<UInt64Type>(array, push),
        DataType::Float32 => each_text::<Float32Type>(array, push),
        DataType::Float64 => each_text::<Float64Type>(array, push),
        _ => return false,
    }
    true
}

fn each<T: ArrowPrimitiveType>(array: &dyn Array, take: impl FnMut(Option<T::Native>)) {
    array.as_primitive::<T>().iter().for_each(take);
}

/// Decimals by their text: it rounds once, whatever their scale.
fn each_decimal<T>(array: &dyn Array, mut take: impl FnMut(Option<f64>))
where
    T: ArrowPrimitiveType + DecimalType,
{
    let decimals = array.as_primitive::<T>();
    for row in 0..decimals.len() {
        let number = decimals.is_valid(row).then(|| decimals.value_as_string(row));
        take(number.and_then(|text| text.parse().ok()));
    }
}

fn each_text<T>(array: &dyn Array, mut take: impl FnMut(Option<&str>))
where
    T: ArrowPrimitiveType,
    T::Native: std::fmt::Display,
{
    for x in array.as_primitive::<T>() {
        take(x.map(|x| x.to_string()).as_deref());
    }
}
