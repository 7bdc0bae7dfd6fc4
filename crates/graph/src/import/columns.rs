//! Arrays to columns of a node type: features, labels, splits.

use gnarl_common::{Element, Error, Result};
use half::f16;

use super::array::{ArrayReader, BLOCK, Num};
use super::classes::ClassColumn;
use super::source::Npz;
use super::times::TimeColumn;
use super::values::ValueColumn;
use crate::writer::DatasetWriter;

/// Returns an error unless `array` has `nodes` rows.
fn expect_rows(array: &ArrayReader, nodes: u64, ntype: &str) -> Result<()> {
    let rows = array.shape().first().copied().unwrap_or(0);
    match rows == nodes {
        true => Ok(()),
        false => Err(array.error(format!("has {rows} rows, there are {nodes} {ntype} nodes"))),
    }
}

/// Writes dense features `[N, F]`: u8 and f16 as they are, all else as f32.
pub(super) fn dense_features(
    writer: &mut DatasetWriter,
    ntype: &str,
    nodes: u64,
    mut array: ArrayReader,
) -> Result<()> {
    let width = match *array.shape() {
        [_] => 1,
        [_, width] if width > 0 => width,
        _ => return Err(array.error(format!("has shape {:?}, not [N, F]", array.shape()))),
    };
    expect_rows(&array, nodes, ntype)?;
    if array.fortran() {
        return Err(array
            .error("is stored column after column")
            .hint("write it with numpy.save(path, numpy.ascontiguousarray(array))"));
    }
    match array.num() {
        Num::U8 => dense::<u8>(writer, ntype, width, &mut array, |x| x as u8),
        Num::F16 => dense::<f16>(writer, ntype, width, &mut array, f16::from_f32),
        _ => dense::<f32>(writer, ntype, width, &mut array, |x| x),
    }
}

fn dense<T: Element>(
    writer: &mut DatasetWriter,
    ntype: &str,
    width: u64,
    array: &mut ArrayReader,
    convert: impl Fn(f32) -> T,
) -> Result<()> {
    let mut column = writer.node_column::<T>(ntype, "features", &[width])?;
    let mut values = Vec::new();
    let mut converted = Vec::new();
    let mut done = 0u64;
    while array.read_f32(BLOCK, &mut values)? {
        if let Some(i) = values.iter().position(|x| !x.is_finite()) {
            let at = done + i as u64;
            return Err(not_finite(array.name(), at / width, at % width, values[i]));
        }
        done += values.len() as u64;
        converted.clear();
        converted.extend(values.iter().map(|&x| convert(x)));
        column.push(&converted)?;
    }
    let spec = column.finish()?;
    writer.node_type(ntype)?.columns.push(spec);
    Ok(())
}

/// The error of a feature that is NaN or infinite.
pub(super) fn not_finite(name: &str, row: u64, column: u64, value: f32) -> Error {
    Error::invalid(format!("{name}: row {row}, column {column}: the feature is {value}"))
        .hint("replace missing features before the import")
}

/// Number of rows that a CSR archive states.
pub(super) fn csr_shape(npz: &mut Npz) -> Result<(u64, u64)> {
    let mut array = ArrayReader::open(npz.member("shape")?)?;
    let mut shape = Vec::new();
    array.read_ids(3, "shape", 0, &mut shape)?;
    match shape[..] {
        [rows, width] if width > 0 && width <= u64::from(u32::MAX) => Ok((rows, width)),
        _ => Err(array.error(format!("the shape {shape:?} is not that of a matrix"))),
    }
}

/// Writes CSR features from the scipy-style archive: `data`, `indices`, `indptr`, `shape`.
pub(super) fn csr_features(
    writer: &mut DatasetWriter,
    ntype: &str,
    nodes: u64,
    npz: &mut Npz,
) -> Result<()> {
    let (rows, width) = csr_shape(npz)?;
    let mut indptr = ArrayReader::open(npz.member("indptr")?)?;
    let mut indices = ArrayReader::open(npz.member("indices")?)?;
    let mut data = ArrayReader::open(npz.member("data")?)?;
    if rows != nodes {
        return Err(data.error(format!("has {rows} rows, there are {nodes} {ntype} nodes")));
    }
    indptr.expect_vector()?;
    indptr.expect_integers()?;
    indices.expect_integers()?;
    if indptr.len() != rows + 1 || indices.len() != data.len() {
        return Err(indptr.error(format!(
            "{} offsets for {rows} rows, {} indices for {} values",
            indptr.len(),
            indices.len(),
            data.len()
        )));
    }
    let mut offset_column = writer.node_column::<u64>(ntype, "features.indptr", &[])?;
    let mut index_column = writer.node_column::<u32>(ntype, "features.indices", &[])?;
    let mut value_column = writer.node_column::<f32>(ntype, "features.values", &[])?;
    let mut offsets = Vec::new();
    let mut ids = Vec::new();
    let mut values = Vec::new();
    let mut row = CsrRow::default();
    let (mut done, mut last) = (0u64, 0u64);
    while indptr.read_ids(BLOCK, "offset", 0, &mut offsets)? {
        for (i, &offset) in offsets.iter().enumerate() {
            let at = done + i as u64;
            if offset < last || (at == 0 && offset != 0) || offset > indices.len() {
                return Err(indptr.error(format!("row {at}: offset {offset} is out of order")));
            }
            let count = (offset - last) as usize;
            last = offset;
            if count == 0 {
                continue;
            }
            let start = offset - count as u64;
            indices.read_ids(count, "column", start, &mut ids)?;
            data.read_f32(count, &mut values)?;
            row.set(&ids, &values, at - 1, width, data.name())?;
            index_column.push(&row.indices)?;
            value_column.push(&row.values)?;
        }
        offset_column.push(&offsets)?;
        done += offsets.len() as u64;
    }
    if last != indices.len() {
        return Err(indptr.error(format!("ends at {last} of {} values", indices.len())));
    }
    let specs = [offset_column.finish()?, index_column.finish()?, value_column.finish()?];
    let node_type = writer.node_type(ntype)?;
    node_type.columns.extend(specs);
    node_type.csr_width = Some(width);
    Ok(())
}

/// One row of a CSR matrix, ascending by column.
#[derive(Default)]
struct CsrRow {
    pairs: Vec<(u32, f32)>,
    indices: Vec<u32>,
    values: Vec<f32>,
}

impl CsrRow {
    fn set(&mut self, ids: &[u64], values: &[f32], row: u64, width: u64, name: &str) -> Result<()> {
        self.pairs.clear();
        for (&id, &value) in ids.iter().zip(values) {
            if id >= width {
                return Err(Error::invalid(format!(
                    "{name}: row {row}: column {id} is not below the width, {width}"
                )));
            }
            if !value.is_finite() {
                return Err(not_finite(name, row, id, value));
            }
            self.pairs.push((id as u32, value));
        }
        self.pairs.sort_by_key(|&(id, _)| id);
        if let Some(w) = self.pairs.windows(2).find(|w| w[0].0 == w[1].0) {
            return Err(Error::invalid(format!(
                "{name}: row {row}: column {} is given twice",
                w[0].0
            ))
            .hint("call sum_duplicates() on the scipy matrix first"));
        }
        self.indices.clear();
        self.indices.extend(self.pairs.iter().map(|p| p.0));
        self.values.clear();
        self.values.extend(self.pairs.iter().map(|p| p.1));
        Ok(())
    }
}

/// Writes labels: `[N]` classes (-1 or NaN: none), or `[N, C]` of 0 and 1. `classes` bounds the
/// classes; without it they reach to the largest label, or are renumbered if most ids below it are
/// unused.
pub(super) fn labels(
    writer: &mut DatasetWriter,
    ntype: &str,
    nodes: u64,
    mut array: ArrayReader,
    classes: Option<u64>,
) -> Result<()> {
    expect_rows(&array, nodes, ntype)?;
    match *array.shape() {
        [_, tasks] if tasks > 1 => {
            if array.fortran() {
                return Err(array.error("is stored column after column"));
            }
            multi_labels(writer, ntype, tasks, &mut array)
        }
        [_] | [_, 1] => single_labels(writer, ntype, &mut array, classes),
        _ => Err(array.error(format!("labels of shape {:?}, not [N] or [N, C]", array.shape()))),
    }
}

fn single_labels(
    writer: &mut DatasetWriter,
    ntype: &str,
    array: &mut ArrayReader,
    classes: Option<u64>,
) -> Result<()> {
    let mut column = ClassColumn::create(writer, ntype, classes)?;
    let (mut values, mut row) = (Vec::new(), 0);
    while array.read_f64(BLOCK, &mut values)? {
        column.push(&values, |i| format!("{}: row {}", array.name(), row + i))?;
        row += values.len();
    }
    column.finish(writer, ntype)
}

/// Writes the classes of all nodes, NaN meaning none.
pub(super) fn node_classes(
    writer: &mut DatasetWriter,
    ntype: &str,
    values: &[f64],
    classes: Option<u64>,
) -> Result<()> {
    let mut column = ClassColumn::create(writer, ntype, classes)?;
    column.push(values, |node| format!("{ntype} node {node}"))?;
    column.finish(writer, ntype)
}

/// Writes the numbers that a regression learns: `[N]`, NaN where a node has none.
pub(super) fn values(
    writer: &mut DatasetWriter,
    ntype: &str,
    nodes: u64,
    mut array: ArrayReader,
) -> Result<()> {
    expect_rows(&array, nodes, ntype)?;
    if !matches!(*array.shape(), [_] | [_, 1]) {
        return Err(array.error(format!("values of shape {:?}, not [N]", array.shape())));
    }
    let mut column = ValueColumn::create(writer, ntype)?;
    each_block(&mut array, |values, place| column.push(values, place))?;
    column.finish(writer, ntype)
}

/// Hands a vector to `push` block by block, with the place of each of its rows.
fn each_block(
    array: &mut ArrayReader,
    mut push: impl FnMut(&[f64], &dyn Fn(usize) -> String) -> Result<()>,
) -> Result<()> {
    let name = array.name().to_string();
    let mut done = 0u64;
    let mut block = Vec::new();
    while array.read_f64(BLOCK, &mut block)? {
        push(&block, &|row| format!("{name}: row {}", done + row as u64))?;
        done += block.len() as u64;
    }
    Ok(())
}

/// Writes the times of nodes, `[N]` integers.
///
/// # Errors
/// If the array has another shape, or a time is no integer.
pub(super) fn times(
    writer: &mut DatasetWriter,
    ntype: &str,
    nodes: u64,
    mut array: ArrayReader,
) -> Result<()> {
    expect_rows(&array, nodes, ntype)?;
    if !matches!(*array.shape(), [_] | [_, 1]) {
        return Err(array.error(format!("times of shape {:?}, not [N]", array.shape())));
    }
    let mut column = TimeColumn::create(writer, ntype)?;
    each_block(&mut array, |times, place| column.push(times, place))?;
    column.finish(writer, ntype)
}

fn multi_labels(
    writer: &mut DatasetWriter,
    ntype: &str,
    tasks: u64,
    array: &mut ArrayReader,
) -> Result<()> {
    let mut column = writer.node_column::<u8>(ntype, "label", &[tasks])?;
    let mut values = Vec::new();
    let mut stored = Vec::new();
    let mut done = 0u64;
    while array.read_f32(BLOCK, &mut values)? {
        if let Some(i) = values.iter().position(|&x| x != 0.0 && x != 1.0) {
            let at = done + i as u64;
            return Err(array.error(format!(
                "row {}, column {}: label {} is neither 0 nor 1",
                at / tasks,
                at % tasks,
                values[i]
            )));
        }
        done += values.len() as u64;
        stored.clear();
        stored.extend(values.iter().map(|&x| x as u8));
        column.push(&stored)?;
    }
    let spec = column.finish()?;
    let node_type = writer.node_type(ntype)?;
    node_type.columns.push(spec);
    node_type.classes = Some(tasks);
    Ok(())
}

/// The nodes of a split: a vector of ids, or a vector of `nodes` booleans.
pub(super) fn split_ids(mut array: ArrayReader, nodes: u64) -> Result<Vec<u64>> {
    array.expect_vector()?;
    let mask = array.num() == Num::Bool;
    if mask && array.len() != nodes {
        return Err(array.error(format!("a mask of {} for {nodes} nodes", array.len())));
    }
    if !mask {
        array.expect_integers()?;
    }
    let mut ids = Vec::new();
    let mut block = Vec::new();
    let mut row = 0u64;
    while array.read_ids(BLOCK, "node", 0, &mut block)? {
        for &value in &block {
            match mask {
                true if value != 0 => ids.push(row),
                true => {}
                false if value >= nodes => {
                    return Err(array.error(format!(
                        "row {row}: node {value} is not below the number of nodes, {nodes}"
                    )));
                }
                false => ids.push(value),
            }
            row += 1;
        }
    }
    // As ids, more than two of only 0 and 1 would repeat.
    if !mask && nodes > 2 && row == nodes && ids.iter().all(|&id| id < 2) {
        return Err(array
            .error(format!("{nodes} numbers 0 and 1 for {nodes} nodes: a mask is of booleans"))
            .hint("numpy.save(path, mask.astype(bool))"));
    }
    Ok(ids)
}
