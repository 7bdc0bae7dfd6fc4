//! Numeric columns: numbers, booleans, dates.

use std::borrow::Cow;

use chrono::{DateTime, NaiveDate, NaiveDateTime};
use gnarl_common::{Error, Result};

use super::fields::comma_hint;
use super::{Batch, Cell, TableReader, Values};

/// Seconds of a day.
const DAY: f64 = 86_400.0;

/// A numeric column, and the conversion of its cells. An empty cell is NaN.
pub(super) struct Numbers {
    pub column: usize,
    /// The unit of dates: [`Cell::Number`] for days since 1970-01-01, [`Cell::Seconds`] for seconds.
    unit: Cell,
    /// For columns read as text, the kind of values and the first of them, which determined it.
    text: Option<(Kind, String)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Number,
    Bool,
    Date,
}

impl Numbers {
    /// Determines how to read `columns` as numbers, with dates in the given unit. In text tables
    /// the first value of a column decides, so all of a column must be of one kind. The reader is
    /// at its end afterwards.
    ///
    /// # Errors
    /// If a column holds other text, naming it.
    pub fn find(reader: &mut dyn TableReader, columns: &[(usize, Cell)]) -> Result<Vec<Self>> {
        let open = columns.iter().map(|c| c.0).filter(|&column| !reader.is_numeric(column));
        let open: Vec<usize> = open.collect();
        let mut firsts = open.iter().zip(first_texts(reader, &open)?);
        let mut found = Vec::with_capacity(columns.len());
        for &(column, unit) in columns {
            let first = if reader.is_numeric(column) {
                None
            } else {
                firsts.next().and_then(|(_, first)| first)
            };
            let text = match first {
                None => None,
                Some(first) => match Kind::of(&first) {
                    None => return Err(not_numbers(reader, column, &first)),
                    // Text tables parse plain numbers themselves; strings of a typed file are text.
                    Some(Kind::Number) if !reader.looks_text(column) => None,
                    Some(kind) => Some((kind, first)),
                },
            };
            found.push(Self { column, unit, text });
        }
        Ok(found)
    }

    /// The cell type to request from the reader.
    pub fn cell(&self) -> Cell {
        if self.text.is_some() { Cell::Text } else { self.unit }
    }

    /// The numbers of a batch, of which the column is number `values`.
    ///
    /// # Errors
    /// If a cell is of another kind than the first, naming column and place.
    pub fn read<'a>(
        &self,
        reader: &dyn TableReader,
        batch: &'a Batch,
        values: usize,
    ) -> Result<Cow<'a, [f64]>> {
        let values = &batch.columns[values];
        let Some((kind, first)) = &self.text else { return Ok(values.numbers().into()) };
        let mut numbers = Vec::with_capacity(batch.rows());
        for (row, &place) in batch.places.iter().enumerate() {
            let text = String::from_utf8_lossy(values.text(row));
            let number =
                if is_missing(&text) { Some(f64::NAN) } else { kind.parse(&text, self.unit) };
            numbers.push(number.ok_or_else(|| {
                let (place, name) = (reader.place(place), &reader.columns()[self.column]);
                let what = kind.name();
                Error::invalid(format!("{place}: column '{name}': '{text}' is not {what}"))
                    .hint(format!("its first value, '{first}', is: a column is of one kind"))
            })?);
        }
        Ok(numbers.into())
    }
}

impl Kind {
    fn of(text: &str) -> Option<Self> {
        let kinds = [Self::Number, Self::Bool, Self::Date];
        kinds.into_iter().find(|kind| kind.parse(text, Cell::Number).is_some())
    }

    fn name(self) -> &'static str {
        match self {
            Self::Number => "a number",
            Self::Bool => "true or false (or yes or no)",
            Self::Date => "a date, such as 2025-05-03 or 2025-05-03T12:30:00Z",
        }
    }

    fn parse(self, text: &str, unit: Cell) -> Option<f64> {
        let text = text.trim();
        let is = |words: [&str; 2]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
        match self {
            Self::Number => text.parse().ok(),
            Self::Bool if is(["true", "yes"]) => Some(1.0),
            Self::Bool if is(["false", "no"]) => Some(0.0),
            Self::Bool => None,
            Self::Date => {
                let (seconds, nanoseconds) = date(text)?;
                Some(in_unit(seconds, nanoseconds, unit))
            }
        }
    }
}

/// A moment, in seconds and nanoseconds after 1970-01-01, as whole seconds or as days.
pub(super) fn in_unit(seconds: i64, nanoseconds: u32, unit: Cell) -> f64 {
    match unit {
        Cell::Seconds => seconds as f64,
        _ => (seconds as f64 + f64::from(nanoseconds) * 1e-9) / DAY,
    }
}

/// Seconds since 1970-01-01 UTC, and nanoseconds beyond them, of a date or of a date and time in ISO 8601.
/// Without a time zone it is taken as UTC.
fn date(text: &str) -> Option<(i64, u32)> {
    let day = text.get(..10)?;
    // A byte of ten may be part of a longer character.
    let fits = |(i, byte): (usize, &u8)| match i {
        4 | 7 => *byte == b'-',
        _ => byte.is_ascii_digit(),
    };
    if !day.as_bytes().iter().enumerate().all(fits) {
        return None;
    }
    if text.len() == 10 {
        let day: NaiveDate = day.parse().ok()?;
        return Some((day.and_hms_opt(0, 0, 0)?.and_utc().timestamp(), 0));
    }
    if let Ok(moment) = text.parse::<DateTime<chrono::FixedOffset>>() {
        return Some((moment.timestamp(), moment.timestamp_subsec_nanos()));
    }
    let formats =
        ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M"];
    let moment = formats.iter().find_map(|form| NaiveDateTime::parse_from_str(text, form).ok())?;
    let moment = moment.and_utc();
    Some((moment.timestamp(), moment.timestamp_subsec_nanos()))
}

/// Returns whether a text cell is a missing value.
pub(super) fn is_missing(text: &str) -> bool {
    let text = text.trim();
    text.is_empty() || ["nan", "nat"].iter().any(|word| text.eq_ignore_ascii_case(word))
}

/// Returns whether a text is a number.
pub(super) fn is_number(text: &str) -> bool {
    Kind::Number.parse(text, Cell::Number).is_some()
}

/// The first value of each of `columns`, if there is one, as text. The reader is at its end afterwards.
///
/// # Errors
/// If the table cannot be read so far.
pub(super) fn first_texts(
    reader: &mut dyn TableReader,
    columns: &[usize],
) -> Result<Vec<Option<String>>> {
    // A reader delivers each column once.
    let mut distinct = columns.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    let mut firsts: Vec<Option<String>> = vec![None; distinct.len()];
    if !distinct.is_empty() {
        reader.select(distinct.iter().map(|&column| (column, Cell::Text)).collect())?;
    }
    let mut batch = Batch::default();
    while firsts.iter().any(Option::is_none) && reader.next(&mut batch)? {
        for (first, values) in firsts.iter_mut().zip(&batch.columns) {
            if first.is_none() {
                *first = first_text(values, batch.rows());
            }
        }
    }
    let of = |column| distinct.binary_search(column).ok().and_then(|i| firsts[i].clone());
    Ok(columns.iter().map(of).collect())
}

fn first_text(values: &Values, rows: usize) -> Option<String> {
    let texts = (0..rows).map(|row| String::from_utf8_lossy(values.text(row)));
    texts.into_iter().find(|text| !is_missing(text)).map(Cow::into_owned)
}

fn not_numbers(reader: &dyn TableReader, column: usize, first: &str) -> Error {
    let name = &reader.columns()[column];
    let error = Error::invalid(format!(
        "{}: column '{name}' holds text such as '{first}', numbers are needed",
        reader.name()
    ));
    match comma_hint(first.as_bytes()) {
        Some(hint) => error.hint(hint),
        None => error.hint(format!(
            "--categorical {name} makes features of it, a column of 0 and 1 for each value; in a \
             schema file, the transform to_categorical"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_become_days_and_seconds() {
        let days = |text: &str| Kind::Date.parse(text, Cell::Number);
        let seconds = |text: &str| Kind::Date.parse(text, Cell::Seconds);
        assert_eq!(days("1970-01-02"), Some(1.0));
        assert_eq!(days("1969-12-31"), Some(-1.0));
        assert_eq!(days("1970-01-02T06:00:00"), Some(1.25));
        assert_eq!(days("1970-01-02 06:00"), Some(1.25));
        for text in [
            "2025-05-03T12:30:00Z",
            "2025-05-03 12:30:00",
            "2025-05-03T14:30:00+02:00",
            "2025-05-03T12:30:00.75",
            "2025-05-03 12:30:00.75+00:00",
            " 2025-05-03 12:30 ",
        ] {
            assert_eq!(seconds(text), Some(1_746_275_400.0), "{text}");
        }
        for text in [
            "2025-13-03",
            "2025-02-30",
            "25-05-03",
            "2025/05/03",
            "2025-05-03T25:00",
            "é25-05-03x",
            "2020-02\u{feff}-2",
        ] {
            assert_eq!(days(text), None, "{text}");
        }
    }

    #[test]
    fn kinds_are_told_apart() {
        assert_eq!(Kind::of("-1.5e3"), Some(Kind::Number));
        assert!(["True", "FALSE", "yes", "No"].iter().all(|t| Kind::of(t) == Some(Kind::Bool)));
        assert_eq!(Kind::of("2025-05-03"), Some(Kind::Date));
        assert_eq!(Kind::of("de"), None);
    }
}
