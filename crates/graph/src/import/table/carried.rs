//! Edge columns of a table: numbers, features, classes and splits.

use gnarl_common::rng::Key;
use gnarl_common::{Error, Kind, Result};

use super::fit::fit;
use super::labels::{Classes, Sealed};
use super::numbers::Numbers;
use super::options::{EdgeTable, TableOptions, check_shares};
use super::roles::EdgeColumns;
use super::transform::{Fitted, rows_of};
use super::{Batch, Cell, TableReader};
use crate::import::extra::{Extra, NO_SPLIT};
use crate::import::splits::{EdgeSplits, split_number};

/// The edge columns of a table: first those stored unchanged.
pub(super) struct Carried {
    /// Numbers with their storage.
    numbers: Vec<(Extra, Numbers)>,
    features: Vec<Fitted>,
    classes: Option<Classes>,
    /// True if a column names the split of each edge.
    named: bool,
    /// Shares of the labeled edges for random splits.
    shares: Option<[f64; 3]>,
    splits: EdgeSplits,
}

/// Results of reading all edges.
pub(super) struct Known {
    pub classes: Option<Sealed>,
    pub splits: EdgeSplits,
}

/// Determines the edge columns and their storage; adds the columns to `cells`. `again` reopens the
/// table.
///
/// # Errors
/// If a column has values of another kind, or cannot be used in its role.
pub(super) fn columns(
    (table, options): (&EdgeTable, &TableOptions),
    (reader, found): (&dyn TableReader, &EdgeColumns),
    again: &dyn Fn() -> Result<Box<dyn TableReader>>,
    cells: &mut Vec<(usize, Cell)>,
) -> Result<(Vec<Extra>, Carried)> {
    if table.label.is_some() && table.value.is_some() {
        return Err(Error::usage(format!("{}: edges with both labels and values", table.triple))
            .hint("classes are a label, numbers for a regression a value"));
    }
    let asked = [
        (Extra::Weight(options.weight_type), found.weight, Cell::Number),
        (Extra::Time, found.time, Cell::Seconds),
        (Extra::Value, found.value, Cell::Number),
    ];
    let asked =
        asked.into_iter().filter_map(|(extra, column, unit)| Some((extra, (column?, unit))));
    let (mut extras, units): (Vec<Extra>, Vec<(usize, Cell)>) = asked.unzip();
    let mut numbers = Vec::new();
    if !units.is_empty() {
        numbers = extras.iter().copied().zip(Numbers::find(&mut *again()?, &units)?).collect();
        cells.extend(numbers.iter().map(|(_, numbers)| (numbers.column, numbers.cell())));
    }
    if let Some((list, _)) = found.features.iter().find(|(column, _)| reader.width(*column) != 1) {
        let column = &reader.columns()[*list];
        return Err(Error::invalid(format!("{}: column '{column}' holds lists", reader.name()))
            .hint("features of edges are columns of single numbers"));
    }
    let features = fit(again, &found.features, options.memory)?;
    if !features.is_empty() {
        extras.push(Extra::Features(features.iter().map(Fitted::width).sum()));
        cells.extend(features.iter().map(|feature| (feature.column(), feature.cell())));
    }
    let mut classes = None;
    if let Some(column) = found.label {
        let cell = Classes::cell(reader, column, again)?;
        cells.push((column, cell));
        extras.push(Extra::Class);
        classes = Some(Classes::new(cell, None, options.memory));
    }
    if let Some(column) = found.split {
        cells.push((column, Cell::Text));
    }
    table.shares.map_or(Ok(()), check_shares)?;
    let (named, shares) = (table.split.is_some(), table.shares.filter(|_| table.split.is_none()));
    if named || shares.is_some() {
        extras.push(Extra::Split);
    }
    let splits = EdgeSplits::default();
    Ok((extras, Carried { numbers, features, classes, named, shares, splits }))
}

impl Carried {
    /// Appends the edge columns of a batch, one after the other; `first` is their first row.
    pub fn values(
        &mut self,
        reader: &dyn TableReader,
        batch: &Batch,
        first: u64,
        out: &mut Vec<f64>,
    ) -> Result<()> {
        // The endpoints are the first two columns.
        let mut at = 2;
        for (extra, numbers) in &self.numbers {
            let read = numbers.read(reader, batch, at)?;
            let name = &reader.columns()[numbers.column];
            for (row, &value) in read.iter().enumerate() {
                let place = || format!("{}: column '{name}'", reader.place(batch.places[row]));
                let Some(fault) = fault(*extra, value, place) else { continue };
                return Err(match another_fault(*extra, &read[row..]) {
                    Some((ahead, what)) => {
                        fault.hint(format!("{}: {what}", reader.place(batch.places[row + ahead])))
                    }
                    None => fault,
                });
            }
            out.extend_from_slice(&read);
            at += 1;
        }
        let mut rows = Vec::new();
        rows_of(reader, batch, (&self.features, at), &mut rows)?;
        let width: usize = self.features.iter().map(Fitted::width).sum();
        let columns = (0..width).flat_map(|c| rows.iter().skip(c).step_by(width));
        out.extend(columns.map(|&feature| f64::from(feature)));
        at += self.features.len();
        let mut labelled = vec![true; batch.rows()];
        if let Some(classes) = &mut self.classes {
            let found = classes.read(reader, batch, at)?;
            labelled = found.iter().map(|&class| class >= 0).collect();
            out.extend(found.iter().map(|&class| f64::from(class)));
        }
        if self.named {
            let names = batch.columns.last().expect("selected last");
            for (row, &place) in batch.places.iter().enumerate() {
                let name = String::from_utf8_lossy(names.text(row));
                let number = match &*name {
                    "" => Ok(NO_SPLIT),
                    name => split_number(name, Kind::InvalidInput),
                };
                let number = number.map_err(|e| e.context(reader.place(place)))?;
                out.push(f64::from(self.splits.keep(number, labelled[row])));
            }
        } else if let Some(shares) = self.shares {
            let split = |(&labelled, row)| match labelled {
                true => f64::from(drawn(row, shares)),
                false => f64::from(NO_SPLIT),
            };
            out.extend(labelled.iter().zip(first..).map(split));
        }
        Ok(())
    }

    /// The results once all edges were read.
    pub fn seal(self) -> Known {
        Known { classes: self.classes.map(Classes::seal), splits: self.splits }
    }
}

/// The random split of the edge in a row, with the given probabilities.
fn drawn(row: u64, shares: [f64; 3]) -> u8 {
    let unit = Key::new(0).with(0x6564_6765).unit(row);
    let mut end = 0.0;
    for (number, share) in (0..).zip(shares) {
        end += share;
        // Shares that sum up to a whole leave no edge out, whatever the rounding of their sum.
        if unit < end || (number == 2 && end > 0.999_999) {
            return number;
        }
    }
    NO_SPLIT
}

/// The error of a number, found at `place`, that edges cannot have.
fn fault(extra: Extra, value: f64, place: impl FnOnce() -> String) -> Option<Error> {
    if value.is_nan() {
        return Some(
            Error::invalid(format!("{}: the value is missing", place()))
                .hint("every edge of the table needs one"),
        );
    }
    extra.check(value, place).err()
}

/// The first error of another kind than that of the first number, and its distance: a column
/// with missing weights often has negative ones too.
fn another_fault(extra: Extra, numbers: &[f64]) -> Option<(usize, String)> {
    let missing = numbers[0].is_nan();
    let ahead = numbers
        .iter()
        .position(|value| value.is_nan() != missing && extra.check(*value, String::new).is_err())?;
    let fault = match missing {
        true => format!("the {} is refused too", numbers[ahead]),
        false => "one is missing, too".into(),
    };
    Some((ahead, fault))
}
