//! Assignment of table columns to roles. A column has one role.

use gnarl_common::{Error, Result};

use super::header::{Expected, Header, names_ids};
use super::options::{EdgeTable, IdKind, NodeTable};
use super::taken::{Role, Taken};
use super::{Cell, Feature, TableFacts, TableReader};
use crate::import::input::shortened;

/// The columns of a table of nodes.
pub(super) struct NodeColumns {
    /// Column of ids; none where nodes are numbered by row.
    pub id: Option<usize>,
    pub label: Option<usize>,
    pub value: Option<usize>,
    pub time: Option<usize>,
    pub split: Option<usize>,
    /// Feature columns, with their transforms.
    pub features: Vec<(usize, Feature)>,
    /// Facts about the columns, without the ids.
    pub facts: TableFacts,
}

impl NodeColumns {
    /// The expected columns of a table.
    pub fn expected(table: &NodeTable, ids: IdKind) -> Expected<'_> {
        let named = [&table.id, &table.label, &table.value, &table.time, &table.split];
        let asked = named.into_iter().flatten().map(String::as_str);
        Expected {
            asked: asked.chain(table.features.iter().map(|f| f.column.as_str())).collect(),
            usual: &["id", "label", "split"],
            ids: 1,
            strict: ids == IdKind::Auto,
        }
    }

    /// Finds the columns.
    ///
    /// # Errors
    /// If one is missing, or has two roles; if there is a header without a column of ids, though
    /// there should be one.
    pub fn find(reader: &dyn TableReader, table: &NodeTable) -> Result<Self> {
        let mut taken = Taken::new(reader);
        let id = node_id(&mut taken, table)?;
        let value = taken.asked(table.value.as_ref(), Role::Value)?;
        let time = taken.asked(table.time.as_ref(), Role::Time)?;
        // Numbers that are named are the targets: a column `label` is none then, unless it is named, too.
        let label = match (&table.label, &table.value) {
            (None, Some(_)) => None,
            (label, _) => taken.usual(label.as_deref(), "label", Role::Label)?,
        };
        let split = match table.shares {
            Some(_) => None,
            None => taken.usual(table.split.as_deref(), "split", Role::Split)?,
        };
        let features = taken.features(&table.features)?;
        let facts = taken.facts(table.ntype.clone());
        Ok(Self { id, label, value, time, split, features, facts })
    }
}

fn node_id(taken: &mut Taken<'_>, table: &NodeTable) -> Result<Option<usize>> {
    let reader = taken.reader;
    match &table.id {
        Some(name) => return taken.named(name, Role::Id).map(Some),
        None if !reader.has_header() => return taken.take(0, Role::Id).map(Some),
        None => {}
    }
    let id = taken.usual(None, "id", Role::Id)?;
    let columns = reader.columns();
    let mut named = columns.iter().enumerate();
    let likely = named.find(|(at, column)| names_ids(column, *at, &table.ntype));
    let likely = likely.map(|(_, column)| column);
    if id.is_some() || (likely.is_none() && reader.header() != Header::Likely) {
        return Ok(id);
    }
    let mut hint = format!("it has: {}", shortened(columns, 20));
    match (likely, columns.first()) {
        (Some(likely), _) => hint += &format!("; give --id {likely} if ids are there"),
        (None, first) => {
            let first = first.map(String::as_str).unwrap_or_default();
            hint += &format!(
                "; give --id, such as --id {first}, --header true if row i is node i, or --header false if the first line is a node"
            );
        }
    }
    Err(Error::invalid(format!("{}: no column 'id'", reader.name())).hint(hint))
}

/// The columns of a table of edges.
pub(super) struct EdgeColumns {
    pub src: usize,
    pub dst: usize,
    pub weight: Option<usize>,
    pub time: Option<usize>,
    pub label: Option<usize>,
    pub value: Option<usize>,
    pub split: Option<usize>,
    /// Feature columns, with their transforms.
    pub features: Vec<(usize, Feature)>,
    /// Facts about the columns, without the ids.
    pub facts: TableFacts,
}

impl EdgeColumns {
    /// The expected columns of a table.
    pub fn expected(table: &EdgeTable, ids: IdKind) -> Expected<'_> {
        let named = [&table.src, &table.dst, &table.weight, &table.time];
        let named = named.into_iter().chain([&table.label, &table.value, &table.split]).flatten();
        let features = table.features.iter().map(|feature| &feature.column);
        Expected {
            asked: named.chain(features).map(String::as_str).collect(),
            usual: &["src", "dst", "weight", "time"],
            ids: 2,
            strict: ids == IdKind::Auto,
        }
    }

    /// Finds the columns.
    ///
    /// # Errors
    /// If one is missing, or has two roles.
    pub fn find(reader: &dyn TableReader, table: &EdgeTable) -> Result<Self> {
        let mut taken = Taken::new(reader);
        let ends = [(&table.src, "src", Role::Source), (&table.dst, "dst", Role::Destination)];
        let mut columns = [0; 2];
        let mut absent = Vec::new();
        for (position, (asked, usual, role)) in ends.into_iter().enumerate() {
            columns[position] = match asked {
                Some(name) => taken.named(name, role)?,
                None if reader.has_header() => match taken.usual(None, usual, role)? {
                    Some(column) => column,
                    None => {
                        absent.push(usual);
                        continue;
                    }
                },
                None if position < reader.columns().len() => taken.take(position, role)?,
                None => {
                    return Err(Error::invalid(format!("{}: edges have 2 columns", reader.name()))
                        .hint("source and destination, then what edges carry"));
                }
            };
        }
        if !absent.is_empty() {
            return Err(without_ends(reader, &absent));
        }
        let weight = taken.usual(table.weight.as_deref(), "weight", Role::Weight)?;
        let time = taken.usual(table.time.as_deref(), "time", Role::Time)?;
        let label = taken.asked(table.label.as_ref(), Role::Label)?;
        let value = taken.asked(table.value.as_ref(), Role::Value)?;
        let split = taken.asked(table.split.as_ref(), Role::Split)?;
        let features = taken.features(&table.features)?;
        let facts = taken.facts(table.triple.to_string());
        let [src, dst] = columns;
        Ok(Self { src, dst, weight, time, label, value, split, features, facts })
    }
}

/// The error of a table of edges whose header lacks the usual names `absent`.
fn without_ends(reader: &dyn TableReader, absent: &[&str]) -> Error {
    let names = absent.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(" and ");
    let noun = if absent.len() > 1 { "columns" } else { "column" };
    let columns = reader.columns();
    let mut hint = format!("it has: {}; name the ends of edges, such as ", shortened(columns, 20));
    let free = columns.iter().filter(|column| !["src", "dst"].contains(&column.as_str()));
    let suggested: Vec<String> =
        absent.iter().zip(free).map(|(end, column)| format!("--{end} {column}")).collect();
    hint += &suggested.join(" ");
    if reader.header() != Header::Stated {
        hint += ", or give --header false if the first line is an edge";
    }
    Error::invalid(format!("{}: no {noun} {names}", reader.name())).hint(hint)
}

/// The cell type of an id column.
///
/// # Errors
/// If its ids are numbers with fractions, unless their kind is stated.
pub(super) fn id_cell(kind: IdKind, reader: &dyn TableReader, column: usize) -> Result<Cell> {
    match kind {
        IdKind::Integer => Ok(Cell::Integer),
        IdKind::String => Ok(Cell::Text),
        IdKind::Auto if reader.looks_integer(column) => Ok(Cell::Integer),
        IdKind::Auto if reader.looks_fraction(column) => {
            let name = &reader.columns()[column];
            let what =
                format!("{}: column '{name}' has ids with fractions or exponents", reader.name());
            Err(Error::invalid(what).hint(
                "ids are integers or strings: write 12 for 12.0 (pandas: astype('Int64')), or give --ids string to keep them as written",
            ))
        }
        IdKind::Auto => Ok(Cell::Text),
    }
}
