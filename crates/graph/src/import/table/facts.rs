//! The detected layout of a table: one line in the log, and a part of the result.

use std::fmt;

use serde::Serialize;

use super::header::called;
use super::{Batch, TableReader, Values};
use crate::import::entities::entity_edges;
use crate::import::input::shortened;

/// The detected layout of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TableFacts {
    /// The file.
    pub file: String,
    /// The node or edge type in it.
    #[serde(rename = "type")]
    pub kind: String,
    /// Used columns, in the order of their roles.
    pub columns: Vec<TableColumn>,
    /// Unused columns.
    pub unused: Vec<String>,
    /// Field delimiter; none in Parquet.
    pub delimiter: Option<char>,
    /// True if columns have names; without a header they are called 0, 1, and so on.
    pub header: bool,
    /// Kind of ids: `integers`, `strings`, or `rows` where nodes are numbered by row.
    pub ids: &'static str,
    /// The ids in the first row: one for nodes, two for edges, three for triples.
    pub first: Vec<String>,
}

/// Columns of one role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TableColumn {
    /// Name of the column; of several the first and the last, `x0 … x9`.
    pub name: String,
    /// Its role: `source`, `destination`, `id`, `label`, `features` and so on.
    pub role: &'static str,
    /// Number of values per row.
    pub count: usize,
}

impl TableFacts {
    /// Logs the facts.
    pub(in crate::import) fn tell(&self) {
        tracing::info!("{self}");
    }

    /// The facts of a text file of triples, of which `batch` has the first; logs them.
    pub(in crate::import) fn of_triples(reader: &dyn TableReader, batch: &Batch) -> Self {
        let roles = ["head", "relation", "tail"];
        let columns = reader.columns().iter().zip(roles);
        let facts = Self {
            file: reader.name().into(),
            kind: entity_edges().to_string(),
            columns: columns
                .map(|(name, role)| TableColumn { name: name.clone(), role, count: 1 })
                .collect(),
            unused: Vec::new(),
            delimiter: reader.delimiter().map(char::from),
            header: reader.has_header(),
            ids: "",
            first: Vec::new(),
        };
        let relation = facts.clone().with_ids(batch, &[1]).first;
        let mut facts = facts.with_ids(batch, &[0, 2]);
        facts.first.splice(1..1, relation);
        facts.tell();
        facts
    }

    /// Adds the ids in the first row of a batch.
    pub(in crate::import) fn with_ids(mut self, batch: &Batch, columns: &[usize]) -> Self {
        let id = |&column: &usize| match &batch.columns[column] {
            Values::Integer(ids) => ids.first().map(i64::to_string).unwrap_or_default(),
            values => String::from_utf8_lossy(values.text(0)).into_owned(),
        };
        let text = columns.iter().any(|&column| matches!(batch.columns[column], Values::Text(..)));
        self.ids = if text { "strings" } else { "integers" };
        self.first = columns.iter().map(id).collect();
        self
    }
}

impl fmt::Display for TableFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let taken = self.columns.iter().map(|TableColumn { name, role, count }| match count {
            1 => format!("{name} → {role}"),
            _ => format!("{name} → {count} {role}"),
        });
        let taken: Vec<String> = taken.collect();
        let taken = if taken.is_empty() { "none".into() } else { shortened(&taken, 12) };
        write!(f, "{}: columns {taken}", self.file)?;
        if !self.unused.is_empty() {
            write!(f, "; not used: {}", shortened(&self.unused, 6))?;
        }
        if let Some(delimiter) = self.delimiter {
            let header = if self.header { "header" } else { "no header" };
            write!(f, "; delimiter {}; {header}", called(delimiter as u8))?;
        }
        match (&self.first[..], self.ids) {
            (_, "rows") => f.write_str("; no ids: row i is node i"),
            ([id], ids) => write!(f, "; {ids} as ids; first node {id}"),
            ([src, dst], ids) => write!(f, "; {ids} as ids; first edge {src} → {dst}"),
            (first, ids) => write!(f, "; {ids} as ids; first triple {}", first.join(" → ")),
        }
    }
}
