//! Transforms from table columns to features.

use gnarl_common::{Error, Result};

use super::numbers::Numbers;
use super::{Batch, Cell, TableReader};
use crate::import::ids::StringIds;

/// A column with its fitted statistics.
pub(super) struct Fitted {
    pub source: Source,
    /// Numbers in a cell.
    pub width: usize,
    /// True if a column of 0 and 1 behind it marks missing numbers.
    pub indicator: bool,
}

/// The values of a column, and the transform to features.
pub(super) enum Source {
    /// `(x - shift) * scale`, where a missing `x` is `fill`.
    Numbers {
        numbers: Numbers,
        fill: Option<f64>,
        shift: f64,
        scale: f64,
    },
    Categories {
        column: usize,
        known: StringIds,
    },
}

impl Fitted {
    /// Column of the table.
    pub fn column(&self) -> usize {
        match &self.source {
            Source::Numbers { numbers, .. } => numbers.column,
            Source::Categories { column, .. } => *column,
        }
    }

    /// Cell type.
    pub fn cell(&self) -> Cell {
        match &self.source {
            Source::Numbers { numbers, .. } => numbers.cell(),
            Source::Categories { .. } => Cell::Text,
        }
    }

    /// Number of features.
    pub fn width(&self) -> usize {
        match &self.source {
            Source::Numbers { .. } => self.width + usize::from(self.indicator),
            Source::Categories { known, .. } => known.len() as usize,
        }
    }

    /// Writes the features of a batch, of which the column is number `values`, to rows of `stride`
    /// features from position `start` on.
    ///
    /// # Errors
    /// If one is missing or not finite, naming the place.
    fn write(
        &self,
        (reader, batch): (&dyn TableReader, &Batch),
        values: usize,
        out: &mut [f32],
        (start, stride): (usize, usize),
    ) -> Result<()> {
        let rows = out.chunks_exact_mut(stride).map(|row| &mut row[start..start + self.width()]);
        match &self.source {
            Source::Categories { known, .. } => {
                for (row, features) in rows.enumerate() {
                    if let Some(value) = known.find(batch.columns[values].text(row)) {
                        features[value as usize] = 1.0;
                    }
                }
            }
            Source::Numbers { numbers, fill, shift, scale } => {
                let read = numbers.read(reader, batch, values)?;
                for ((row, features), cells) in rows.enumerate().zip(read.chunks_exact(self.width))
                {
                    for (feature, &given) in features.iter_mut().zip(cells) {
                        let known = if given.is_nan() { fill.unwrap_or(given) } else { given };
                        *feature = ((known - shift) * scale) as f32;
                        if !feature.is_finite() {
                            return Err(self.bad(reader, batch.places[row], given));
                        }
                    }
                    if self.indicator {
                        features[self.width] = f32::from(u8::from(cells[0].is_nan()));
                    }
                }
            }
        }
        Ok(())
    }

    fn bad(&self, reader: &dyn TableReader, place: u64, given: f64) -> Error {
        let name = &reader.columns()[self.column()];
        let place = reader.place(place);
        if !given.is_nan() {
            return Error::invalid(format!("{place}: column '{name}': the feature is {given}"))
                .hint("features are finite numbers of single precision");
        }
        let error = Error::invalid(format!("{place}: column '{name}': the feature is missing"));
        match self.width {
            1 => error.hint(
                "fill it in with --impute mean, --impute median or --impute 0; in a schema file, \
                 \"impute\": \"mean\"",
            ),
            _ => error.hint("of lists only --impute 0, or another number, fills in numbers"),
        }
    }
}

/// Converts columns to rows of features: replaces `out` by those of a batch whose first columns are
/// `features`, from its column number `first` on.
///
/// # Errors
/// If one is missing or not finite, naming the place.
pub(super) fn rows_of(
    reader: &dyn TableReader,
    batch: &Batch,
    (features, first): (&[Fitted], usize),
    out: &mut Vec<f32>,
) -> Result<()> {
    let stride: usize = features.iter().map(Fitted::width).sum();
    out.clear();
    out.resize(batch.rows() * stride, 0.0);
    if stride == 0 {
        return Ok(());
    }
    let mut start = 0;
    for (i, feature) in features.iter().enumerate() {
        feature.write((reader, batch), first + i, out, (start, stride))?;
        start += feature.width();
    }
    Ok(())
}
