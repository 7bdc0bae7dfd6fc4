//! `gnarl import csv`, `tsv` and `parquet`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use gnarl_common::{Error, Result};
use gnarl_graph::import::{
    self, EdgeTable, Feature, IdKind, Imported, Impute, NodeTable, TableOptions, Transform,
    WeightType,
};
use gnarl_graph::{DEFAULT_NODE_TYPE, Triple};

use super::options::Common;

/// The kind of ids in tables.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Ids {
    Auto,
    Integer,
    String,
}

/// Options of the graph as a whole.
#[derive(Debug, Args)]
struct Shape {
    /// Number of nodes, [type=]N: keeps integer ids
    #[arg(long, value_name = "[TYPE=]N")]
    num_nodes: Vec<String>,
    /// Kind of ids
    #[arg(long, value_enum, default_value = "auto")]
    ids: Ids,
    /// Storage type of weights: f32, f16 or bf16
    #[arg(long, default_value_t)]
    weight_type: WeightType,
    /// Store the reverse of every edge too, dropping repeated ones, where both endpoints are of one type
    #[arg(long)]
    symmetrize: bool,
    /// Store the reverse of every edge too, as an edge of type destination:rev_relation:source
    #[arg(long)]
    reverse: bool,
    /// Drop repeated edges
    #[arg(long)]
    coalesce: Option<bool>,
}

impl Shape {
    /// Adds the options to those of the tables.
    fn options(&self, tables: TableOptions, memory: u64) -> Result<TableOptions> {
        let num_nodes = self.num_nodes.iter().map(|given| {
            let (ntype, count) = given.split_once('=').unwrap_or((DEFAULT_NODE_TYPE, given));
            let count = count.parse().map_err(|_| {
                Error::usage(format!("invalid --num-nodes '{given}': expected a number"))
            })?;
            Ok((ntype.into(), count))
        });
        Ok(TableOptions {
            num_nodes: num_nodes.collect::<Result<_>>()?,
            ids: match self.ids {
                Ids::Auto => IdKind::Auto,
                Ids::Integer => IdKind::Integer,
                Ids::String => IdKind::String,
            },
            weight_type: self.weight_type,
            symmetrize: self.symmetrize,
            reverse: self.reverse,
            coalesce: self.coalesce,
            memory,
            ..tables
        })
    }
}

/// Tables of a homogeneous graph (`--edges edges.csv --nodes nodes.csv`) or of a heterogeneous one
/// (`--edges author:writes:paper=writes.csv --nodes paper=papers.csv`).
#[derive(Debug, Args)]
pub struct Table {
    /// Edges, [source:relation:destination=]FILE
    #[arg(long, required = true, value_name = "[TYPE=]FILE")]
    edges: Vec<String>,
    /// Nodes, [type=]FILE; row i becomes node i
    #[arg(long, value_name = "[TYPE=]FILE")]
    nodes: Vec<String>,
    /// Column of sources ('src', or the first without a header)
    #[arg(long)]
    src: Option<String>,
    /// Column of destinations ('dst', or the second without a header)
    #[arg(long)]
    dst: Option<String>,
    /// Column of node ids ('id', if there, or the first without a header)
    #[arg(long)]
    id: Option<String>,
    /// Column of classes ('label', if there)
    #[arg(long)]
    label: Option<String>,
    /// Column of numbers of nodes, to be learned by regression
    #[arg(long)]
    value: Option<String>,
    /// Column of times of nodes: integers or dates; those of edges are --time
    #[arg(long, value_name = "[TYPE=]COLUMN")]
    node_time: Vec<String>,
    /// Column that names each node's split ('split', if there)
    #[arg(long)]
    split: Option<String>,
    /// Numeric columns of node features; x* stands for all that start with x and have no other role
    #[arg(long, value_delimiter = ',')]
    features: Vec<String>,
    /// Columns of categories: a feature of 0 and 1 for each value; x* as above
    #[arg(long, value_name = "COLUMN", value_delimiter = ',')]
    categorical: Vec<String>,
    /// Numeric columns as features of mean 0 and deviation 1; x* as above
    #[arg(long, value_name = "COLUMN", value_delimiter = ',')]
    standardize: Vec<String>,
    /// Numeric columns as features from 0 to 1; x* as above
    #[arg(long, value_name = "COLUMN", value_delimiter = ',')]
    min_max: Vec<String>,
    /// Fill in missing numbers of features, before they are scaled: mean, median, or a number
    #[arg(long, value_name = "HOW", allow_hyphen_values = true)]
    impute: Option<Impute>,
    /// Add a feature of 0 and 1 that marks missing numbers, to each column with missing numbers
    #[arg(long, requires = "impute")]
    impute_indicator: bool,
    /// Column of edge weights ('weight', if there)
    #[arg(long)]
    weight: Option<String>,
    /// Column of edge times, integers or dates ('time', if there)
    #[arg(long)]
    time: Option<String>,
    /// Numeric columns of edge features; x* as above
    #[arg(long, value_delimiter = ',')]
    edge_features: Vec<String>,
    /// Column of classes of edges
    #[arg(long, value_name = "[TYPE=]COLUMN")]
    edge_label: Vec<String>,
    /// Column of numbers of edges, to be learned by regression
    #[arg(long, value_name = "[TYPE=]COLUMN")]
    edge_value: Vec<String>,
    /// Column that names each edge's split: train, valid, test, or empty
    #[arg(long, value_name = "[TYPE=]COLUMN")]
    edge_split: Vec<String>,
    /// Number of classes, if not the largest label plus one
    #[arg(long)]
    num_classes: Option<u64>,
    /// Field delimiter of text: an ASCII character, 'tab' or 'space'
    #[arg(long, value_parser = delimiter)]
    delimiter: Option<u8>,
    /// Header of text tables: true or false (detected from names and the first lines by default)
    #[arg(long)]
    header: Option<bool>,
    #[command(flatten)]
    shape: Shape,
    #[command(flatten)]
    pub common: Common,
}

/// `gnarl import schema`: the tables listed by a JSON file, in the manner of GraphStorm's
/// gconstruct.
#[derive(Debug, Args)]
pub struct Schema {
    /// The schema file
    path: PathBuf,
    #[command(flatten)]
    shape: Shape,
    #[command(flatten)]
    pub common: Common,
}

impl Schema {
    pub fn import(&self) -> Result<Imported> {
        let tables = TableOptions::from_schema(&self.path)?;
        import::tables(&self.shape.options(tables, self.common.memory)?, &self.common.out)
    }
}

impl Table {
    pub fn import(&self, delimiter: Option<u8>) -> Result<Imported> {
        self.check_nodes()?;
        self.check_impute()?;
        let tables = TableOptions {
            delimiter: self.delimiter.or(delimiter),
            header: self.header,
            ..TableOptions::default()
        };
        let mut options = self.shape.options(tables, self.common.memory)?;
        for given in &self.nodes {
            options.nodes.push(self.node_table(given));
        }
        for given in &self.edges {
            options.edges.push(self.edge_table(given)?);
        }
        import::tables(&options, &self.common.out)
    }

    /// Rejects node options without a node table.
    fn check_nodes(&self) -> Result<()> {
        let given = [
            ("id", self.id.is_some()),
            ("label", self.label.is_some()),
            ("value", self.value.is_some()),
            ("node-time", !self.node_time.is_empty()),
            ("split", self.split.is_some()),
            ("features", !self.features.is_empty()),
            ("categorical", !self.categorical.is_empty()),
            ("standardize", !self.standardize.is_empty()),
            ("min-max", !self.min_max.is_empty()),
            ("num-classes", self.num_classes.is_some()),
        ];
        match given.into_iter().find(|(_, given)| *given && self.nodes.is_empty()) {
            Some((option, _)) => Err(Error::usage(format!("--{option} requires a node table"))
                .hint(
                    "--nodes FILE gives one; columns of edges are --edge-features, --edge-label",
                )),
            None => Ok(()),
        }
    }

    /// Rejects imputation without feature columns.
    fn check_impute(&self) -> Result<()> {
        let columns = [&self.features, &self.standardize, &self.min_max, &self.edge_features];
        match self.impute.is_some() && columns.into_iter().all(Vec::is_empty) {
            true => Err(Error::usage("--impute requires feature columns")
                .hint("name them with --features, --standardize, --min-max or --edge-features")),
            false => Ok(()),
        }
    }

    fn node_table(&self, given: &str) -> NodeTable {
        let (ntype, path) = given.split_once('=').unwrap_or((DEFAULT_NODE_TYPE, given));
        NodeTable {
            id: self.id.clone(),
            label: self.label.clone(),
            value: self.value.clone(),
            time: column_of(ntype, &self.node_time),
            num_classes: self.num_classes,
            split: self.split.clone(),
            features: self.node_features(),
            ..NodeTable::new(ntype, PathBuf::from(path))
        }
    }

    fn node_features(&self) -> Vec<Feature> {
        let plain = self.features_of(&self.features, Transform::None);
        let features = plain
            .chain(self.features_of(&self.standardize, Transform::Standard))
            .chain(self.features_of(&self.min_max, Transform::MaxMin))
            .chain(self.features_of(&self.categorical, Transform::Categorical));
        features.collect()
    }

    fn features_of<'a>(
        &'a self,
        columns: &'a [String],
        transform: Transform,
    ) -> impl Iterator<Item = Feature> + 'a {
        columns.iter().map(move |column| Feature {
            column: column.clone(),
            transform,
            impute: self.impute,
            indicator: self.impute_indicator,
        })
    }

    fn edge_table(&self, given: &str) -> Result<EdgeTable> {
        let (triple, path) = match given.split_once('=') {
            Some((triple, path)) => (triple.parse()?, path),
            None => (Triple::plain(), given),
        };
        Ok(EdgeTable {
            src: self.src.clone(),
            dst: self.dst.clone(),
            weight: self.weight.clone(),
            time: self.time.clone(),
            features: self.features_of(&self.edge_features, Transform::None).collect(),
            label: column_of(&triple.to_string(), &self.edge_label),
            value: column_of(&triple.to_string(), &self.edge_value),
            split: column_of(&triple.to_string(), &self.edge_split),
            ..EdgeTable::new(triple, PathBuf::from(path))
        })
    }
}

/// The column of a type from `TYPE=COLUMN`, or from `COLUMN` for all types.
fn column_of(name_of_type: &str, given: &[String]) -> Option<String> {
    let own = given.iter().find_map(|given| match given.split_once('=') {
        Some((name, column)) => (name == name_of_type).then_some(column),
        None => Some(given.as_str()),
    });
    own.map(String::from)
}

/// A delimiter by its character or its name.
fn delimiter(text: &str) -> Result<u8, String> {
    match (text, text.as_bytes()) {
        ("tab" | "\\t", _) => Ok(b'\t'),
        ("space", _) => Ok(b' '),
        (_, &[byte]) if byte == b'\t' || (b' '..=b'~').contains(&byte) => match byte {
            b'"' | b'#' | b'.' | b'-' | b'+' => Err(format!("'{text}' is part of fields")),
            byte if byte.is_ascii_alphanumeric() => Err(format!("'{text}' is part of fields")),
            byte => Ok(byte),
        },
        _ => Err("expected one ASCII character such as ';', or 'tab' or 'space'".into()),
    }
}
