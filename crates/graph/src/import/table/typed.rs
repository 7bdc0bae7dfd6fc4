//! Datasets from tables of nodes and of edges.

use std::path::Path;

use serde_json::json;

use super::labels::{Classes, LabelColumn};
use super::options::{NodeTable, TableOptions};
use super::roles::{NodeColumns, id_cell};
use super::transform::{self, Fitted};
use super::{Batch, Cell, TableFacts, TableReader, Transform, Values, edges, open, text_id};
use crate::error::{Context, Error, Result, ResultExt};
use crate::import::ids::{IdMaps, Ids, StringIds};
use crate::import::{Imported, Reverses, both_reverses, check_count, finish, over_budget};
use crate::manifest::Triple;
use crate::rng::Key;
use crate::writer::{DatasetWriter, FinishOptions, IdWidth};

/// Makes the dataset `out` from tables. Integer ids are kept where a nodes table counts them up
/// from 0 or `num_nodes` states their number; otherwise nodes are the rows of the nodes table, or
/// the ids that edges mention in ascending order (strings: in order of appearance), and the column
/// `user_id` leads back. Ids that are 0..N-1 anyway are kept.
///
/// # Errors
/// For the first bad value, with file and line; if the id map exceeds `memory`. Nothing is left at
/// `out` then.
pub fn tables(options: &TableOptions, out: &Path) -> Result<Imported> {
    import(options, out).while_doing(|| "importing tables")
}

fn import(options: &TableOptions, out: &Path) -> Result<Imported> {
    let parent = out.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(parent).at(parent)?;
    if options.reverse && options.symmetrize {
        return Err(both_reverses());
    }
    let order = node_order(options)?;
    let mut maps = IdMaps::new();
    let share = options.memory / 4 * 3 / order.len().max(1) as u64;
    let mut facts = Vec::new();
    for table in &options.nodes {
        maps.insert(table.ntype.clone(), read_ids(table, options, share, &mut facts)?);
    }
    for (ntype, count) in &options.num_nodes {
        match maps.get(ntype) {
            Some(ids) if ids.count() != *count => {
                return Err(Error::invalid(format!(
                    "the nodes table of {ntype} has {} rows, {count} nodes were stated",
                    ids.count()
                )));
            }
            Some(_) => {}
            None => {
                check_count(*count, options.memory, || format!("--num-nodes {ntype}={count}"))?;
                maps.insert(ntype.clone(), Ids::Kept(*count));
            }
        }
    }
    let mut spools = Vec::new();
    for table in &options.edges {
        spools.push(edges::read(table, options, &mut maps, share, parent, &mut facts)?);
    }
    for ids in maps.values_mut() {
        if let Ids::Open(collector) = ids {
            *ids = std::mem::take(collector).seal(share)?;
        }
    }
    let largest = maps.values().map(Ids::count).max().unwrap_or(0);
    let mut writer = DatasetWriter::create(out, IdWidth::for_nodes(largest))?;
    let files: Vec<String> = options.edges.iter().map(|t| t.path.display().to_string()).collect();
    writer.origin(json!({ "importer": "tables", "edges": files }));
    let mut renumbered = Vec::new();
    for ntype in &order {
        let ids = &maps[ntype];
        writer.add_node_type(ntype, ids.count());
        if ids.write(&mut writer, ntype)? {
            renumbered.push(ntype.clone());
        }
    }
    for table in &options.nodes {
        write_nodes(&mut writer, table, options)?;
    }
    let mut plain = true;
    for (table, (spool, classes)) in options.edges.iter().zip(spools) {
        let Triple { src, dst, .. } = &table.triple;
        plain &= spool.plain();
        let reverses = match (options.reverse, options.symmetrize && src == dst) {
            (true, _) => Reverses::Apart,
            (false, true) => Reverses::Same,
            (false, false) => Reverses::None,
        };
        let names = match &classes {
            None => Vec::new(),
            Some(classes) => classes.names(
                |name| writer.edge_column(&table.triple, name, &[]),
                |name| writer.edge_column(&table.triple, name, &[]),
            )?,
        };
        spool.store(&mut writer, &table.triple, (&maps[src], &maps[dst]), reverses, names)?;
        writer.edge_type(&table.triple)?.classes = classes.map(|classes| classes.count());
    }
    drop(maps);
    let coalesce = options.coalesce.unwrap_or(options.symmetrize && plain);
    let made = finish(writer, FinishOptions { memory: options.memory, coalesce }, renumbered)?;
    Ok(Imported { tables: facts, ..made })
}

/// Node types in the order of tables, stated counts, edges.
fn node_order(options: &TableOptions) -> Result<Vec<String>> {
    let mut order: Vec<String> = Vec::new();
    let mut add = |name: &String| {
        if !order.contains(name) {
            order.push(name.clone());
        }
    };
    options.nodes.iter().for_each(|t| add(&t.ntype));
    options.num_nodes.iter().for_each(|(name, _)| add(name));
    let typed = !options.nodes.is_empty();
    for table in &options.edges {
        for name in [&table.triple.src, &table.triple.dst] {
            let known = options.nodes.iter().any(|t| t.ntype == *name)
                || options.num_nodes.iter().any(|(n, _)| n == name);
            if typed && !known {
                let known: Vec<&str> = options.nodes.iter().map(|t| t.ntype.as_str()).collect();
                return Err(Error::usage(format!("{}: unknown node type '{name}'", table.triple))
                    .hint(format!("node tables are given for: {}", known.join(", "))));
            }
            add(name);
        }
    }
    if options.edges.is_empty() {
        return Err(Error::usage("no table of edges is given"));
    }
    Ok(order)
}

fn open_nodes(table: &NodeTable, options: &TableOptions) -> Result<Box<dyn TableReader>> {
    open(&table.path, &options.format(), &NodeColumns::expected(table, options.ids))
}

/// The ids of a nodes table.
fn read_ids(
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
        reader.select(vec![(0, Cell::Text)])?;
        while reader.next(&mut batch)? {
            count += batch.rows() as u64;
        }
        return Ok(Ids::Kept(count));
    };
    let cell = id_cell(options.ids, &*reader, column)?;
    let mut found = Some(found);
    reader.select(vec![(column, cell)])?;
    let (mut batch, mut rows, mut places) = (Batch::default(), Vec::new(), Vec::new());
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
fn write_nodes(
    writer: &mut DatasetWriter,
    table: &NodeTable,
    options: &TableOptions,
) -> Result<()> {
    let mut reader = open_nodes(table, options)?;
    let features = fitted(table, options)?;
    let NodeColumns { label, split, .. } = NodeColumns::find(&*reader, table)?;
    let mut cells: Vec<(usize, Cell)> = features.iter().map(|f| (f.column, f.cell())).collect();
    let label_cell = label.map(|column| (column, Classes::cell(&*reader, column)));
    cells.extend(label_cell);
    cells.extend(split.map(|c| (c, Cell::Text)));
    if cells.is_empty() {
        return Ok(());
    }
    reader.select(cells)?;
    let ntype = &table.ntype;
    let width: usize = features.iter().map(|f| f.width(&*reader)).sum();
    let mut feature_column = match width {
        0 => None,
        _ => Some(writer.node_column::<f32>(ntype, "features", &[width as u64])?),
    };
    let (limit, memory) = (table.num_classes, options.memory);
    let classes = label_cell.map(|(_, cell)| Classes::new(cell, limit, memory));
    let mut labels =
        classes.map(|classes| LabelColumn::create(writer, ntype, classes)).transpose()?;
    let mut splits: Vec<(String, Vec<u64>)> = Vec::new();
    let mut labelled = Vec::new();
    let (mut batch, mut values, mut first) = (Batch::default(), Vec::new(), 0u64);
    while reader.next(&mut batch)? {
        if let Some(column) = &mut feature_column {
            interleave(&*reader, &batch, &features, &mut values)?;
            column.push(&values)?;
        }
        if let Some(labels) = &mut labels {
            let classes = labels.push(&*reader, &batch, features.len())?;
            let ids = (first..).zip(&classes).filter(|(_, class)| **class >= 0);
            labelled.extend(ids.map(|(id, _)| id).filter(|_| table.shares.is_some()));
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
    if let Some(shares) = table.shares {
        splits = drawn(labelled, shares).while_doing(|| format!("splits of {ntype}"))?;
    }
    splits.into_iter().try_for_each(|(name, ids)| writer.add_split(ntype, &name, ids))
}

fn add_to_split(splits: &mut Vec<(String, Vec<u64>)>, names: &Values, row: usize, first: u64) {
    let name = String::from_utf8_lossy(names.text(row));
    if name.is_empty() {
        return;
    }
    let node = first + row as u64;
    match splits.iter_mut().find(|(known, _)| *known == name) {
        Some((_, ids)) => ids.push(node),
        None => splits.push((name.into_owned(), vec![node])),
    }
}

/// The feature columns of a nodes table, whose transforms may need a pass over it.
fn fitted(table: &NodeTable, options: &TableOptions) -> Result<Vec<Fitted>> {
    let mut reader = open_nodes(table, options)?;
    let mut columns = Vec::new();
    let found = NodeColumns::find(&*reader, table)?.features;
    for (feature, found) in table.features.iter().zip(found) {
        columns.extend(found.into_iter().map(|column| (column, feature.transform)));
    }
    for &(column, transform) in &columns {
        if transform != Transform::None && reader.width(column) != 1 {
            let name = &reader.columns()[column];
            return Err(Error::invalid(format!("{}: column '{name}' holds lists", reader.name()))
                .hint("a transform is for columns of single values"));
        }
    }
    transform::fit(&mut *reader, &columns, options.memory)
}

/// Refuses shares that are none.
pub(super) fn check_shares(shares: [f64; 3]) -> Result<()> {
    let sum: f64 = shares.iter().sum();
    match shares.iter().any(|share| !(0.0..=1.0).contains(share)) || sum > 1.000_001 {
        true => Err(Error::invalid(format!("{shares:?} are no shares of a whole"))),
        false => Ok(()),
    }
}

/// Labelled nodes dealt to splits in the given shares.
fn drawn(mut nodes: Vec<u64>, shares: [f64; 3]) -> Result<Vec<(String, Vec<u64>)>> {
    check_shares(shares)?;
    Key::new(0).with(0x7370_6c69).shuffle(&mut nodes);
    let (total, mut end, mut taken) = (nodes.len() as f64, 0.0, 0);
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

/// Columns to rows of features.
fn interleave(
    reader: &dyn TableReader,
    batch: &Batch,
    features: &[Fitted],
    out: &mut Vec<f32>,
) -> Result<()> {
    out.clear();
    for row in 0..batch.rows() {
        for (i, feature) in features.iter().enumerate() {
            feature.push(reader, batch, (i, row), out)?;
        }
    }
    Ok(())
}
