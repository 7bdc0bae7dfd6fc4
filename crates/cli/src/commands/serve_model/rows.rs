//! Answers as JSON.

use gnarl_common::{Error, Result};
use gnarl_infer::export::{Cells, Column, Kind};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};

use super::body::{Edge, Id};
use super::compute::Computed;
use crate::commands::infer::outputs::{Outputs, Widths};

/// The answer about nodes: `rows` in the order of `ids`.
///
/// # Errors
/// If a class has no name.
pub(super) fn of_nodes(ids: &[Id], outputs: &Outputs, computed: &Computed) -> Result<String> {
    let keys: Vec<_> = ids.iter().map(|id| vec![("id", id)]).collect();
    labeled(&keys, outputs, computed)
}

/// The answer about edges: `rows` in the order of `edges`, with a score if there are no `outputs`.
///
/// # Errors
/// If a class has no name.
pub(super) fn of_edges(
    edges: &[Edge],
    outputs: Option<&Outputs>,
    computed: &Computed,
) -> Result<String> {
    let keys: Vec<Vec<_>> = edges.iter().map(key).collect();
    match outputs {
        Some(outputs) => labeled(&keys, outputs, computed),
        None => {
            let scores = computed.last.as_ref().map_or(&[][..], |scores| scores.data());
            let columns = [Column::new("score", Kind::Float)];
            written(&keys, &columns, &[Cells::Floats(scores)])
        }
    }
}

fn key(edge: &Edge) -> Vec<(&'static str, &Id)> {
    let relation = edge.relation().map(|relation| ("relation", relation));
    let tail = Some(("tail", edge.tail()));
    [Some(("head", edge.head())), relation, tail].into_iter().flatten().collect()
}

fn labeled(keys: &[Vec<(&str, &Id)>], outputs: &Outputs, computed: &Computed) -> Result<String> {
    let (hidden, last) = (computed.hidden.as_ref(), computed.last.as_ref());
    let widths = Widths {
        embedding: hidden.or(last).map_or(0, |rows| rows.cols()),
        last: last.map_or(0, |rows| rows.cols()),
    };
    let (columns, mut text) = (outputs.columns(widths), String::new());
    outputs.cells(hidden, last, |cells| {
        text = written(keys, &columns, &cells)?;
        Ok(())
    })?;
    Ok(text)
}

fn written(keys: &[Vec<(&str, &Id)>], columns: &[Column], cells: &[Cells<'_>]) -> Result<String> {
    let answer = Answer { rows: Rows { keys, columns, cells } };
    serde_json::to_string(&answer).map_err(|e| Error::invalid(format!("an answer: {e}")))
}

#[derive(Serialize)]
struct Answer<'a> {
    rows: Rows<'a>,
}

/// Columns, written by row.
struct Rows<'a> {
    keys: &'a [Vec<(&'a str, &'a Id)>],
    columns: &'a [Column],
    cells: &'a [Cells<'a>],
}

impl Serialize for Rows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut rows = serializer.serialize_seq(Some(self.keys.len()))?;
        for row in 0..self.keys.len() {
            rows.serialize_element(&Row { of: self, row })?;
        }
        rows.end()
    }
}

struct Row<'a> {
    of: &'a Rows<'a>,
    row: usize,
}

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { of, row } = *self;
        let mut map = serializer.serialize_map(None)?;
        for (name, id) in &of.keys[row] {
            map.serialize_entry(name, id)?;
        }
        for (column, cells) in of.columns.iter().zip(of.cells) {
            // As f32, numbers have the fewest digits that stand for them.
            match (cells, column.kind) {
                (Cells::Integers(values), _) => map.serialize_entry(&column.name, &values[row])?,
                (Cells::Texts(values), _) => map.serialize_entry(&column.name, values[row])?,
                (Cells::Lists(values), Kind::List(width)) => {
                    map.serialize_entry(&column.name, &values[row * width..(row + 1) * width])?;
                }
                (Cells::Floats(values) | Cells::Lists(values), _) => {
                    map.serialize_entry(&column.name, &values[row])?;
                }
            }
        }
        map.end()
    }
}
