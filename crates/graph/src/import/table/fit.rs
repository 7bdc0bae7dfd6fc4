//! Passes over a table that collect statistics for the transforms of its columns.

use gnarl_common::{Error, Kind, Result};

use super::numbers::{Numbers, is_missing};
use super::transform::{Fitted, Source};
use super::{Batch, Cell, Feature, Impute, TableReader, Transform};
use crate::import::ids::StringIds;
use crate::inspect::grouped;

/// Most categories of a column: a column of identifiers is not categorical.
const MOST_CATEGORIES: u64 = 1 << 16;

/// Statistics of a column.
#[derive(Default)]
struct Found {
    count: f64,
    missing: u64,
    mean: f64,
    squares: f64,
    low: f64,
    high: f64,
    /// All numbers, if their median is required.
    all: Option<Vec<f64>>,
    categories: StringIds,
}

/// Collects the statistics for the transforms of `columns`; `open` opens the table, up to twice.
///
/// # Errors
/// If a value is no number where one is required, there are too many categories, or medians exceed
/// `memory`.
pub(super) fn fit(
    open: &dyn Fn() -> Result<Box<dyn TableReader>>,
    columns: &[(usize, Feature)],
    memory: u64,
) -> Result<Vec<Fitted>> {
    if columns.is_empty() {
        return Ok(Vec::new());
    }
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

    /// Completes `fitted` and logs the treatment of missing values; `place` names the column, which
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

/// The median of numbers other than NaN.
fn median(mut all: Vec<f64>) -> f64 {
    let middle = all.len() / 2;
    let even = all.len().is_multiple_of(2);
    let (below, &mut upper, _) = all.select_nth_unstable_by(middle, f64::total_cmp);
    let lower = below.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if even { lower + (upper - lower) / 2.0 } else { upper }
}
