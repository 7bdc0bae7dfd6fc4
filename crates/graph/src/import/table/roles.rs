//! Which columns of a table are taken, and for what. A column has one role.

use super::facts::{TableColumn, TableFacts};
use super::header::{Expected, Header, names_ids};
use super::options::{EdgeTable, IdKind, NodeTable};
use super::{Batch, Cell, TableReader, Values};
use crate::error::{Error, Result};
use crate::import::input::shortened;
use crate::import::triples::entity_edges;

/// What a column is taken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Id,
    Source,
    Destination,
    Weight,
    Time,
    Label,
    Value,
    Split,
    Feature,
}

impl Role {
    fn name(self) -> &'static str {
        match self {
            Self::Id => "id",
            Self::Source => "source",
            Self::Destination => "destination",
            Self::Weight => "weight",
            Self::Time => "time",
            Self::Label => "label",
            Self::Value => "value",
            Self::Split => "split",
            Self::Feature => "feature",
        }
    }
}

/// The columns taken so far.
struct Taken<'a> {
    reader: &'a dyn TableReader,
    roles: Vec<(usize, Role)>,
}

impl<'a> Taken<'a> {
    fn new(reader: &'a dyn TableReader) -> Self {
        Self { reader, roles: Vec::new() }
    }

    /// Takes a column.
    ///
    /// # Errors
    /// If it is taken already, naming both roles.
    fn take(&mut self, column: usize, role: Role) -> Result<usize> {
        if let Some((_, before)) = self.roles.iter().find(|(taken, _)| *taken == column) {
            let (file, name) = (self.reader.name(), &self.reader.columns()[column]);
            let roles = match *before == role {
                true => format!("twice as {}", role.name()),
                false => format!("as {} and as {}", before.name(), role.name()),
            };
            return Err(Error::usage(format!("{file}: column '{name}' is taken {roles}"))
                .hint("name each column once; patterns such as 'x*' leave out what has a role"));
        }
        self.roles.push((column, role));
        Ok(column)
    }

    fn named(&mut self, name: &str, role: Role) -> Result<usize> {
        let column = self.reader.find(name).ok_or_else(|| missing(self.reader, name))?;
        self.take(column, role)
    }

    /// A column that was asked for, or one of the usual name if it is there.
    fn usual(&mut self, asked: Option<&str>, usual: &str, role: Role) -> Result<Option<usize>> {
        match asked {
            Some(name) => self.named(name, role).map(Some),
            None => self.reader.find(usual).map(|column| self.take(column, role)).transpose(),
        }
    }

    fn asked(&mut self, name: Option<&String>, role: Role) -> Result<Option<usize>> {
        name.map(|name| self.named(name, role)).transpose()
    }

    /// The columns of each of the names, where `x*` stands for all that start with `x` and have no
    /// other role: columns that have a name of their own in the list are not part of patterns.
    fn features(&mut self, names: &[&str]) -> Result<Vec<Vec<usize>>> {
        let mut found = vec![Vec::new(); names.len()];
        for (name, columns) in names.iter().zip(&mut found) {
            if !name.ends_with('*') {
                columns.push(self.named(name, Role::Feature)?);
            }
        }
        for (name, columns) in names.iter().zip(&mut found) {
            let Some(prefix) = name.strip_suffix('*') else { continue };
            // Columns without a name are the index that pandas writes.
            let all = self.reader.columns().iter().enumerate();
            let all = all.filter(|(_, column)| column.starts_with(prefix) && !column.is_empty());
            let matching: Vec<usize> = all.map(|(column, _)| column).collect();
            let free = |column: &usize| self.roles.iter().all(|(taken, _)| taken != column);
            columns.extend(matching.iter().copied().filter(free));
            if matching.is_empty() {
                return Err(missing(self.reader, name));
            }
            if columns.is_empty() {
                let others: Vec<&str> =
                    matching.iter().map(|&column| &*self.reader.columns()[column]).collect();
                let file = self.reader.name();
                return Err(Error::usage(format!(
                    "{file}: '{name}' leaves no column for features"
                ))
                .hint(format!("these have another role: {}", shortened(&others, 6))));
            }
            self.roles.extend(columns.iter().map(|&column| (column, Role::Feature)));
        }
        Ok(found)
    }

    fn facts(&self, kind: String) -> TableFacts {
        let reader = self.reader;
        let name = |column: usize| reader.columns()[column].clone();
        let column = |&(column, role): &(usize, Role)| TableColumn {
            name: name(column),
            role: role.name(),
            count: 1,
        };
        let others = self.roles.iter().filter(|(_, role)| *role != Role::Feature);
        let mut columns: Vec<TableColumn> = others.map(column).collect();
        let mut features: Vec<usize> =
            self.roles.iter().filter(|r| r.1 == Role::Feature).map(|r| r.0).collect();
        features.sort_unstable();
        if let (Some(&first), Some(&last)) = (features.first(), features.last()) {
            let name = match features.len() {
                1 => name(first),
                _ => format!("{} … {}", name(first), name(last)),
            };
            let count = features.iter().map(|&column| reader.width(column)).sum();
            let role = if count == 1 { "feature" } else { "features" };
            columns.push(TableColumn { name, role, count });
        }
        let unused = (0..reader.columns().len())
            .filter(|column| self.roles.iter().all(|(taken, _)| taken != column));
        TableFacts {
            file: reader.name().into(),
            kind,
            columns,
            unused: unused.map(name).collect(),
            delimiter: reader.delimiter().map(char::from),
            header: reader.has_header(),
            ids: "rows",
            first: Vec::new(),
        }
    }
}

/// The error of a column that is not there.
fn missing(reader: &dyn TableReader, name: &str) -> Error {
    let columns = reader.columns();
    let known = shortened(columns, 20);
    let mut hint = match reader.has_header() {
        true => format!("it has: {known}"),
        false => format!("it has no header, so columns are called by position: {known}"),
    };
    let plain = |text: &str| text.trim().to_lowercase();
    if let Some(like) = columns.iter().find(|column| plain(column) == plain(name)) {
        hint += &format!("; did you mean '{like}'?");
    }
    if reader.header() == Header::Asked {
        hint += "; the first line was taken for a header, as columns are asked for by name: if it is data, name them by position, from 0, or give --header false";
    }
    Error::invalid(format!("{}: no column '{name}'", reader.name())).hint(hint)
}

/// The columns of a table of nodes.
pub(super) struct NodeColumns {
    /// None where nodes are numbered by row.
    pub id: Option<usize>,
    pub label: Option<usize>,
    pub split: Option<usize>,
    /// The columns of each feature of the table.
    pub features: Vec<Vec<usize>>,
    /// What is said of them, but for the ids.
    pub facts: TableFacts,
}

impl NodeColumns {
    /// The columns that a table should have.
    pub fn expected(table: &NodeTable, ids: IdKind) -> Expected<'_> {
        let named = [&table.id, &table.label, &table.split];
        let asked = named.into_iter().flatten().map(String::as_str);
        Expected {
            asked: asked.chain(table.features.iter().map(|f| f.column.as_str())).collect(),
            usual: &["id", "label", "split"],
            ids: 1,
            strict: ids == IdKind::Auto,
        }
    }

    /// Finds them.
    ///
    /// # Errors
    /// If one is missing, or has two roles; if there is a header without a column of ids, though
    /// there should be one.
    pub fn find(reader: &dyn TableReader, table: &NodeTable) -> Result<Self> {
        let mut taken = Taken::new(reader);
        let id = node_id(&mut taken, table)?;
        let label = taken.usual(table.label.as_deref(), "label", Role::Label)?;
        let split = match table.shares {
            Some(_) => None,
            None => taken.usual(table.split.as_deref(), "split", Role::Split)?,
        };
        let names: Vec<&str> = table.features.iter().map(|f| f.column.as_str()).collect();
        let features = taken.features(&names)?;
        let facts = taken.facts(table.ntype.clone());
        Ok(Self { id, label, split, features, facts })
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
    pub features: Vec<usize>,
    /// What is said of them, but for the ids.
    pub facts: TableFacts,
}

impl EdgeColumns {
    /// The columns that a table should have.
    pub fn expected(table: &EdgeTable, ids: IdKind) -> Expected<'_> {
        let named = [&table.src, &table.dst, &table.weight, &table.time];
        let named = named.into_iter().chain([&table.label, &table.value, &table.split]).flatten();
        Expected {
            asked: named.chain(&table.features).map(String::as_str).collect(),
            usual: &["src", "dst", "weight", "time"],
            ids: 2,
            strict: ids == IdKind::Auto,
        }
    }

    /// Finds them.
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
        let names: Vec<&str> = table.features.iter().map(String::as_str).collect();
        let features = taken.features(&names)?.concat();
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

/// How a column of ids is read.
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

impl TableFacts {
    /// What was understood of a text file of triples, of which `batch` has the first; says so.
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

    /// Completes the facts by the ids in the first row of a batch.
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
