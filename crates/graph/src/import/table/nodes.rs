//! Tables of nodes.

use gnarl_common::rng::Key;
use gnarl_common::{Context, Error, Result};

use super::fit::fit;
use super::labels::{Classes, LabelColumn};
use super::numbers::Numbers;
use super::options::{NodeTable, TableOptions, check_shares};
use super::roles::{NodeColumns, id_cell};
use super::transform::{Fitted, rows_of};
use super::{Batch, Cell, TableFacts, TableReader, Values, open, text_id};
use crate::import::errors::over_budget;
use crate::import::ids::{Ids, StringIds};
use crate::import::splits::{add_split, split_name};
use crate::import::times::TimeColumn;
use crate::import::values::ValueColumn;
use crate::writer::DatasetWriter;

fn open_nodes(table: &NodeTable, options: &TableOptions) -> Result<Box<dyn TableReader>> {
    open(&table.path, &options.format(), &NodeColumns::expected(table, options.ids))
}

/// The ids of a nodes table.
///
/// # Errors
/// For the first bad id, by file and place.
pub(super) fn read_ids(
    table: &NodeTable,
    options: &TableOptions,
    memory: u64,
    facts: &mut Vec<TableFacts>,
) -> Result<Ids> {
    let mut reader = open_nodes(table, options)?;
    let NodeColumns { id, facts: found, .. } = NodeColumns::find(&*reader, table)?;
    let mut tell = |found: TableFacts| {
        found.tell();
        facts.push(found);
    };
    let Some(column) = id else {
        tell(found);
        let (mut batch, mut count) = (Batch::default(), 0);
        // Rows alone count: cells of any column may be of a kind that is not read.
        reader.select(Vec::new())?;
        while reader.next(&mut batch)? {
            count += batch.rows() as u64;
        }
        return Ok(Ids::Kept(count));
    };
    let cell = id_cell(options.ids, &*reader, column)?;
    let mut found = Some(found);
    reader.select(vec![(column, cell)])?;
    let mut batch = Batch::default();
    let mut rows = Vec::new();
    let mut places = Vec::new();
    let mut strings = StringIds::default();
    let twice = |place: &str, id: &str| Error::invalid(format!("{place}: id '{id}' appears twice"));
    while reader.next(&mut batch)? {
        if let Some(found) = found.take() {
            tell(found.with_ids(&batch, &[0]));
        }
        if cell == Cell::Integer {
            rows.extend_from_slice(batch.columns[0].integers());
            places.extend_from_slice(&batch.places);
        }
        for row in 0..if cell == Cell::Text { batch.rows() } else { 0 } {
            let text = text_id(&*reader, &batch, 0, row)?;
            if !strings.insert(text, memory)?.1 {
                let text = String::from_utf8_lossy(text);
                return Err(twice(&reader.place(batch.places[row]), &text));
            }
        }
        if rows.len() as u64 * 40 > memory {
            return Err(over_budget(options.memory, "the map of ids"));
        }
    }
    if cell == Cell::Text {
        return Ok(Ids::Strings { ids: strings, closed: true });
    }
    let values = rows.clone();
    Ids::from_rows(rows).map_err(|row| twice(&reader.place(places[row]), &values[row].to_string()))
}

/// Reads a nodes table again for its features, labels and splits.
///
/// # Errors
/// For the first bad value, by file and place.
pub(super) fn write(
    writer: &mut DatasetWriter,
    table: &NodeTable,
    options: &TableOptions,
) -> Result<()> {
    let mut reader = open_nodes(table, options)?;
    let open = || open_nodes(table, options);
    let found = NodeColumns::find(&*reader, table)?;
    let NodeColumns { label, value, time, split, features, .. } = found;
    let features = fit(&open, &features, options.memory)?;
    let mut cells: Vec<(usize, Cell)> = features.iter().map(|f| (f.column(), f.cell())).collect();
    let label_cell = match label {
        Some(column) => Some((column, Classes::cell(&*reader, column, open)?)),
        None => None,
    };
    cells.extend(label_cell);
    cells.extend(value.map(|c| (c, Cell::Number)));
    let moments = match time {
        Some(column) => Numbers::find(&mut *open()?, &[(column, Cell::Seconds)])?.pop(),
        None => None,
    };
    cells.extend(moments.as_ref().map(|moments| (moments.column, moments.cell())));
    cells.extend(split.map(|c| (c, Cell::Text)));
    if cells.is_empty() {
        return Ok(());
    }
    reader.select(cells)?;
    let ntype = &table.ntype;
    let width: usize = features.iter().map(Fitted::width).sum();
    let mut feature_column = match width {
        0 => None,
        _ => Some(writer.node_column::<f32>(ntype, "features", &[width as u64])?),
    };
    let (limit, memory) = (table.num_classes, options.memory);
    let classes = label_cell.map(|(_, cell)| Classes::new(cell, limit, memory));
    let mut labels =
        classes.map(|classes| LabelColumn::create(writer, ntype, classes)).transpose()?;
    let mut numbers = value.map(|_| ValueColumn::create(writer, ntype)).transpose()?;
    let times = moments.map(|moments| Ok((moments, TimeColumn::create(writer, ntype)?)));
    let mut times = times.transpose()?;
    let mut splits: Vec<(String, Vec<u64>)> = Vec::new();
    let mut labelled = Vec::new();
    let mut batch = Batch::default();
    let mut values = Vec::new();
    let mut first = 0u64;
    while reader.next(&mut batch)? {
        if let Some(column) = &mut feature_column {
            rows_of(&*reader, &batch, (&features, 0), &mut values)?;
            column.push(&values)?;
        }
        if let Some(labels) = &mut labels {
            let classes = labels.push(&*reader, &batch, features.len())?;
            let ids = (first..).zip(&classes).filter(|(_, class)| **class >= 0);
            labelled.extend(ids.map(|(id, _)| id).filter(|_| table.shares.is_some()));
        }
        if let Some(numbers) = &mut numbers {
            let values = batch.columns[features.len() + usize::from(label.is_some())].numbers();
            numbers.push(values, |row| reader.place(batch.places[row]))?;
            // Shares are of the nodes with a class, where there are both.
            let drawn = table.shares.is_some() && label.is_none();
            let ids = (first..).zip(values).filter(|(_, value)| drawn && !value.is_nan());
            labelled.extend(ids.map(|(id, _)| id));
        }
        if let Some((moments, times)) = &mut times {
            let before = usize::from(label.is_some()) + usize::from(value.is_some());
            let values = moments.read(&*reader, &batch, features.len() + before)?;
            times.push(&values, |row| reader.place(batch.places[row]))?;
        }
        if split.is_some() {
            let names = batch.columns.last().expect("selected above");
            (0..batch.rows()).for_each(|row| add_to_split(&mut splits, names, row, first));
        }
        first += batch.rows() as u64;
    }
    if let Some(column) = feature_column {
        let spec = column.finish()?;
        writer.node_type(ntype)?.columns.push(spec);
    }
    if let Some(labels) = labels {
        labels.finish(writer, ntype)?;
    }
    if let Some(numbers) = numbers {
        numbers.finish(writer, ntype)?;
    }
    if let Some((_, times)) = times {
        times.finish(writer, ntype)?;
    }
    if let Some(shares) = table.shares {
        splits = drawn(labelled, shares).while_doing(|| format!("splits of {ntype}"))?;
    }
    splits.into_iter().try_for_each(|(name, ids)| add_split(writer, ntype, &name, ids))
}

fn add_to_split(splits: &mut Vec<(String, Vec<u64>)>, names: &Values, row: usize, first: u64) {
    let given = String::from_utf8_lossy(names.text(row));
    let name = split_name(&given);
    if name.is_empty() {
        return;
    }
    let node = first + row as u64;
    match splits.iter_mut().find(|(known, _)| *known == name) {
        Some((_, ids)) => ids.push(node),
        None => splits.push((name.to_string(), vec![node])),
    }
}

/// Random splits of labeled nodes in the given shares.
fn drawn(mut nodes: Vec<u64>, shares: [f64; 3]) -> Result<Vec<(String, Vec<u64>)>> {
    check_shares(shares)?;
    Key::new(0).with(0x7370_6c69).shuffle(&mut nodes);
    let total = nodes.len() as f64;
    let mut end = 0.0;
    let mut taken = 0;
    let mut splits = Vec::new();
    for (name, share) in ["train", "valid", "test"].into_iter().zip(shares) {
        end += share * total;
        let to = (end.round() as usize).min(nodes.len());
        if to > taken {
            splits.push((name.to_string(), nodes[taken..to].to_vec()));
        }
        taken = to;
    }
    Ok(splits)
}
