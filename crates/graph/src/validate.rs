//! Checks of what files claim, before anything is indexed by it: manifests and columns may come from elsewhere, or be damaged.

use std::collections::HashSet;

use gnarl_common::folders::is_inside;
use gnarl_common::{Error, Result};

use crate::column::{Column, ColumnSpec};
use crate::csc::Csc;
use crate::manifest::Manifest;

/// Nodes or edges from which on lists are not checked one by one when they are opened, which would read all of them. Samplers
/// check those that they read.
const LONG: usize = 64 << 20;

impl Manifest {
    /// Rejects a manifest that contradicts itself, or names files outside its folder.
    ///
    /// # Errors
    /// Naming the type and the column.
    pub(crate) fn check(&self) -> Result<()> {
        let mut names = HashSet::new();
        for t in &self.node_types {
            if !names.insert(t.name.clone()) {
                return Err(Error::invalid(format!("node type {} occurs twice", t.name)));
            }
            check_columns(&t.name, &t.columns)?;
            if t.core.is_some_and(|core| core > t.count) {
                return Err(Error::invalid(format!("{}: more own nodes than nodes", t.name)));
            }
        }
        let mut names = HashSet::new();
        for t in &self.edge_types {
            if !names.insert(t.triple.clone()) {
                return Err(Error::invalid(format!("edge type {} occurs twice", t.triple)));
            }
            check_columns(&t.triple.to_string(), &t.columns)?;
        }
        let nodes = self.node_types.iter().map(|t| t.count);
        let edges = self.edge_types.iter().map(|t| t.count);
        let are_countable = |mut counts: Box<dyn Iterator<Item = u64> + '_>| {
            let sum = counts.try_fold(0u64, u64::checked_add);
            sum.is_some_and(|sum| i64::try_from(sum).is_ok())
        };
        if !are_countable(Box::new(nodes)) || !are_countable(Box::new(edges)) {
            return Err(Error::invalid("more than 2^63 nodes or edges"));
        }
        self.check_rows()
    }

    /// Rejects columns of other lengths than there are nodes or edges.
    ///
    /// # Errors
    /// Naming the type and the column.
    pub(crate) fn check_rows(&self) -> Result<()> {
        for t in &self.node_types {
            let prefixes: Vec<&str> =
                t.columns.iter().filter_map(|c| offsets_of(&c.name)).collect();
            for column in &t.columns {
                let name = column.name.as_str();
                let is_below = |prefix: &&str| {
                    name.strip_prefix(*prefix).is_some_and(|rest| rest.starts_with('.'))
                };
                if name.starts_with("split.") || name.starts_with("class_name.") {
                    // Tables of another length.
                    continue;
                }
                if offsets_of(name).is_some() {
                    check_length(&t.name, column, t.count.saturating_add(1))?;
                } else if !prefixes.iter().any(is_below) {
                    check_length(&t.name, column, t.count)?;
                }
            }
        }
        for t in &self.edge_types {
            let name = t.triple.to_string();
            // Names with a dot are tables of another length, such as the names of relations.
            let mut of_edges = t.columns.iter().filter(|c| !c.name.contains('.'));
            of_edges.try_for_each(|column| check_length(&name, column, t.count))?;
            let destinations = self.node_type(&t.triple.dst)?.count;
            for column in &t.columns {
                match column.name.as_str() {
                    "csc.indices" | "csc.edge" | "csc.weight" => {
                        check_length(&name, column, t.count)?;
                    }
                    "csc.indptr" => check_length(&name, column, destinations + 1)?,
                    _ => {}
                }
            }
        }
        Ok(())
    }
}

/// The prefix of the columns that a column of offsets leads into.
fn offsets_of(name: &str) -> Option<&str> {
    name.strip_suffix(".indptr").or_else(|| name.strip_suffix(".offsets"))
}

fn check_length(of: &str, column: &ColumnSpec, expected: u64) -> Result<()> {
    let rows = column.shape.first().copied().unwrap_or(0);
    if rows == expected {
        return Ok(());
    }
    Err(Error::invalid(format!("{of}: {} has {rows} rows for {expected}", column.name)))
}

/// Rejects columns of the type `of` that have the same name, are not in the folder, or whose shape has no size.
///
/// # Errors
/// Naming the type and the column.
pub fn check_columns(of: &str, columns: &[ColumnSpec]) -> Result<()> {
    let mut names = HashSet::new();
    for column in columns {
        let ColumnSpec { name, file, .. } = column;
        if !names.insert(name) {
            return Err(Error::invalid(format!("{of}: column {name} occurs twice")));
        }
        if !is_inside(file) {
            let message = format!("{of}: the file '{file}' of column {name} is not in the folder");
            return Err(Error::invalid(message));
        }
        if column.checked_bytes().is_none() {
            let message = format!("{of}: column {name} of shape {:?} has no size", column.shape);
            return Err(Error::invalid(message));
        }
    }
    Ok(())
}

/// Rejects a value of a column that `is_valid` is false for.
///
/// # Errors
/// Naming the file, the row and the value.
pub(crate) fn check_values<T: Copy + std::fmt::Display>(
    column: &Column,
    values: &[T],
    expected: &str,
    is_valid: impl Fn(T) -> bool,
) -> Result<()> {
    // By this thread alone: a process that was forked off has no others, and memory is the limit anyway.
    match values.iter().position(|&value| !is_valid(value)) {
        None => Ok(()),
        Some(row) => Err(Error::invalid(format!(
            "{}: row {row} holds {}, expected {expected}",
            column.spec().file,
            values[row]
        ))
        .hint("the file is damaged, or is not one that gnarl wrote")),
    }
}

/// Rejects lists that lead outside their edges, or to sources from `sources` on.
///
/// # Errors
/// Naming the file and the row.
pub(crate) fn check_lists(csc: &Csc, sources: u64, [offsets, indices]: [&Column; 2]) -> Result<()> {
    let damaged = |column: &Column, row: usize, what: String| {
        Err(Error::invalid(format!("{}: row {row}: {what}", column.spec().file))
            .hint("the file is damaged, or is not one that gnarl wrote"))
    };
    let indptr = csc.indptr.as_slice();
    let edges = csc.indices.len() as u64;
    let Some(nodes) = indptr.len().checked_sub(1) else {
        return damaged(offsets, 0, "there is no offset".into());
    };
    if indptr.get(0) != 0 {
        return damaged(offsets, 0, format!("the first list begins at {}", indptr.get(0)));
    }
    if indptr.get(nodes) != edges {
        let end = indptr.get(nodes);
        return damaged(offsets, nodes, format!("lists end at {end} of {edges} edges"));
    }
    if nodes > LONG || csc.indices.len() > LONG {
        return Ok(());
    }
    let falls = |&node: &usize| indptr.get(node) > indptr.get(node + 1);
    if let Some(node) = (0..nodes).find(falls) {
        return damaged(offsets, node, "the list ends before it begins".into());
    }
    check_values(indices, &csc.indices, &format!("a node below {sources}"), |source: u32| {
        u64::from(source) < sources
    })
}

#[cfg(test)]
mod tests {
    use gnarl_common::DType;

    use super::*;
    use crate::manifest::{NodeType, VERSION};

    fn manifest(columns: Vec<ColumnSpec>) -> Manifest {
        let node = NodeType {
            name: "_N".into(),
            count: 3,
            core: None,
            classes: None,
            csr_width: None,
            columns,
        };
        Manifest {
            format: "gnarl-dataset".into(),
            version: VERSION,
            name: "test".into(),
            id_width: 32,
            node_types: vec![node],
            edge_types: vec![],
            origin: serde_json::Value::Null,
            request: serde_json::Value::Null,
        }
    }

    fn column(name: &str, file: &str, shape: &[u64]) -> ColumnSpec {
        ColumnSpec {
            name: name.into(),
            file: file.into(),
            dtype: DType::F32,
            shape: shape.to_vec(),
            crc32: 0,
        }
    }

    #[test]
    fn contradictions_are_named() {
        manifest(vec![column("features", "x.npy", &[3, 4])]).check().unwrap();
        for (column, text) in [
            (column("features", "/etc/x.npy", &[3, 4]), "is not in the folder"),
            (column("features", "../x.npy", &[3, 4]), "is not in the folder"),
            (column("features", "x.npy", &[2, 4]), "2 rows for 3"),
            (column("features.indptr", "x.npy", &[3]), "3 rows for 4"),
            (column("paper", "x.npy", &[2]), "2 rows for 3"),
            (column("degree._N.e", "x.npy", &[2]), "2 rows for 3"),
            (column("other", "x.npy", &[u64::MAX, 4]), "no size"),
            (column("other", "x.npy", &[]), "no size"),
        ] {
            let error = manifest(vec![column]).check().unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        }
        let twice = column("features", "x.npy", &[3, 4]);
        let error = manifest(vec![twice.clone(), twice]).check().unwrap_err().to_string();
        assert!(error.contains("occurs twice"), "{error}");
        let mut many = manifest(vec![]);
        many.node_types[0].count = u64::MAX;
        assert!(many.check().unwrap_err().to_string().contains("2^63"));
    }
}
