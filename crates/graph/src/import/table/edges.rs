//! Tables of edges.

use std::path::Path;

use gnarl_common::{Error, Result};

use super::carried::{self, Known};
use super::options::{EdgeTable, TableOptions};
use super::roles::{EdgeColumns, id_cell};
use super::{Batch, Cell, TableFacts, TableReader, open, string_pairs, text_id};
use crate::import::errors::empty_graph;
use crate::import::ids::{Collector, IdMaps, Ids, StringIds, unknown};
use crate::import::spool::Spool;
use crate::manifest::Triple;

/// Reads the edges of a table into the spool.
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
) -> Result<(Spool, Known)> {
    let open = || open(&table.path, &options.format(), &EdgeColumns::expected(table, options.ids));
    let mut reader = open()?;
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
    let (extras, mut carried) =
        carried::columns((table, options), (&*reader, &found), &open, &mut cells)?;
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
    // Of several types some may have no edge, but not all.
    if spool.edges == 0 && options.edges.len() == 1 {
        return Err(empty_graph(&table.path));
    }
    Ok((spool, carried.seal()))
}

/// The error of text ids where those of the nodes are integers.
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

/// One endpoint of a batch of edges as nodes, or as ids while the map is open.
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
