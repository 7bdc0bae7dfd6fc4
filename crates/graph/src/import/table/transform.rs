//! How columns of a table become features.

use std::fmt;
use std::str::FromStr;

use super::numbers::{Numbers, is_missing};
use super::{Batch, Cell, TableReader};
use crate::error::{Error, Kind, Result};
use crate::import::ids::StringIds;
use crate::inspect::grouped;

/// What becomes of a column of features.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Transform {
    /// Numbers stay as they are.
    #[default]
    None,
    /// Numbers less their mean, over their standard deviation.
    Standard,
    /// Numbers from 0, the smallest, to 1, the largest.
    MaxMin,
    /// A column of 0 and 1 for each value, in order of appearance; all 0 where the value is missing.
    Categorical,
}

/// What stands in for a missing number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Impute {
    /// The mean of the column's other numbers.
    Mean,
    /// Their median: the middle one, of two in the middle their mean.
    Median,
    /// A number.
    Value(f64),
}

impl FromStr for Impute {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "mean" => Ok(Self::Mean),
            "median" => Ok(Self::Median),
            number => match number.parse::<f64>() {
                Ok(value) if value.is_finite() => Ok(Self::Value(value)),
                _ => Err(Error::usage(format!("invalid value '{text}' for missing numbers"))
                    .hint("expected mean, median or a number")),
            },
        }
    }
}

impl fmt::Display for Impute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mean => f.write_str("the mean"),
            Self::Median => f.write_str("the median"),
            Self::Value(_) => f.write_str("as asked"),
        }
    }
}

/// A column of features.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Feature {
    /// Its name; `x*` stands for all columns that start with `x`.
    pub column: String,
    /// What becomes of it.
    pub transform: Transform,
    /// What stands in for missing numbers, before the transform; they are an error otherwise.
    pub impute: Option<Impute>,
    /// Add a column of 0 and 1 behind it that says where a number is missing, if one is.
    pub indicator: bool,
}

impl From<&str> for Feature {
    fn from(column: &str) -> Self {
        Self { column: column.into(), ..Self::default() }
    }
}

impl From<String> for Feature {
    fn from(column: String) -> Self {
        Self { column, ..Self::default() }
    }
}

/// A column and what is known of its values.
pub(super) struct Fitted {
    source: Source,
    /// Numbers in a cell.
    width: usize,
    /// Whether a column of 0 and 1 behind it says where a number was missing.
    indicator: bool,
}

enum Source {
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

/// Categories of a column, at most: a column of identifiers makes no categories.
const MOST_CATEGORIES: u64 = 1 << 16;

impl Fitted {
    /// The column of the table.
    pub fn column(&self) -> usize {
        match &self.source {
            Source::Numbers { numbers, .. } => numbers.column,
            Source::Categories { column, .. } => *column,
        }
    }

    /// How its cells are read.
    pub fn cell(&self) -> Cell {
        match &self.source {
            Source::Numbers { numbers, .. } => numbers.cell(),
            Source::Categories { .. } => Cell::Text,
        }
    }

    /// Features that the column makes.
    pub fn width(&self) -> usize {
        match &self.source {
            Source::Numbers { .. } => self.width + usize::from(self.indicator),
            Source::Categories { known, .. } => known.len() as usize,
        }
    }

    /// Writes the features of a batch, of which the column is number `values`, to rows of `stride`
    /// features from their number `start` on.
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

/// Columns to rows of features: replaces `out` by those of a batch whose first columns are `features`,
/// from its column number `first` on.
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

/// What a pass over a column finds.
#[derive(Default)]
struct Found {
    count: f64,
    missing: u64,
    mean: f64,
    squares: f64,
    low: f64,
    high: f64,
    /// All numbers, if their median is asked for.
    all: Option<Vec<f64>>,
    categories: StringIds,
}

/// Reads what the transforms of `columns` need to know; `open` opens the table, once or twice.
///
/// # Errors
/// If a value is no number where one is needed, there are too many categories, or medians exceed
/// `memory`.
pub(super) fn fit(
    open: &dyn Fn() -> Result<Box<dyn TableReader>>,
    columns: &[(usize, Feature)],
    memory: u64,
) -> Result<Vec<Fitted>> {
    let mut reader = open()?;
    let is_category = |feature: &Feature| feature.transform == Transform::Categorical;
    let wanted = columns.iter().filter(|(_, feature)| !is_category(feature));
    let wanted: Vec<(usize, Cell)> = wanted.map(|(column, _)| (*column, Cell::Number)).collect();
    let mut numbers = Numbers::find(&mut *reader, &wanted)?.into_iter();
    let mut fitted = Vec::new();
    for (column, feature) in columns {
        let width = reader.width(*column);
        let source = match is_category(feature) {
            true => Source::Categories { column: *column, known: StringIds::default() },
            false => Source::Numbers {
                numbers: numbers.next().expect("one for each column of numbers"),
                fill: None,
                shift: 0.0,
                scale: 1.0,
            },
        };
        fitted.push(Fitted { source, width, indicator: false });
    }
    let plain = |feature: &Feature| feature.transform == Transform::None;
    let mut passes: Vec<usize> = Vec::new();
    for (i, (column, feature)) in columns.iter().enumerate() {
        let single = reader.width(*column) == 1;
        if !single && !plain(feature) {
            let name = &reader.columns()[*column];
            return Err(Error::invalid(format!("{}: column '{name}' holds lists", reader.name()))
                .hint("a transform is for columns of single values"));
        }
        if single && (!plain(feature) || feature.impute.is_some()) {
            passes.push(i);
        } else if let (Some(Impute::Value(value)), Source::Numbers { fill, .. }) =
            (feature.impute, &mut fitted[i].source)
        {
            *fill = Some(value);
        }
    }
    if passes.is_empty() {
        return Ok(fitted);
    }
    let mut reader = open()?;
    reader.select(passes.iter().map(|&i| (fitted[i].column(), fitted[i].cell())).collect())?;
    let mut found: Vec<Found> = passes.iter().map(|&i| Found::new(&columns[i].1)).collect();
    let (mut batch, mut rows) = (Batch::default(), 0);
    while reader.next(&mut batch)? {
        for (at, (&i, found)) in passes.iter().zip(&mut found).enumerate() {
            found.add(&*reader, &batch, at, &fitted[i].source, memory)?;
        }
        rows += batch.rows() as u64;
        let held: usize = found.iter().flat_map(|f| &f.all).map(Vec::len).sum();
        if held as u64 * 8 > memory {
            return Err(Error::new(
                Kind::Limit,
                format!("{}: medians do not fit in --memory", reader.name()),
            )
            .hint("use --impute mean, or raise --memory"));
        }
    }
    for (&i, found) in passes.iter().zip(found) {
        let (column, feature) = &columns[i];
        let name = &reader.columns()[*column];
        let place = format!("{}: column '{name}'", reader.name());
        found.settle(feature, &mut fitted[i], &place, rows)?;
    }
    Ok(fitted)
}

impl Found {
    fn new(feature: &Feature) -> Self {
        let all = (feature.impute == Some(Impute::Median)).then(Vec::new);
        Self { low: f64::INFINITY, high: f64::NEG_INFINITY, all, ..Self::default() }
    }

    fn add(
        &mut self,
        reader: &dyn TableReader,
        batch: &Batch,
        column: usize,
        source: &Source,
        memory: u64,
    ) -> Result<()> {
        let Source::Numbers { numbers, .. } = source else {
            for row in 0..batch.rows() {
                let text = batch.columns[column].text(row);
                if text.is_empty() || is_missing(&String::from_utf8_lossy(text)) {
                    self.missing += 1;
                } else {
                    self.categories.insert(text, memory)?;
                }
            }
            return Ok(());
        };
        for &x in numbers.read(reader, batch, column)?.iter() {
            if x.is_nan() {
                self.missing += 1;
                continue;
            }
            // Welford's running mean and sum of squares.
            self.count += 1.0;
            let before = x - self.mean;
            self.mean += before / self.count;
            self.squares += before * (x - self.mean);
            self.low = self.low.min(x);
            self.high = self.high.max(x);
            if let Some(all) = &mut self.all {
                all.push(x);
            }
        }
        Ok(())
    }

    /// Completes `fitted` and says what is done about missing values; `place` names the column, which
    /// has `rows` rows. Columns of one value become zeros.
    fn settle(self, feature: &Feature, fitted: &mut Fitted, place: &str, rows: u64) -> Result<()> {
        let missing = format!("{} of {}", grouped(self.missing), grouped(rows));
        let (shift, scale) = match &mut fitted.source {
            Source::Categories { known, .. } => {
                let count = self.categories.len();
                if count == 0 {
                    return Err(Error::invalid(format!("{place} has no value at all"))
                        .hint("leave the column out"));
                }
                if count > MOST_CATEGORIES {
                    return Err(Error::invalid(format!(
                        "{place} has {} categories",
                        grouped(count)
                    ))
                    .hint("a column of ids makes no categories"));
                }
                *known = self.categories;
                let zeros = match self.missing {
                    0 => String::new(),
                    _ => format!("; {missing} rows have none, all 0"),
                };
                tracing::info!("{place}: {} categories{zeros}", grouped(count));
                return Ok(());
            }
            Source::Numbers { fill, shift, scale, .. } => {
                if let Some(impute) = feature.impute.filter(|_| self.missing > 0) {
                    if self.count == 0.0 && !matches!(impute, Impute::Value(_)) {
                        return Err(Error::invalid(format!("{place} has no value at all"))
                            .hint("leave the column out, or give --impute a number"));
                    }
                    let value = match impute {
                        Impute::Mean => self.mean,
                        Impute::Median => median(self.all.unwrap_or_default()),
                        Impute::Value(value) => value,
                    };
                    *fill = Some(value);
                    fitted.indicator = feature.indicator;
                    tracing::info!(
                        "{place}: {missing} values are missing, {impute} {value} is used"
                    );
                }
                (shift, scale)
            }
        };
        let inverse = |x: f64| if x > 0.0 { 1.0 / x } else { 0.0 };
        match feature.transform {
            Transform::Standard => {
                *shift = self.mean;
                *scale = inverse((self.squares / self.count.max(1.0)).sqrt());
            }
            Transform::MaxMin if self.count > 0.0 => {
                *shift = self.low;
                *scale = inverse(self.high - self.low);
            }
            _ => {}
        }
        Ok(())
    }
}

/// The middle of some numbers, none of them NaN.
fn median(mut all: Vec<f64>) -> f64 {
    let middle = all.len() / 2;
    let even = all.len().is_multiple_of(2);
    let (below, &mut upper, _) = all.select_nth_unstable_by(middle, f64::total_cmp);
    let lower = below.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if even { lower + (upper - lower) / 2.0 } else { upper }
}
