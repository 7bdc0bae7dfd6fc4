//! `gnarl import csv`, `tsv` and `parquet`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use gnarl_graph::import::{
    self, EdgeTable, Feature, IdKind, Imported, Impute, NodeTable, TableOptions, Transform,
    WeightType,
};
use gnarl_graph::{PLAIN_NODE, Result, Triple};

use super::Common;

/// What the ids of tables are.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Ids {
    Auto,
    Integer,
    String,
}

/// Tables of a plain graph (`--edges edges.csv --nodes nodes.csv`) or of a typed one
/// (`--edges author:writes:paper=writes.csv --nodes paper=papers.csv`).
#[derive(Debug, Args)]
pub struct Table {
    /// Edges, [source:relation:destination=]FILE
    #[arg(long, required = true, value_name = "[TYPE=]FILE")]
    edges: Vec<String>,
    /// Nodes, [type=]FILE; row i becomes node i
    #[arg(long, value_name = "[TYPE=]FILE")]
    nodes: Vec<String>,
    /// Column of sources
    #[arg(long, default_value = "src")]
    src: String,
    /// Column of destinations
    #[arg(long, default_value = "dst")]
    dst: String,
    /// Column of node ids ('id', if there)
    #[arg(long)]
    id: Option<String>,
    /// Column of classes ('label', if there)
    #[arg(long)]
    label: Option<String>,
    /// Column that names each node's split ('split', if there)
    #[arg(long)]
    split: Option<String>,
    /// Numeric columns of node features; x* stands for all that start with x
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
    /// Add a feature of 0 and 1 that says where a number was missing, to each column it was in
    #[arg(long, requires = "impute")]
    impute_indicator: bool,
    /// Column of edge weights ('weight', if there)
    #[arg(long)]
    weight: Option<String>,
    /// How weights are stored: f32, f16 or bf16
    #[arg(long, default_value_t)]
    weight_type: WeightType,
    /// Column of edge times, integers or dates ('time', if there)
    #[arg(long)]
    time: Option<String>,
    /// Numeric columns of edge features
    #[arg(long, value_delimiter = ',')]
    edge_features: Vec<String>,
    /// Column of classes of edges
    #[arg(long, value_name = "[TYPE=]COLUMN")]
    edge_label: Vec<String>,
    /// Column of numbers of edges, to be learnt by regression
    #[arg(long, value_name = "[TYPE=]COLUMN")]
    edge_value: Vec<String>,
    /// Column that names each edge's split: train, valid, test, or empty
    #[arg(long, value_name = "[TYPE=]COLUMN")]
    edge_split: Vec<String>,
    /// Number of nodes, [type=]N: integer ids are kept as they are
    #[arg(long, value_name = "[TYPE=]N")]
    num_nodes: Vec<String>,
    /// Number of classes, if not the largest label plus one
    #[arg(long)]
    num_classes: Option<u64>,
    /// What ids are
    #[arg(long, value_enum, default_value = "auto")]
    ids: Ids,
    /// Character between fields
    #[arg(long)]
    delimiter: Option<char>,
    /// Whether text tables have a header
    #[arg(long)]
    header: Option<bool>,
    /// Store the reverse of every edge too, dropping repeated ones
    #[arg(long)]
    symmetrize: bool,
    /// Store the reverse of every edge too, as an edge of type destination:rev_relation:source
    #[arg(long)]
    reverse: bool,
    /// Whether repeated edges are dropped
    #[arg(long)]
    coalesce: Option<bool>,
    #[command(flatten)]
    pub common: Common,
}

/// `gnarl import schema`: the tables that a JSON file lists, in the manner of GraphStorm's gconstruct.
#[derive(Debug, Args)]
pub struct Schema {
    /// The schema file
    path: PathBuf,
    /// Store the reverse of every edge too, dropping repeated ones, where both ends are of one type
    #[arg(long)]
    symmetrize: bool,
    /// Store the reverse of every edge too, as an edge of type destination:rev_relation:source
    #[arg(long)]
    reverse: bool,
    #[command(flatten)]
    pub common: Common,
}

impl Schema {
    pub fn import(&self) -> Result<Imported> {
        let tables = TableOptions::from_schema(&self.path)?;
        let (symmetrize, reverse, memory) = (self.symmetrize, self.reverse, self.common.memory);
        let options = TableOptions { symmetrize, reverse, memory, ..tables };
        import::tables(&options, &self.common.out)
    }
}

impl Table {
    pub fn import(&self, delimiter: Option<u8>) -> Result<Imported> {
        let mut options = TableOptions {
            ids: match self.ids {
                Ids::Auto => IdKind::Auto,
                Ids::Integer => IdKind::Integer,
                Ids::String => IdKind::String,
            },
            delimiter: self.delimiter.map(|c| c as u8).or(delimiter),
            header: self.header,
            weight_type: self.weight_type,
            symmetrize: self.symmetrize,
            reverse: self.reverse,
            coalesce: self.coalesce,
            memory: self.common.memory,
            ..TableOptions::default()
        };
        for given in &self.nodes {
            options.nodes.push(self.node_table(given));
        }
        for given in &self.edges {
            options.edges.push(self.edge_table(given)?);
        }
        for given in &self.num_nodes {
            let (ntype, count) = given.split_once('=').unwrap_or((PLAIN_NODE, given));
            let count = count.parse().map_err(|_| {
                gnarl_graph::Error::usage(format!("--num-nodes {given}: not a number"))
            })?;
            options.num_nodes.push((ntype.into(), count));
        }
        import::tables(&options, &self.common.out)
    }

    fn node_table(&self, given: &str) -> NodeTable {
        let (ntype, path) = given.split_once('=').unwrap_or((PLAIN_NODE, given));
        NodeTable {
            id: self.id.clone(),
            label: self.label.clone(),
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
            label: column_of(&triple, &self.edge_label),
            value: column_of(&triple, &self.edge_value),
            split: column_of(&triple, &self.edge_split),
            ..EdgeTable::new(triple, PathBuf::from(path))
        })
    }
}

/// The column given for edges of a type, `TYPE=COLUMN`, or for all types alike.
fn column_of(triple: &Triple, given: &[String]) -> Option<String> {
    let own = given.iter().find_map(|given| match given.split_once('=') {
        Some((name, column)) => (name == triple.to_string()).then_some(column),
        None => Some(given.as_str()),
    });
    own.map(String::from)
}
