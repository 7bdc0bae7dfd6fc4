//! Tables of edges.

use std::path::Path;

use super::labels::{Classes, Sealed};
use super::numbers::Numbers;
use super::options::{EdgeTable, TableOptions};
use super::transform::{Fitted, rows_of};
use super::typed::{check_shares, fitted, optional, wants_text};
use super::{Batch, Cell, TableReader, open, string_pairs};
use crate::error::{Error, Kind, Result};
use crate::import::empty_graph;
use crate::import::extra::{Extra, NO_SPLIT};
use crate::import::ids::{Collector, IdMaps, Ids, StringIds, unknown};
use crate::import::splits::{EdgeSplits, split_number};
use crate::import::spool::Spool;
use crate::manifest::Triple;
use crate::rng::Key;

/// The columns of a table that edges carry: first those stored as they are.
struct Carried {
    /// Numbers and how each is stored.
    numbers: Vec<(Extra, Numbers)>,
    features: Vec<Fitted>,
    classes: Option<Classes>,
    /// Whether a column names the split of each edge.
    named: bool,
    /// Shares of the labelled edges that make the splits.
    shares: Option<[f64; 3]>,
    splits: EdgeSplits,
}

/// What is known of edges once all are put aside.
pub(super) struct Known {
    pub classes: Option<Sealed>,
    pub splits: EdgeSplits,
}

/// Puts the edges of a table aside.
///
/// # Errors
/// For the first bad value, by file and place.
pub(super) fn read(
    table: &EdgeTable,
    options: &TableOptions,
    maps: &mut IdMaps,
    memory: u64,
    dir: &Path,
) -> Result<(Spool, Known)> {
    let mut reader = open(&table.path, &options.format(), &table.src)?;
    let (src, dst) = (reader.require(&table.src, 0)?, reader.require(&table.dst, 1)?);
    let Triple { src: src_type, dst: dst_type, .. } = &table.triple;
    let mut cells = Vec::new();
    for (ntype, column) in [(src_type, src), (dst_type, dst)] {
        if !maps.contains_key(ntype) {
            let ids = match wants_text(options.ids, &*reader, column) {
                true => Ids::Strings { ids: StringIds::default(), closed: false },
                false => Ids::Open(Collector::default()),
            };
            maps.insert(ntype.clone(), ids);
        }
        let text = matches!(maps[ntype], Ids::Strings { .. });
        cells.push((column, if text { Cell::Text } else { Cell::Integer }));
    }
    let (extras, mut carried) = columns(table, options, &*reader, &mut cells)?;
    reader.select(cells)?;
    let raw = |ntype: &str| matches!(maps[ntype], Ids::Open(_));
    let mut spool = Spool::create(dir, extras, (raw(src_type), raw(dst_type)))?;
    let (mut batch, mut values) = (Batch::default(), Vec::new());
    while reader.next(&mut batch)? {
        let (sources, destinations) = match maps.get_mut(src_type) {
            Some(Ids::Strings { ids, closed: false }) if src_type == dst_type => {
                let (src, dst) = string_pairs(&batch, (0, 1), ids, memory)?;
                (src.into(), dst.into())
            }
            _ => (
                nodes_of(&*reader, &batch, 0, src_type, maps, memory)?,
                nodes_of(&*reader, &batch, 1, dst_type, maps, memory)?,
            ),
        };
        values.clear();
        carried.values(&*reader, &batch, spool.edges, &mut values)?;
        spool.push(&sources, &destinations, &values)?;
    }
    if spool.edges == 0 {
        return Err(empty_graph(&table.path));
    }
    let known = Known { classes: carried.classes.map(Classes::seal), splits: carried.splits };
    Ok((spool, known))
}

/// What edges carry, and how it is stored; adds the columns to `cells`.
fn columns(
    table: &EdgeTable,
    options: &TableOptions,
    reader: &dyn TableReader,
    cells: &mut Vec<(usize, Cell)>,
) -> Result<(Vec<Extra>, Carried)> {
    let again = || open(&table.path, &options.format(), &table.src);
    let weight = Extra::Weight(options.weight_type);
    let mut asked = Vec::new();
    if let Some(column) = optional(reader, table.weight.as_ref(), "weight")? {
        asked.push((weight, column, Cell::Number));
    }
    if let Some(column) = optional(reader, table.time.as_ref(), "time")? {
        asked.push((Extra::Time, column, Cell::Seconds));
    }
    if table.label.is_some() && table.value.is_some() {
        return Err(Error::usage(format!("{}: edges with both labels and values", table.triple))
            .hint("classes are a label, numbers for a regression a value"));
    }
    if let Some(name) = &table.value {
        asked.push((Extra::Value, reader.require(name, usize::MAX)?, Cell::Number));
    }
    let mut extras: Vec<Extra> = asked.iter().map(|(extra, ..)| *extra).collect();
    let mut numbers = Vec::new();
    if !asked.is_empty() {
        let units: Vec<(usize, Cell)> = asked.iter().map(|(_, c, unit)| (*c, *unit)).collect();
        numbers = extras.iter().copied().zip(Numbers::find(&mut *again()?, &units)?).collect();
        cells.extend(numbers.iter().map(|(_, numbers)| (numbers.column, numbers.cell())));
    }
    let features = fitted(&again, &table.features, options.memory)?;
    if let Some(list) = features.iter().find(|feature| reader.width(feature.column()) != 1) {
        let column = &reader.columns()[list.column()];
        return Err(Error::invalid(format!("{}: column '{column}' holds lists", reader.name()))
            .hint("features of edges are columns of single numbers"));
    }
    if !features.is_empty() {
        extras.push(Extra::Features(features.iter().map(Fitted::width).sum()));
        cells.extend(features.iter().map(|feature| (feature.column(), feature.cell())));
    }
    let mut classes = None;
    if let Some(name) = &table.label {
        let column = reader.require(name, usize::MAX)?;
        let cell = Classes::cell(reader, column, again)?;
        cells.push((column, cell));
        extras.push(Extra::Class);
        classes = Some(Classes::new(cell, None, options.memory));
    }
    if let Some(name) = &table.split {
        cells.push((reader.require(name, usize::MAX)?, Cell::Text));
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
    /// Appends what the edges of a batch carry, column after column; `first` is their first row.
    fn values(
        &mut self,
        reader: &dyn TableReader,
        batch: &Batch,
        first: u64,
        out: &mut Vec<f64>,
    ) -> Result<()> {
        // The ends are the first two columns.
        let mut at = 2;
        for (extra, numbers) in &self.numbers {
            let read = numbers.read(reader, batch, at)?;
            let name = &reader.columns()[numbers.column];
            for (&value, &place) in read.iter().zip(&batch.places) {
                let place = || format!("{}: column '{name}'", reader.place(place));
                if value.is_nan() {
                    return Err(Error::invalid(format!("{}: the value is missing", place()))
                        .hint("every edge of the table needs one"));
                }
                extra.check(value, place)?;
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
}

/// The split of the edge in a row, with the given chances.
fn drawn(row: u64, shares: [f64; 3]) -> u8 {
    let unit = Key::new(0).with(0x6564_6765).unit(row);
    let mut end = 0.0;
    for (number, share) in (0..).zip(shares) {
        end += share;
        // Shares that make a whole leave none out, whatever their sum is rounded to.
        if unit < end || (number == 2 && end > 0.999_999) {
            return number;
        }
    }
    NO_SPLIT
}

/// One end of a batch of edges as nodes, or as ids while the map is open.
fn nodes_of<'a>(
    reader: &dyn TableReader,
    batch: &'a Batch,
    column: usize,
    ntype: &str,
    maps: &mut IdMaps,
    memory: u64,
) -> Result<std::borrow::Cow<'a, [i64]>> {
    let ids = maps.get_mut(ntype).expect("made before");
    let integers = batch.columns[column].integers();
    let place = |row: usize| reader.place(batch.places[row]);
    match ids {
        Ids::Open(collector) => collector.add(integers, memory)?,
        Ids::Strings { ids: strings, closed } => {
            let mut nodes = Vec::with_capacity(batch.rows());
            for row in 0..batch.rows() {
                let text = batch.columns[column].text(row);
                let node = match closed {
                    false => Some(strings.insert(text, memory)?.0),
                    true => strings.find(text),
                };
                let Some(node) = node else {
                    let text = String::from_utf8_lossy(text).into_owned();
                    return Err(unknown(&place(row), &text, ntype, ids));
                };
                nodes.push(node as i64);
            }
            return Ok(nodes.into());
        }
        Ids::Kept(count) => {
            if let Some(row) = integers.iter().position(|&id| id as u64 >= *count) {
                return Err(unknown(&place(row), &integers[row].to_string(), ntype, ids));
            }
        }
        _ => {
            let mut nodes = Vec::with_capacity(batch.rows());
            for (row, &id) in integers.iter().enumerate() {
                let node = ids.find(id);
                let node = node.ok_or_else(|| unknown(&place(row), &id.to_string(), ntype, ids))?;
                nodes.push(node as i64);
            }
            return Ok(nodes.into());
        }
    }
    Ok(integers.into())
}
