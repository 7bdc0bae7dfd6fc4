//! How columns of a nodes table become features.

use super::{Batch, Cell, TableReader};
use crate::error::{Error, Result};
use crate::import::columns::not_finite;
use crate::import::ids::StringIds;

/// What becomes of a column of node features.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Transform {
    /// Numbers stay as they are.
    #[default]
    None,
    /// Numbers less their mean, over their standard deviation.
    Standard,
    /// Numbers from 0, the smallest, to 1, the largest.
    MaxMin,
    /// A column of 0 and 1 for each value, in order of appearance.
    Categorical,
}

/// A column of node features.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Feature {
    /// Its name; `x*` stands for all columns that start with `x`.
    pub column: String,
    /// What becomes of it.
    pub transform: Transform,
}

impl From<&str> for Feature {
    fn from(column: &str) -> Self {
        Self { column: column.into(), transform: Transform::None }
    }
}

impl From<String> for Feature {
    fn from(column: String) -> Self {
        Self { column, transform: Transform::None }
    }
}

/// A column and what is known of its values.
pub(super) struct Fitted {
    pub column: usize,
    map: Map,
}

enum Map {
    /// `(x - shift) * scale`.
    Linear {
        shift: f64,
        scale: f64,
    },
    Categories(StringIds),
}

/// What a pass over a column finds.
enum Found {
    Moments { count: f64, mean: f64, squares: f64 },
    Range { low: f64, high: f64 },
    Categories(StringIds),
}

impl Fitted {
    /// The column as it is.
    pub fn plain(column: usize) -> Self {
        Self { column, map: Map::Linear { shift: 0.0, scale: 1.0 } }
    }

    /// How its cells are read.
    pub fn cell(&self) -> Cell {
        match self.map {
            Map::Linear { .. } => Cell::Number,
            Map::Categories(_) => Cell::Text,
        }
    }

    /// Features that the column makes.
    pub fn width(&self, reader: &dyn TableReader) -> usize {
        match &self.map {
            Map::Linear { .. } => reader.width(self.column),
            Map::Categories(values) => values.len() as usize,
        }
    }

    /// Appends the features of a row; `values` is the column's place in the batch.
    ///
    /// # Errors
    /// If one is not finite, naming the place.
    pub fn push(
        &self,
        reader: &dyn TableReader,
        batch: &Batch,
        (values, row): (usize, usize),
        out: &mut Vec<f32>,
    ) -> Result<()> {
        let (start, place) = (out.len(), batch.places[row]);
        match &self.map {
            Map::Categories(known) => {
                out.resize(start + known.len() as usize, 0.0);
                if let Some(value) = known.find(batch.columns[values].text(row)) {
                    out[start + value as usize] = 1.0;
                }
            }
            Map::Linear { shift, scale } => {
                let width = reader.width(self.column);
                let cells = &batch.columns[values].numbers()[row * width..][..width];
                out.extend(cells.iter().map(|v| ((v - shift) * scale) as f32));
            }
        }
        match out[start..].iter().find(|v| !v.is_finite()) {
            None => Ok(()),
            Some(value) => {
                let name = &reader.columns()[self.column];
                let hint = format!("column '{name}', {}", reader.place(place));
                Err(not_finite(reader.name(), place, self.column as u64, *value).hint(hint))
            }
        }
    }
}

/// Reads the whole table for what the transforms of `columns` need to know. The reader is at its end
/// afterwards.
///
/// # Errors
/// If a value is no number where one is needed, or there are too many categories.
pub(super) fn fit(
    reader: &mut dyn TableReader,
    columns: &[(usize, Transform)],
    memory: u64,
) -> Result<Vec<Fitted>> {
    let mut found: Vec<(usize, Found)> = Vec::new();
    for &(column, transform) in columns {
        found.push((
            column,
            match transform {
                Transform::None => continue,
                Transform::Standard => Found::Moments { count: 0.0, mean: 0.0, squares: 0.0 },
                Transform::MaxMin => Found::Range { low: f64::INFINITY, high: f64::NEG_INFINITY },
                Transform::Categorical => Found::Categories(StringIds::default()),
            },
        ));
    }
    if !found.is_empty() {
        let cell = |found: &Found| match found {
            Found::Categories(_) => Cell::Text,
            _ => Cell::Number,
        };
        reader.select(found.iter().map(|(column, found)| (*column, cell(found))).collect())?;
        let mut batch = Batch::default();
        while reader.next(&mut batch)? {
            for (i, (_, found)) in found.iter_mut().enumerate() {
                add(found, &batch, i, memory)?;
            }
        }
    }
    let mut found = found.into_iter();
    let mut fitted = Vec::new();
    for &(column, transform) in columns {
        let known = (transform != Transform::None).then(|| found.next()).flatten();
        fitted.push(match known {
            None => Fitted::plain(column),
            Some((column, found)) => Fitted { column, map: map_of(found) },
        });
    }
    let categories = fitted.iter().map(|fitted| match &fitted.map {
        Map::Categories(values) => values.len(),
        Map::Linear { .. } => 0,
    });
    match categories.max() {
        Some(many) if many > 1 << 16 => {
            Err(Error::invalid(format!("{}: a column has {many} categories", reader.name()))
                .hint("a column of ids makes no categories"))
        }
        _ => Ok(fitted),
    }
}

fn add(found: &mut Found, batch: &Batch, column: usize, memory: u64) -> Result<()> {
    let numbers = batch.columns[column].numbers();
    match found {
        // Welford's running mean and sum of squares.
        Found::Moments { count, mean, squares } => {
            for &x in numbers {
                *count += 1.0;
                let before = x - *mean;
                *mean += before / *count;
                *squares += before * (x - *mean);
            }
        }
        Found::Range { low, high } => {
            for &x in numbers {
                (*low, *high) = (low.min(x), high.max(x));
            }
        }
        Found::Categories(values) => {
            for row in 0..batch.rows() {
                values.insert(batch.columns[column].text(row), memory)?;
            }
        }
    }
    Ok(())
}

/// Columns of one value become zeros.
fn map_of(found: Found) -> Map {
    let inverse = |x: f64| if x > 0.0 { 1.0 / x } else { 0.0 };
    match found {
        Found::Moments { count, mean, squares } => {
            Map::Linear { shift: mean, scale: inverse((squares / count.max(1.0)).sqrt()) }
        }
        Found::Range { low, high } => Map::Linear { shift: low, scale: inverse(high - low) },
        Found::Categories(values) => Map::Categories(values),
    }
}
