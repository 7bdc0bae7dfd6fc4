//! Values of Parquet columns as integers, numbers and text.

use std::fmt::{Display, Write};
use std::iter;

use half::f16;
use parquet::data_type::Int96;

use super::super::numbers::in_unit;
use super::super::reader::{Cell, Values};
use super::cursor::Cells;
use super::decimal::Decimals;
use super::kind::Kind;
use super::leaf::{Decoded, Strings};
use super::unit::Unit;

/// The error of cells that cannot be read as requested.
pub(super) enum Fault {
    /// Another type.
    Kind,
    /// A null.
    Null(usize),
    /// An integer beyond 63 bits and a sign.
    Large(usize),
    /// A text that is not UTF-8.
    Encoding(usize),
    /// A value of another length.
    Length(usize),
}

/// Appends integers.
///
/// # Errors
/// For the first cell that has none, or a larger one; if the cells have others.
pub(super) fn integers(kind: &Kind, cells: &Cells<'_>, out: &mut Vec<i64>) -> Result<(), Fault> {
    if !kind.is_integer() {
        return Err(Fault::Kind);
    }
    if let Some(null) = cells.first_null() {
        return Err(Fault::Null(null));
    }
    // Integers of fewer bits than are stored keep the lowest.
    match (kind, cells.decoded) {
        (Kind::Int(8), Decoded::Int32(values)) => extend(out, values, |x| (x as i8).into()),
        (Kind::Int(16), Decoded::Int32(values)) => extend(out, values, |x| (x as i16).into()),
        (Kind::Int(_), Decoded::Int32(values)) => extend(out, values, i64::from),
        (Kind::UInt(8), Decoded::Int32(values)) => extend(out, values, |x| (x as u8).into()),
        (Kind::UInt(16), Decoded::Int32(values)) => extend(out, values, |x| (x as u16).into()),
        (Kind::UInt(_), Decoded::Int32(values)) => extend(out, values, |x| (x as u32).into()),
        (Kind::Int(_), Decoded::Int64(values)) => out.extend_from_slice(values),
        (Kind::UInt(_), Decoded::Int64(values)) => {
            if let Some(large) = values.iter().position(|&id| id < 0) {
                return Err(Fault::Large(large));
            }
            out.extend_from_slice(values);
        }
        _ => return Err(Fault::Kind),
    }
    Ok(())
}

fn extend<T: Copy>(out: &mut Vec<i64>, values: &[T], integer: impl Fn(T) -> i64) {
    out.extend(values.iter().map(|&value| integer(value)));
}

/// Appends numbers, NaN for null: booleans as 0 and 1, dates and timestamps in the unit of `cell`.
///
/// # Errors
/// If the cells have others, or a decimal's length is wrong.
pub(super) fn numbers(
    kind: &Kind,
    cells: &Cells<'_>,
    cell: Cell,
    out: &mut Vec<f64>,
) -> Result<(), Fault> {
    let instant = |ticks: i64, unit: Unit| {
        let a_second = unit.per_second();
        let nanoseconds = ticks.rem_euclid(a_second) * (1_000_000_000 / a_second);
        in_unit(ticks.div_euclid(a_second), nanoseconds as u32, cell)
    };
    match (kind, cells.decoded) {
        (Kind::Null, _) => out.extend(iter::repeat_n(f64::NAN, cells.count())),
        (Kind::Boolean, Decoded::Boolean(values)) => {
            each(cells, values, out, |x| f64::from(u8::from(x)));
        }
        (Kind::Int(8), Decoded::Int32(values)) => each(cells, values, out, |x| (x as i8).into()),
        (Kind::Int(16), Decoded::Int32(values)) => each(cells, values, out, |x| (x as i16).into()),
        (Kind::Int(_), Decoded::Int32(values)) => each(cells, values, out, f64::from),
        (Kind::Int(_), Decoded::Int64(values)) => each(cells, values, out, |x| x as f64),
        (Kind::UInt(8), Decoded::Int32(values)) => each(cells, values, out, |x| (x as u8).into()),
        (Kind::UInt(16), Decoded::Int32(values)) => each(cells, values, out, |x| (x as u16).into()),
        (Kind::UInt(_), Decoded::Int32(values)) => each(cells, values, out, |x| (x as u32).into()),
        (Kind::UInt(_), Decoded::Int64(values)) => each(cells, values, out, |x| x as u64 as f64),
        (Kind::Float(_), Decoded::Float(values)) => each(cells, values, out, f64::from),
        (Kind::Float(_), Decoded::Double(values)) => each(cells, values, out, |x| x),
        (Kind::Float(16), Decoded::Bytes(values)) => {
            let half = |value: &[u8]| Some(f16::from_le_bytes(value.try_into().ok()?));
            each_string(cells, values, out, |value| half(value).map(f64::from))?;
        }
        (Kind::Decimal { scale, .. }, Decoded::Int32(values)) => {
            let mut decimals = Decimals::new(*scale);
            each(cells, values, out, |x| decimals.integer(x.into()));
        }
        (Kind::Decimal { scale, .. }, Decoded::Int64(values)) => {
            let mut decimals = Decimals::new(*scale);
            each(cells, values, out, |x| decimals.integer(x));
        }
        (Kind::Decimal { scale, .. }, Decoded::Bytes(values)) => {
            let mut decimals = Decimals::new(*scale);
            each_string(cells, values, out, |value| decimals.bytes(value))?;
        }
        (Kind::Date, Decoded::Int32(values)) => {
            each(cells, values, out, |days| in_unit(i64::from(days) * DAY, 0, cell));
        }
        (Kind::DateMillis, Decoded::Int32(values)) => {
            each(cells, values, out, |days| in_unit(i64::from(days) * DAY, 0, cell));
        }
        (Kind::DateMillis, Decoded::Int64(values)) => {
            each(cells, values, out, |ticks| instant(ticks, Unit::Milli));
        }
        (Kind::Timestamp { unit, .. }, Decoded::Int32(values)) => {
            each(cells, values, out, |ticks| instant(ticks.into(), *unit));
        }
        (Kind::Timestamp { unit, .. }, Decoded::Int64(values)) => {
            each(cells, values, out, |ticks| instant(ticks, *unit));
        }
        (Kind::Timestamp { .. }, Decoded::Int96(values)) => {
            each(cells, values, out, |moment| julian(moment, cell));
        }
        _ => return Err(Fault::Kind),
    }
    Ok(())
}

/// Seconds of a day.
const DAY: i64 = 86_400;

fn each<T: Copy>(
    cells: &Cells<'_>,
    values: &[T],
    out: &mut Vec<f64>,
    mut number: impl FnMut(T) -> f64,
) {
    out.reserve(values.len());
    let values = values.iter();
    cells.for_each(values, |value| out.push(value.map_or(f64::NAN, |&value| number(value))));
}

/// Appends the numbers of byte strings.
///
/// # Errors
/// For the first that is none.
fn each_string(
    cells: &Cells<'_>,
    values: Strings<'_>,
    out: &mut Vec<f64>,
    mut number: impl FnMut(&[u8]) -> Option<f64>,
) -> Result<(), Fault> {
    let first = out.len();
    let mut bad = None;
    cells.for_each(values.iter(), |value| {
        let found = value.map_or(Some(f64::NAN), &mut number);
        if found.is_none() {
            bad = bad.or(Some(out.len() - first));
        }
        out.push(found.unwrap_or(f64::NAN));
    });
    bad.map_or(Ok(()), |place| Err(Fault::Length(place)))
}

/// A moment of the older kind: nanoseconds of a day, and the number of the day in the Julian period.
fn julian(moment: Int96, cell: Cell) -> f64 {
    const EPOCH: i64 = 2_440_588;
    const SECOND: i64 = 1_000_000_000;
    let data = moment.data();
    let nanoseconds = i64::from(data[1] as i32) << 32 | i64::from(data[0]);
    let seconds = (i64::from(data[2] as i32) - EPOCH) * DAY + nanoseconds.div_euclid(SECOND);
    in_unit(seconds, nanoseconds.rem_euclid(SECOND) as u32, cell)
}

/// Appends texts, empty for null: also of integers, of booleans (`true`, `false`) and of
/// floating-point numbers.
///
/// # Errors
/// If the cells have others, or a text is not UTF-8.
pub(super) fn texts(kind: &Kind, cells: &Cells<'_>, out: &mut Values) -> Result<(), Fault> {
    match (kind, cells.decoded) {
        (Kind::Utf8, Decoded::Bytes(values)) => each_utf8(cells, values, out)?,
        (Kind::Null, _) => (0..cells.count()).for_each(|_| out.push_text(b"")),
        (Kind::Boolean, Decoded::Boolean(values)) => each_text(cells, values, out, |x| x),
        (Kind::Int(8), Decoded::Int32(values)) => each_text(cells, values, out, |x| x as i8),
        (Kind::Int(16), Decoded::Int32(values)) => each_text(cells, values, out, |x| x as i16),
        (Kind::Int(_), Decoded::Int32(values)) => each_text(cells, values, out, |x| x),
        (Kind::Int(_), Decoded::Int64(values)) => each_text(cells, values, out, |x| x),
        (Kind::UInt(8), Decoded::Int32(values)) => each_text(cells, values, out, |x| x as u8),
        (Kind::UInt(16), Decoded::Int32(values)) => each_text(cells, values, out, |x| x as u16),
        (Kind::UInt(_), Decoded::Int32(values)) => each_text(cells, values, out, |x| x as u32),
        (Kind::UInt(_), Decoded::Int64(values)) => each_text(cells, values, out, |x| x as u64),
        (Kind::Float(_), Decoded::Float(values)) => each_text(cells, values, out, |x| x),
        (Kind::Float(_), Decoded::Double(values)) => each_text(cells, values, out, |x| x),
        _ => return Err(Fault::Kind),
    }
    Ok(())
}

fn each_utf8(cells: &Cells<'_>, values: Strings<'_>, out: &mut Values) -> Result<(), Fault> {
    // One check over all bytes is faster than one per text, which are short; none may end within a
    // character.
    let whole = std::str::from_utf8(values.bytes);
    if !whole.is_ok_and(|whole| values.ends.iter().all(|&end| whole.is_char_boundary(end))) {
        let bad = values.iter().position(|value| std::str::from_utf8(value).is_err());
        return Err(Fault::Encoding(cells.place(bad.unwrap_or(0))));
    }
    let Values::Text(bytes, ends) = out else { return Err(Fault::Kind) };
    ends.reserve(cells.count());
    cells.for_each(values.iter(), |value| {
        bytes.extend_from_slice(value.unwrap_or_default());
        ends.push(bytes.len());
    });
    Ok(())
}

fn each_text<T: Copy, U: Display>(
    cells: &Cells<'_>,
    values: &[T],
    out: &mut Values,
    shown: impl Fn(T) -> U,
) {
    let mut text = String::new();
    cells.for_each(values.iter(), |value| {
        text.clear();
        if let Some(&value) = value {
            let _ = write!(text, "{}", shown(value));
        }
        out.push_text(text.as_bytes());
    });
}
