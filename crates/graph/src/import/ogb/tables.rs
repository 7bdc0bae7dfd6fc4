//! Text layouts: `.csv.gz` tables without headers.

use std::path::{Path, PathBuf};

use gnarl_common::{Error, Result, ResultExt};

use super::layout::{EdgePart, Layout, NodePart, Values, many_graphs};
use crate::import::WeightType;
use crate::import::classes::ClassColumn;
use crate::import::columns::not_finite;
use crate::import::edge_csv::BARE;
use crate::import::extra::Extra;
use crate::import::table::{Batch, Cell, CsvFormat, CsvReader, TableReader};
use crate::manifest::{DEFAULT_NODE_TYPE, Triple};
use crate::writer::DatasetWriter;

/// A graph of one node type.
pub(super) fn plain(raw: &Path, weights: WeightType) -> Result<Layout> {
    let mut nodes =
        NodePart::new(DEFAULT_NODE_TYPE, single_count(&raw.join("num-node-list.csv.gz"))?);
    find_columns(&mut nodes, raw)?;
    nodes.labels = existing(raw.join("node-label.csv.gz"));
    let edges = vec![edge_part(Triple::plain(), raw, weights)?];
    Ok(Layout { nodes: vec![nodes], edges })
}

/// A graph of several node types.
pub(super) fn heterogeneous(raw: &Path, weights: WeightType) -> Result<Layout> {
    let path = raw.join("num-node-dict.csv.gz");
    let header = CsvFormat { delimiter: Some(b','), header: Some(true) };
    let mut reader = CsvReader::open(&path, &header)?;
    let names = reader.columns().to_vec();
    reader.select((0..names.len()).map(|c| (c, Cell::Integer)).collect())?;
    let mut batch = Batch::default();
    if !reader.next(&mut batch)? || batch.rows() != 1 {
        return Err(many_graphs(&path, batch.rows() as u64));
    }
    let mut nodes = Vec::new();
    for (name, values) in names.iter().zip(&batch.columns) {
        let count = u64::try_from(values.integers()[0]).map_err(|_| {
            Error::invalid(format!("{}: a negative number of {name} nodes", path.display()))
        })?;
        let mut part = NodePart::new(name, count);
        find_columns(&mut part, &raw.join("node-feat").join(name))?;
        part.labels = existing(raw.join("node-label").join(name).join("node-label.csv.gz"));
        nodes.push(part);
    }
    let mut edges = Vec::new();
    for triple in triples(&raw.join("triplet-type-list.csv.gz"), &names)? {
        let Triple { src, rel, dst } = &triple;
        let dir = raw.join("relations").join(format!("{src}___{rel}___{dst}"));
        edges.push(edge_part(triple, &dir, weights)?);
    }
    Ok(Layout { nodes, edges })
}

/// The edge types in a table of three names.
fn triples(path: &Path, known: &[String]) -> Result<Vec<Triple>> {
    let mut reader = CsvReader::open(path, &BARE)?;
    if reader.columns().len() != 3 {
        return Err(Error::invalid(format!("{}: edge types have 3 columns", path.display())));
    }
    reader.select((0..3).map(|c| (c, Cell::Text)).collect())?;
    let (mut batch, mut all) = (Batch::default(), Vec::new());
    while reader.next(&mut batch)? {
        for row in 0..batch.rows() {
            let name = |c: usize| String::from_utf8_lossy(batch.columns[c].text(row)).into_owned();
            let place = reader.place(batch.places[row]);
            for ntype in [name(0), name(2)] {
                if !known.contains(&ntype) {
                    return Err(Error::invalid(format!("{place}: unknown node type '{ntype}'"))
                        .hint(format!("num-node-dict.csv.gz has: {}", known.join(", "))));
                }
            }
            let triple: Triple = format!("{}:{}:{}", name(0), name(1), name(2))
                .parse()
                .map_err(|e| Error::invalid(format!("{place}: {e}")))?;
            if all.contains(&triple) {
                return Err(Error::invalid(format!("{place}: {triple} is listed twice")));
            }
            all.push(triple);
        }
    }
    Ok(all)
}

/// The edges in `dir` and their columns.
fn edge_part(triple: Triple, dir: &Path, weights: WeightType) -> Result<EdgePart> {
    let mut more = Vec::new();
    for (stem, path) in tables_in(dir)?.into_iter().filter(|(stem, _)| stem.starts_with("edge")) {
        let extra = match stem.as_str() {
            "edge" => continue,
            "edge_weight" => Extra::Weight(weights),
            "edge_year" => Extra::Time,
            "edge_reltype" => Extra::Relation,
            _ => {
                tracing::warn!("{} is left out", path.display());
                continue;
            }
        };
        more.push((extra, Values::Csv(path)));
    }
    let counts = dir.join("num-edge-list.csv.gz");
    let count = if counts.exists() { Some(single_count(&counts)?) } else { None };
    Ok(EdgePart { triple, count, edges: Values::Csv(dir.join("edge.csv.gz")), more })
}

/// Finds `node-feat` and `node_*` tables in `dir`, which may be missing.
fn find_columns(part: &mut NodePart, dir: &Path) -> Result<()> {
    part.features = existing(dir.join("node-feat.csv.gz"));
    if dir.is_dir() {
        let all = tables_in(dir)?.into_iter().filter(|(stem, _)| stem.starts_with("node_"));
        part.more = all.map(|(stem, path)| (stem, Values::Csv(path))).collect();
    }
    Ok(())
}

fn existing(path: PathBuf) -> Option<Values> {
    path.exists().then_some(Values::Csv(path))
}

/// All `.csv.gz` files in `dir` with their stems, by name.
fn tables_in(dir: &Path) -> Result<Vec<(String, PathBuf)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).at(dir)? {
        let path = entry.at(dir)?.path();
        let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        if let Some(stem) = name.strip_suffix(".csv.gz") {
            found.push((stem.to_string(), path));
        }
    }
    found.sort();
    Ok(found)
}

/// The one number in a list of counts.
fn single_count(path: &Path) -> Result<u64> {
    let (mut counts, mut rows) = (Vec::<i64>::new(), 0);
    each_batch(path, Cell::Integer, |_, batch| {
        counts.extend(batch.columns[0].integers().first());
        rows += batch.rows() as u64;
        Ok(())
    })?;
    match counts[..] {
        [count] if rows == 1 => u64::try_from(count).map_err(|_| {
            Error::invalid(format!("{}: line 1: {count} is negative", path.display()))
        }),
        _ => Err(many_graphs(path, rows)),
    }
}

/// Reads all columns of a table as `cell`.
fn each_batch(
    path: &Path,
    cell: Cell,
    mut take: impl FnMut(&CsvReader, &Batch) -> Result<()>,
) -> Result<()> {
    let mut reader = CsvReader::open(path, &BARE)?;
    reader.select((0..reader.columns().len()).map(|c| (c, cell)).collect())?;
    let mut batch = Batch::default();
    while reader.next(&mut batch)? {
        take(&reader, &batch)?;
    }
    Ok(())
}

fn width_of(path: &Path) -> Result<usize> {
    Ok(CsvReader::open(path, &BARE)?.columns().len())
}

fn expect_rows(path: &Path, rows: u64, nodes: u64, ntype: &str) -> Result<()> {
    if rows == nodes {
        return Ok(());
    }
    let path = path.display();
    Err(Error::invalid(format!("{path}: has {rows} rows, there are {nodes} {ntype} nodes")))
}

/// Writes dense features from a table of numbers.
pub(super) fn features(
    writer: &mut DatasetWriter,
    ntype: &str,
    nodes: u64,
    path: &Path,
) -> Result<()> {
    let width = width_of(path)?;
    let mut column = writer.node_column::<f32>(ntype, "features", &[width as u64])?;
    let (mut values, mut rows) = (Vec::new(), 0);
    each_batch(path, Cell::Number, |reader, batch| {
        values.clear();
        for row in 0..batch.rows() {
            for (c, numbers) in batch.columns.iter().enumerate() {
                let value = numbers.numbers()[row] as f32;
                if !value.is_finite() {
                    let at = rows + row as u64;
                    return Err(not_finite(reader.name(), at, c as u64, value));
                }
                values.push(value);
            }
        }
        rows += batch.rows() as u64;
        column.push(&values)
    })?;
    expect_rows(path, rows, nodes, ntype)?;
    let spec = column.finish()?;
    writer.node_type(ntype)?.columns.push(spec);
    Ok(())
}

/// Writes labels: one column of classes (NaN or -1: none), or a column of 0 and 1 for each task.
pub(super) fn labels(
    writer: &mut DatasetWriter,
    ntype: &str,
    nodes: u64,
    path: &Path,
    classes: Option<u64>,
) -> Result<()> {
    let width = width_of(path)?;
    let mut rows = 0;
    if width == 1 {
        let mut column = ClassColumn::create(writer, ntype, classes)?;
        each_batch(path, Cell::Number, |reader, batch| {
            rows += batch.rows() as u64;
            column.push(batch.columns[0].numbers(), |row| reader.place(batch.places[row]))
        })?;
        expect_rows(path, rows, nodes, ntype)?;
        return column.finish(writer, ntype);
    }
    let mut column = writer.node_column::<u8>(ntype, "label", &[width as u64])?;
    each_batch(path, Cell::Number, |reader, batch| {
        for row in 0..batch.rows() {
            for (c, values) in batch.columns.iter().enumerate() {
                let value = values.numbers()[row];
                if value != 0.0 && value != 1.0 {
                    let place = reader.place(batch.places[row]);
                    return Err(Error::invalid(format!(
                        "{place}: column {c}: label {value} is neither 0 nor 1"
                    )));
                }
                column.push(&[value as u8])?;
            }
        }
        rows += batch.rows() as u64;
        Ok(())
    })?;
    expect_rows(path, rows, nodes, ntype)?;
    let spec = column.finish()?;
    let node_type = writer.node_type(ntype)?;
    node_type.columns.push(spec);
    node_type.classes = Some(width as u64);
    Ok(())
}

/// Writes a table of one integer per node of type `of`, as the column `name`; others are
/// left out.
pub(super) fn integers(
    writer: &mut DatasetWriter,
    of: (&str, u64),
    name: &str,
    path: &Path,
) -> Result<()> {
    let reader = CsvReader::open(path, &BARE)?;
    if reader.columns().len() != 1 || !reader.looks_integer(0) {
        tracing::warn!("{} is left out: not one integer in each row", path.display());
        return Ok(());
    }
    let mut column = writer.node_column::<i64>(of.0, name, &[])?;
    let mut rows = 0;
    each_batch(path, Cell::Integer, |_, batch| {
        rows += batch.rows() as u64;
        column.push(batch.columns[0].integers())
    })?;
    expect_rows(path, rows, of.1, of.0)?;
    let spec = column.finish()?;
    writer.node_type(of.0)?.columns.push(spec);
    Ok(())
}

/// The node ids in a split's table, each below `nodes`.
pub(super) fn split_ids(path: &Path, nodes: u64, ntype: &str) -> Result<Vec<u64>> {
    let mut ids = Vec::new();
    each_batch(path, Cell::Integer, |reader, batch| {
        for (&id, &place) in batch.columns[0].integers().iter().zip(&batch.places) {
            if id < 0 || id as u64 >= nodes {
                let kept = crate::import::ids::Ids::Kept(nodes);
                let place = reader.place(place);
                return Err(crate::import::ids::unknown(&place, &id.to_string(), ntype, &kept));
            }
            ids.push(id as u64);
        }
        Ok(())
    })?;
    Ok(ids)
}
