//! The edges that scores are asked for.

use std::collections::HashMap;
use std::path::Path;

use gnarl_common::did_you_mean::unknown;
use gnarl_common::{Error, Result, ResultExt};
use gnarl_graph::UserIds;
use gnarl_train::{EdgeBatch, EdgeModel};

/// The edges of `--edges`.
pub(super) enum EdgeSource {
    /// All edges of the dataset.
    All,
    /// Those of a split, or of a file.
    Some(EdgeBatch),
}

impl EdgeSource {
    /// The edges `which`: `all`, a split, or the lines of a file. Endpoints have the ids `ids`.
    ///
    /// # Errors
    /// If there is no such split or file, or a line is none of an edge.
    pub fn of(
        which: &str,
        relation: Option<&str>,
        model: &EdgeModel<'_>,
        ids: &[UserIds; 2],
    ) -> Result<Self> {
        let split = model.split(which)?;
        if let Some(relation) = relation.filter(|_| which == "all" || split.is_some()) {
            let message =
                format!("--relation {relation}: --edges {which} has those of the dataset");
            return Err(Error::usage(message).hint("leave it out, or name a file of edges"));
        }
        if which == "all" {
            return Ok(Self::All);
        }
        let batch = match split {
            Some(split) => split,
            None if !Path::new(which).exists() => {
                return Err(Error::usage(format!("--edges {which}: no split and no file"))
                    .hint("take all, train, valid, test, or the path of a file"));
            }
            None => of_file(Path::new(which), relation, model, ids)?,
        };
        if batch.edges.is_empty() {
            return Err(Error::usage(format!("--edges {which}: no edges")));
        }
        Ok(Self::Some(batch))
    }
}

/// The number of the relation `name`; 0 if it is not given and there is one.
///
/// # Errors
/// If there is none of that name, or several and none is given.
pub(super) fn relation(name: Option<&str>, model: &EdgeModel<'_>) -> Result<u32> {
    let (names, count) = (model.relation_names(), model.num_relations());
    let Some(name) = name else {
        return match count {
            0 | 1 => Ok(0),
            _ => Err(Error::usage(format!("edges have {count} relations, and none is named"))
                .hint("name one with --relation")),
        };
    };
    if let Some(number) = names.iter().position(|known| known == name) {
        return Ok(number as u32);
    }
    let number = name.parse::<u32>().ok().filter(|&number| (number as usize) < count);
    match number {
        Some(number) if names.is_empty() => Ok(number),
        _ if names.is_empty() => Err(Error::usage(format!("unknown relation '{name}'"))
            .hint(format!("they are numbered from 0 to {}", count.saturating_sub(1)))),
        _ => {
            let known: Vec<&str> = names.iter().map(String::as_str).collect();
            Err(unknown("relation", name, &known))
        }
    }
}

/// Edges of the lines of a file: two or three columns apart by tabs, or else by commas, or else by spaces.
fn of_file(
    path: &Path,
    asked: Option<&str>,
    model: &EdgeModel<'_>,
    ids: &[UserIds; 2],
) -> Result<EdgeBatch> {
    if model.reads_rows() {
        return Err(Error::usage(
            "the run scores edges by their features, which those of a file do not have",
        )
        .hint("take --edges all or a split, or train with task.edge_features = false"));
    }
    let text = std::fs::read_to_string(path).at(path)?;
    let mut heads = Vec::new();
    let mut tails = Vec::new();
    let mut relations = Vec::new();
    // Lines are many, and relations may be.
    let mut known: HashMap<Option<&str>, u32> = HashMap::new();
    let apart =
        ['\t', ','].into_iter().find(|&apart| text.lines().any(|line| line.contains(apart)));
    let named = |line: usize| format!("{}: line {line}", path.display());
    for (line, columns) in text.lines().enumerate() {
        let columns: Vec<&str> = match apart {
            Some(apart) => columns.split(apart).map(str::trim).collect(),
            None => columns.split_whitespace().collect(),
        };
        let (head, of, tail) = match columns[..] {
            [head, tail] => (head, asked, tail),
            [head, of, tail] => (head, Some(of), tail),
            _ => {
                let found = columns.len();
                return Err(Error::invalid(format!(
                    "{}: expected a head and a tail, or a head, a relation and a tail; found {found} columns",
                    named(line + 1)
                )));
            }
        };
        heads.push(head);
        tails.push(tail);
        let number = match known.get(&of) {
            Some(&number) => number,
            None => {
                let number = relation(of, model).map_err(|e| e.context(named(line + 1)))?;
                known.insert(of, number);
                number
            }
        };
        relations.push(number);
    }
    let found = |of: &UserIds, ids: &[&str]| -> Result<Vec<u32>> {
        let nodes = of.find(ids).map_err(|e| e.context(path.display().to_string()))?;
        Ok(nodes.into_iter().map(|node| node as u32).collect())
    };
    let mut batch = EdgeBatch::default();
    batch.edges.heads = found(&ids[0], &heads)?;
    batch.edges.tails = found(&ids[1], &tails)?;
    batch.edges.relations = relations;
    Ok(batch)
}
