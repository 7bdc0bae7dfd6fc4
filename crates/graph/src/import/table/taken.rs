//! The used columns of a table, with one role each.

use gnarl_common::{Error, Result};

use super::facts::{TableColumn, TableFacts};
use super::header::Header;
use super::{Feature, TableReader, Transform};
use crate::import::input::shortened;

/// The role of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
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

/// The columns used so far.
pub(super) struct Taken<'a> {
    pub reader: &'a dyn TableReader,
    roles: Vec<(usize, Role)>,
}

impl<'a> Taken<'a> {
    pub fn new(reader: &'a dyn TableReader) -> Self {
        Self { reader, roles: Vec::new() }
    }

    /// Assigns a role to a column.
    ///
    /// # Errors
    /// If it has one already, naming both roles.
    pub fn take(&mut self, column: usize, role: Role) -> Result<usize> {
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

    fn find(&self, name: &str) -> Result<usize> {
        self.reader.find(name).ok_or_else(|| missing(self.reader, name))
    }

    pub fn named(&mut self, name: &str, role: Role) -> Result<usize> {
        let column = self.find(name)?;
        self.take(column, role)
    }

    /// A requested column, or the one of the default name if it exists.
    pub fn usual(&mut self, asked: Option<&str>, usual: &str, role: Role) -> Result<Option<usize>> {
        match asked {
            Some(name) => self.named(name, role).map(Some),
            None => self.reader.find(usual).map(|column| self.take(column, role)).transpose(),
        }
    }

    pub fn asked(&mut self, name: Option<&String>, role: Role) -> Result<Option<usize>> {
        name.map(|name| self.named(name, role)).transpose()
    }

    /// The feature columns, in the order in which they are first mentioned. `x*` stands for all
    /// that start with `x` and have no other role. Of several mentions of a column the one with a
    /// transform counts, then the one by its own name.
    ///
    /// # Errors
    /// If one is missing, has another role, is mentioned twice alike or with two transforms, or if a
    /// pattern adds none.
    pub fn features(&mut self, features: &[Feature]) -> Result<Vec<(usize, Feature)>> {
        let mut found: Vec<(usize, Feature)> = Vec::new();
        for feature in features {
            let name = &feature.column;
            let columns = match name.strip_suffix('*') {
                Some(prefix) => self.matching(prefix)?,
                None => vec![self.find(name)?],
            };
            let mut adds = false;
            for &column in &columns {
                let known = found.iter_mut().find(|(known, _)| *known == column);
                let alike =
                    |known: &Feature| known.column == *name && known.transform == feature.transform;
                match known {
                    Some((_, known)) if !alike(known) => {
                        adds |= known.transform != feature.transform;
                        self.settle(column, known, feature)?;
                    }
                    // An error, if it is known.
                    _ => {
                        adds = true;
                        found.push((self.take(column, Role::Feature)?, feature.clone()));
                    }
                }
            }
            if name.ends_with('*') && !adds {
                return Err(self.without_columns(name));
            }
        }
        Ok(found)
    }

    /// The columns that start with `prefix` and are features or have no role yet.
    fn matching(&self, prefix: &str) -> Result<Vec<usize>> {
        let all = self.starting_with(prefix);
        if all.is_empty() {
            return Err(missing(self.reader, &format!("{prefix}*")));
        }
        let free = |column: &usize| {
            self.roles.iter().all(|(taken, role)| taken != column || *role == Role::Feature)
        };
        Ok(all.into_iter().filter(free).collect())
    }

    fn starting_with(&self, prefix: &str) -> Vec<usize> {
        // Columns without a name are the index that pandas writes.
        let all = self.reader.columns().iter().enumerate();
        let all = all.filter(|(_, column)| column.starts_with(prefix) && !column.is_empty());
        all.map(|(column, _)| column).collect()
    }

    /// Chooses between two mentions of a column.
    fn settle(&self, column: usize, known: &mut Feature, feature: &Feature) -> Result<()> {
        let transforms = [known.transform, feature.transform];
        if transforms[0] != transforms[1] && !transforms.contains(&Transform::None) {
            let (file, name) = (self.reader.name(), &self.reader.columns()[column]);
            return Err(Error::usage(format!("{file}: column '{name}' has two transforms"))
                .hint("name it once, with the transform that is meant"));
        }
        let rank = |f: &Feature| (f.transform != Transform::None, !f.column.ends_with('*'));
        if rank(feature) > rank(known) {
            *known = feature.clone();
        }
        Ok(())
    }

    /// The error of a pattern that adds no feature.
    fn without_columns(&self, pattern: &str) -> Error {
        let columns = self.starting_with(pattern.trim_end_matches('*'));
        let names: Vec<&str> = columns.iter().map(|&c| &*self.reader.columns()[c]).collect();
        let file = self.reader.name();
        Error::usage(format!("{file}: '{pattern}' leaves no column for features"))
            .hint(format!("these are taken already: {}", shortened(&names, 6)))
    }

    pub fn facts(&self, kind: String) -> TableFacts {
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
