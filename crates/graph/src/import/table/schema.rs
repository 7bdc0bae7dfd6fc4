//! Schema files: the tables of a graph, in the manner of GraphStorm's `gconstruct`.

use std::path::{Path, PathBuf};

use gnarl_common::{Error, Result};
use serde::Deserialize;

use super::{EdgeTable, Feature, Impute, NodeTable, TableOptions, Transform};
use crate::import::input::read_text;
use crate::manifest::Triple;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Schema {
    #[serde(default)]
    nodes: Vec<Nodes>,
    edges: Vec<Edges>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nodes {
    node_type: String,
    /// Without any the nodes are the ids that edges mention.
    files: Option<Files>,
    format: Option<Format>,
    node_id_col: Option<String>,
    time_col: Option<String>,
    split_col: Option<String>,
    num_classes: Option<u64>,
    #[serde(default)]
    features: Vec<FeatureColumn>,
    #[serde(default)]
    labels: Vec<Label>,
}

impl Nodes {
    /// Returns whether nothing but the name of the type is given.
    fn is_mentioned(&self) -> bool {
        let columns = [&self.node_id_col, &self.time_col, &self.split_col];
        self.files.is_none()
            && self.format.is_none()
            && self.num_classes.is_none()
            && columns.into_iter().all(Option::is_none)
            && self.features.is_empty()
            && self.labels.is_empty()
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Edges {
    relation: [String; 3],
    files: Files,
    format: Option<Format>,
    source_id_col: String,
    dest_id_col: String,
    weight_col: Option<String>,
    time_col: Option<String>,
    split_col: Option<String>,
    #[serde(default)]
    features: Vec<FeatureColumn>,
    #[serde(default)]
    labels: Vec<Label>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Files {
    One(PathBuf),
    Many(Vec<PathBuf>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Format {
    name: String,
    separator: Option<char>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FeatureColumn {
    feature_col: String,
    transform: Option<Named>,
    impute: Option<Imputed>,
    #[serde(default)]
    impute_indicator: bool,
}

/// `"mean"`, `"median"` or a number.
#[derive(Deserialize)]
#[serde(untagged)]
enum Imputed {
    Number(f64),
    Named(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Named {
    name: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Label {
    label_col: String,
    task_type: String,
    split_pct: Option<[f64; 3]>,
}

impl TableOptions {
    /// The tables that the schema file at `path`, a JSON file, lists. File names are relative to its
    /// folder.
    ///
    /// # Errors
    /// For an unknown key or transform, or several files of one type.
    pub fn from_schema(path: &Path) -> Result<Self> {
        let text = read_text(path)?;
        let place = path.display().to_string();
        let schema: Schema =
            serde_json::from_str(&text).map_err(|e| Error::invalid(format!("{place}: {e}")))?;
        let base = path.parent().unwrap_or(Path::new("."));
        let mut options = Self::default();
        for nodes in schema.nodes {
            if nodes.is_mentioned() {
                options.mentioned.push(nodes.node_type);
                continue;
            }
            let table = node_table(nodes, base, &mut options.delimiter);
            options.nodes.push(table.map_err(|e| e.context(place.clone()))?);
        }
        for edges in schema.edges {
            let table = edge_table(edges, base, &mut options.delimiter);
            options.edges.push(table.map_err(|e| e.context(place.clone()))?);
        }
        Ok(options)
    }
}

fn node_table(nodes: Nodes, base: &Path, delimiter: &mut Option<u8>) -> Result<NodeTable> {
    let what = format!("node type '{}'", nodes.node_type);
    let files = nodes.files.ok_or_else(|| {
        Error::invalid(format!("{what}: columns without files"))
            .hint("name the table that has them")
    })?;
    let mut table = NodeTable::new(nodes.node_type, one(&what, files, base)?);
    check_format(&what, nodes.format, delimiter)?;
    table.id = nodes.node_id_col;
    table.time = nodes.time_col;
    table.split = nodes.split_col;
    table.num_classes = nodes.num_classes;
    table.features = of_columns(&what, nodes.features)?;
    let label = only(&what, nodes.labels)?;
    check_splits(&what, table.split.as_ref(), label.as_ref())?;
    match label {
        Some(label) if label.task_type == "classification" => {
            table.label = Some(label.label_col);
            table.shares = label.split_pct;
            Ok(table)
        }
        Some(label) if label.task_type == "regression" => {
            table.value = Some(label.label_col);
            table.shares = label.split_pct;
            Ok(table)
        }
        Some(label) => Err(Error::invalid(format!("{what}: task_type '{}'", label.task_type))
            .hint("labels of nodes are for 'classification' or 'regression'")),
        None => Ok(table),
    }
}

fn edge_table(edges: Edges, base: &Path, delimiter: &mut Option<u8>) -> Result<EdgeTable> {
    let [src, rel, dst] = edges.relation;
    let triple: Triple = format!("{src}:{rel}:{dst}").parse()?;
    let what = format!("edge type {triple}");
    let mut table = EdgeTable::new(triple, one(&what, edges.files, base)?);
    check_format(&what, edges.format, delimiter)?;
    table.src = Some(edges.source_id_col);
    table.dst = Some(edges.dest_id_col);
    table.weight = edges.weight_col;
    table.time = edges.time_col;
    table.split = edges.split_col;
    table.features = of_columns(&what, edges.features)?;
    let label = only(&what, edges.labels)?;
    check_splits(&what, table.split.as_ref(), label.as_ref())?;
    let Some(label) = label else { return Ok(table) };
    table.shares = label.split_pct;
    match label.task_type.as_str() {
        "classification" => table.label = Some(label.label_col),
        "regression" => table.value = Some(label.label_col),
        other => {
            return Err(Error::invalid(format!("{what}: task_type '{other}'"))
                .hint("labels of edges are for 'classification' or 'regression'"));
        }
    }
    Ok(table)
}

/// The only label of a type, if it has one.
fn only(what: &str, mut labels: Vec<Label>) -> Result<Option<Label>> {
    match (labels.pop(), labels.len()) {
        (label, 0) => Ok(label),
        _ => Err(Error::invalid(format!("{what}: several labels"))),
    }
}

/// Rejects splits that are both named and drawn.
fn check_splits(what: &str, column: Option<&String>, label: Option<&Label>) -> Result<()> {
    match (column, label.and_then(|label| label.split_pct)) {
        (Some(column), Some(_)) => {
            Err(Error::invalid(format!("{what}: split_col '{column}' beside split_pct"))
                .hint("a column names the splits, or they are drawn at random"))
        }
        _ => Ok(()),
    }
}

fn one(what: &str, files: Files, base: &Path) -> Result<PathBuf> {
    let mut files = match files {
        Files::One(file) => vec![file],
        Files::Many(files) => files,
    };
    match (files.pop(), files.len()) {
        (Some(file), 0) => Ok(base.join(file)),
        (last, before) => {
            let count = before + usize::from(last.is_some());
            Err(Error::invalid(format!("{what}: {count} files")).hint("give one file a type"))
        }
    }
}

fn check_format(what: &str, format: Option<Format>, delimiter: &mut Option<u8>) -> Result<()> {
    let Some(format) = format else { return Ok(()) };
    if !["csv", "parquet"].contains(&format.name.as_str()) {
        return Err(Error::invalid(format!("{what}: format '{}'", format.name))
            .hint("tables are 'csv' or 'parquet'"));
    }
    if let Some(separator) = format.separator {
        let byte = u8::try_from(separator);
        let byte = byte.map_err(|_| Error::invalid(format!("{what}: separator '{separator}'")))?;
        if delimiter.is_some_and(|known| known != byte) {
            return Err(Error::invalid(format!("{what}: another separator than other tables")));
        }
        *delimiter = Some(byte);
    }
    Ok(())
}

fn of_columns(what: &str, columns: Vec<FeatureColumn>) -> Result<Vec<Feature>> {
    let feature = |given: FeatureColumn| {
        let impute = match given.impute {
            None => None,
            Some(Imputed::Number(value)) => Some(Impute::Value(value)),
            Some(Imputed::Named(name)) => {
                let parsed = name.parse::<Impute>();
                Some(parsed.map_err(|e| Error::invalid(format!("{what}: impute: {e}")))?)
            }
        };
        let transform = transform(what, given.transform.as_ref())?;
        let indicator = given.impute_indicator;
        Ok(Feature { column: given.feature_col, transform, impute, indicator })
    };
    columns.into_iter().map(feature).collect()
}

fn transform(what: &str, named: Option<&Named>) -> Result<Transform> {
    match named.map(|named| named.name.as_str()) {
        None | Some("no-op") => Ok(Transform::None),
        Some("standard") => Ok(Transform::Standard),
        Some("max_min_norm") => Ok(Transform::MaxMin),
        Some("to_categorical") => Ok(Transform::Categorical),
        Some(other) => Err(Error::invalid(format!("{what}: unknown transform '{other}'"))
            .hint("known: no-op, standard, max_min_norm, to_categorical")),
    }
}
