//! Tables of edges.

use std::path::Path;

use super::labels::Classes;
use super::options::{EdgeTable, TableOptions};
use super::roles::{EdgeColumns, id_cell};
use super::typed::check_shares;
use super::{Batch, Cell, TableFacts, TableReader, open, string_pairs, text_id};
use crate::error::{Error, Kind, Result};
use crate::import::empty_graph;
use crate::import::extra::{Extra, NO_SPLIT, split_number};
use crate::import::ids::{Collector, IdMaps, Ids, StringIds, unknown};
use crate::import::spool::Spool;
use crate::manifest::Triple;
use crate::rng::Key;

/// The columns of a table that edges carry: first those stored as they are.
struct Carried {
    /// How each number is stored, features one by one.
    numbers: Vec<Extra>,
    classes: Option<Classes>,
    /// Whether a column names the split of each edge.
    named: bool,
    /// Shares of the labelled edges that make the splits.
    shares: Option<[f64; 3]>,
}

/// Puts the edges of a table aside, and their classes' names if labels are classes.
///
/// # Errors
/// For the first bad value, by file and place.
pub(super) fn read(
    table: &EdgeTable,
    options: &TableOptions,
    maps: &mut IdMaps,
    memory: u64,
    dir: &Path,
    facts: &mut Vec<TableFacts>,
) -> Result<(Spool, Option<Classes>)> {
    let expected = EdgeColumns::expected(table, options.ids);
    let mut reader = open(&table.path, &options.format(), &expected)?;
    let found = EdgeColumns::find(&*reader, table)?;
    let Triple { src: src_type, dst: dst_type, .. } = &table.triple;
    let mut cells = Vec::new();
    for (ntype, column) in [(src_type, found.src), (dst_type, found.dst)] {
        if !maps.contains_key(ntype) {
            let ids = match id_cell(options.ids, &*reader, column)? {
                Cell::Text => Ids::Strings { ids: StringIds::default(), closed: false },
                _ => Ids::Open(Collector::default()),
            };
            maps.insert(ntype.clone(), ids);
        }
        let text = matches!(maps[ntype], Ids::Strings { .. });
        if !text && reader.looks_text(column) {
            return Err(no_integers(&*reader, column, ntype, facts));
        }
        cells.push((column, if text { Cell::Text } else { Cell::Integer }));
    }
    let (extras, mut carried) = columns(table, options, &*reader, &found, &mut cells)?;
    let mut found = Some(found.facts);
    reader.select(cells)?;
    let raw = |ntype: &str| matches!(maps[ntype], Ids::Open(_));
    let mut spool = Spool::create(dir, extras, (raw(src_type), raw(dst_type)))?;
    let (mut batch, mut values) = (Batch::default(), Vec::new());
    while reader.next(&mut batch)? {
        if let Some(found) = found.take() {
            let found = found.with_ids(&batch, &[0, 1]);
            found.tell();
            facts.push(found);
        }
        let (sources, destinations) = match maps.get_mut(src_type) {
            Some(Ids::Strings { ids, closed: false }) if src_type == dst_type => {
                let (src, dst) = string_pairs(&*reader, &batch, (0, 1), ids, memory)?;
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
    Ok((spool, carried.classes))
}

/// The error of ids that are text where those of the nodes are not.
fn no_integers(
    reader: &dyn TableReader,
    column: usize,
    ntype: &str,
    facts: &[TableFacts],
) -> Error {
    let name = &reader.columns()[column];
    let error =
        Error::invalid(format!("{}: column '{name}' has ids that are no integers", reader.name()));
    match facts.iter().find(|facts| facts.kind == ntype) {
        Some(nodes) if nodes.ids == "rows" => error.hint(format!(
            "{} has no column of ids, so its nodes are numbered by row: --id names that column",
            nodes.file
        )),
        Some(nodes) => error.hint(format!(
            "those of {} are, the first is {}; --ids string takes both as strings",
            nodes.file,
            nodes.first.concat()
        )),
        None => error.hint(format!(
            "other ids of {ntype} are integers, or --num-nodes counts them; --ids string takes all as strings"
        )),
    }
}

/// What edges carry, and how it is stored; adds the columns to `cells`.
fn columns(
    table: &EdgeTable,
    options: &TableOptions,
    reader: &dyn TableReader,
    found: &EdgeColumns,
    cells: &mut Vec<(usize, Cell)>,
) -> Result<(Vec<Extra>, Carried)> {
    let mut extras = Vec::new();
    let weight = Extra::Weight(options.weight_type);
    for (column, extra) in [(found.weight, weight), (found.time, Extra::Time)] {
        if let Some(column) = column {
            cells.push((column, Cell::Number));
            extras.push(extra);
        }
    }
    let features = &found.features;
    if let Some(&list) = features.iter().find(|&&c| reader.width(c) != 1) {
        let column = &reader.columns()[list];
        return Err(Error::invalid(format!("{}: column '{column}' holds lists", reader.name()))
            .hint("features of edges are columns of single numbers"));
    }
    if !features.is_empty() {
        extras.push(Extra::Features(features.len()));
        cells.extend(features.iter().map(|&c| (c, Cell::Number)));
    }
    if table.label.is_some() && table.value.is_some() {
        return Err(Error::usage(format!("{}: edges with both labels and values", table.triple))
            .hint("classes are a label, numbers for a regression a value"));
    }
    if let Some(column) = found.value {
        cells.push((column, Cell::Number));
        extras.push(Extra::Value);
    }
    let of_columns = extras.iter().flat_map(|&extra| std::iter::repeat_n(extra, extra.width()));
    let numbers = of_columns.collect();
    let mut classes = None;
    if let Some(column) = found.label {
        let cell = Classes::cell(reader, column);
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
    Ok((extras, Carried { numbers, classes, named, shares }))
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
        for (column, extra) in batch.columns[2..].iter().zip(&self.numbers) {
            let numbers = column.numbers();
            for (row, &value) in numbers.iter().enumerate() {
                let place = |row: usize| reader.place(batch.places[row]);
                extra.check(value, || place(row)).map_err(|error| {
                    match another_fault(*extra, &numbers[row..]) {
                        Some((ahead, what)) => {
                            error.hint(format!("{}: {what}", place(row + ahead)))
                        }
                        None => error,
                    }
                })?;
            }
            out.extend_from_slice(numbers);
        }
        let mut labelled = vec![true; batch.rows()];
        if let Some(classes) = &mut self.classes {
            let found = classes.read(reader, batch, 2 + self.numbers.len())?;
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
                out.push(f64::from(number.map_err(|e| e.context(reader.place(place)))?));
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
                let text = text_id(reader, batch, column, row)?;
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

/// The first fault of another kind than that of the first number, and how far behind it is: a column
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
