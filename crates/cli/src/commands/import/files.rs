//! Formats of a few named files.

use std::path::PathBuf;

use clap::Args;
use gnarl_common::{Error, Result};
use gnarl_graph::Triple;
use gnarl_graph::import::{
    self, HeteroNpyOptions, Imported, NpyOptions, TriplesOptions, WeightType,
};

use super::options::{Common, named};

/// Arrays of a homogeneous graph (`--edges edges.npy --features features.npy`) or of a
/// heterogeneous one (`--edges actor:acted_in:movie=edges.npy --features movie=features.npz`).
#[derive(Debug, Args)]
pub struct Npy {
    /// Edges [2, E]: row 0 sources, row 1 destinations
    #[arg(long, value_name = "[TYPE=]FILE", required_unless_present = "triples")]
    edges: Vec<String>,
    /// Triples [T, 3] of head, relation, tail: one edge type per relation
    #[arg(long, value_name = "NODE_TYPE=FILE", value_parser = named)]
    triples: Option<(String, PathBuf)>,
    /// Names of the relations of triples, one a line
    #[arg(long, requires = "triples")]
    relations: Option<PathBuf>,
    /// Features: [N, F] npy, or a scipy CSR npz
    #[arg(long, value_name = "[TYPE=]FILE")]
    features: Vec<String>,
    /// Labels: [N] classes or [N, C] of 0 and 1
    #[arg(long, value_name = "[TYPE=]FILE")]
    labels: Vec<String>,
    /// Numbers of nodes, to be learned by regression: [N], NaN for none
    #[arg(long, value_name = "[TYPE=]FILE")]
    values: Vec<String>,
    /// Times of nodes: [N] integers
    #[arg(long, value_name = "[TYPE=]FILE")]
    times: Vec<String>,
    /// Number of classes, if not the largest label plus one
    #[arg(long)]
    num_classes: Option<u64>,
    /// A split: ids or booleans, such as train=train_idx.npy
    #[arg(long, value_name = "[TYPE:]NAME=FILE", value_parser = named)]
    split: Vec<(String, PathBuf)>,
    /// Labels of a split's nodes, in their order
    #[arg(long, value_name = "TYPE:NAME=FILE", value_parser = named)]
    split_labels: Vec<(String, PathBuf)>,
    /// One weight per edge
    #[arg(long, value_name = "[TYPE=]FILE")]
    weights: Vec<String>,
    /// Storage type of weights: f32, f16 or bf16
    #[arg(long, default_value_t)]
    weight_type: WeightType,
    /// Times of edges: [E] integers
    #[arg(long, value_name = "[TYPE=]FILE")]
    edge_times: Vec<String>,
    /// Features of edges: [E, F]
    #[arg(long, value_name = "[TYPE=]FILE")]
    edge_features: Vec<String>,
    /// Labels of edges: [E] classes or [E, C] of 0 and 1
    #[arg(long, value_name = "[TYPE=]FILE")]
    edge_labels: Vec<String>,
    /// Numbers of edges, to be learned by regression: [E]
    #[arg(long, value_name = "[TYPE=]FILE")]
    edge_values: Vec<String>,
    /// A split of edges: [E] booleans, such as train=train_mask.npy
    #[arg(long, value_name = "[TYPE:]NAME=FILE", value_parser = named)]
    edge_split: Vec<(String, PathBuf)>,
    /// Number of nodes, if features and labels do not tell
    #[arg(long, value_name = "[TYPE=]N")]
    num_nodes: Vec<String>,
    /// Store the reverse of every edge too, dropping repeated ones
    #[arg(long)]
    symmetrize: bool,
    /// Store the reverse of every edge too, as an edge of type destination:rev_relation:source
    #[arg(long, conflicts_with = "symmetrize")]
    reverse: bool,
    /// Drop repeated edges
    #[arg(long)]
    coalesce: Option<bool>,
    #[command(flatten)]
    pub common: Common,
}

impl Npy {
    pub fn import(&self) -> Result<Imported> {
        if self.triples.is_some() || self.edges.iter().any(|given| given.contains('=')) {
            import::heterogeneous_npy(&self.typed()?, &self.common.out)
        } else {
            import::npy(&self.plain()?, &self.common.out)
        }
    }

    fn plain(&self) -> Result<NpyOptions> {
        if self.reverse || !self.split_labels.is_empty() {
            return Err(Error::usage("--reverse and --split-labels require a heterogeneous graph")
                .hint("name the type: --edges source:relation:destination=FILE"));
        }
        let file = |option, given: &[String]| one(option, given).map(|f| f.map(PathBuf::from));
        let number = |text: &str| count("_N", text);
        Ok(NpyOptions {
            edges: file("edges", &self.edges)?.unwrap_or_default(),
            features: file("features", &self.features)?,
            labels: file("labels", &self.labels)?,
            values: file("values", &self.values)?,
            times: file("times", &self.times)?,
            num_classes: self.num_classes,
            splits: self.split.clone(),
            weights: file("weights", &self.weights)?,
            weight_type: self.weight_type,
            edge_times: file("edge-times", &self.edge_times)?,
            edge_features: file("edge-features", &self.edge_features)?,
            edge_labels: file("edge-labels", &self.edge_labels)?,
            edge_values: file("edge-values", &self.edge_values)?,
            edge_splits: self.edge_split.clone(),
            num_nodes: one("num-nodes", &self.num_nodes)?.map(number).transpose()?,
            symmetrize: self.symmetrize,
            coalesce: self.coalesce,
            memory: self.common.memory,
        })
    }

    fn typed(&self) -> Result<HeteroNpyOptions> {
        if self.symmetrize || self.coalesce == Some(true) {
            return Err(Error::usage("--symmetrize and --coalesce require a homogeneous graph")
                .hint("--reverse stores the reverse of each edge type as one of its own"));
        }
        let edge_split = |(name, file): &(String, PathBuf)| match name.rsplit_once(':') {
            Some((triple, name)) => Ok((triple.parse()?, name.into(), file.clone())),
            None => Err(untyped("edge-split", &format!("{name}={}", file.display()))),
        };
        let splits = |given: &[(String, PathBuf)]| -> Result<Vec<_>> {
            let split = |(name, file): &(String, PathBuf)| match name.split_once(':') {
                Some((ntype, name)) => Ok((ntype.into(), name.into(), file.clone())),
                None => Err(untyped("split", &format!("{name}={}", file.display()))),
            };
            given.iter().map(split).collect()
        };
        let numbers = |given: &String| match given.split_once('=') {
            Some((name, number)) => Ok((name.to_string(), count(name, number)?)),
            None => Err(untyped("num-nodes", given)),
        };
        Ok(HeteroNpyOptions {
            edges: of_edges("edges", &self.edges)?,
            triples: self.triples.clone(),
            relations: self.relations.clone(),
            features: of_types("features", &self.features)?,
            labels: of_types("labels", &self.labels)?,
            values: of_types("values", &self.values)?,
            times: of_types("times", &self.times)?,
            num_classes: self.num_classes,
            splits: splits(&self.split)?,
            split_labels: splits(&self.split_labels)?,
            weights: of_edges("weights", &self.weights)?,
            weight_type: self.weight_type,
            edge_times: of_edges("edge-times", &self.edge_times)?,
            edge_features: of_edges("edge-features", &self.edge_features)?,
            edge_labels: of_edges("edge-labels", &self.edge_labels)?,
            edge_values: of_edges("edge-values", &self.edge_values)?,
            edge_splits: self.edge_split.iter().map(edge_split).collect::<Result<_>>()?,
            num_nodes: self.num_nodes.iter().map(numbers).collect::<Result<_>>()?,
            reverse: self.reverse,
            memory: self.common.memory,
        })
    }
}

/// The only value of an option, for a homogeneous graph.
fn one<'a>(option: &str, given: &'a [String]) -> Result<Option<&'a str>> {
    match given {
        [] => Ok(None),
        [one] => Ok(Some(one)),
        _ => Err(Error::usage(format!("duplicate --{option}: given {} times", given.len())).hint(
            "name the types: --edges source:relation:destination=FILE, --features type=FILE",
        )),
    }
}

/// Values of an option by node type, `TYPE=FILE` each.
fn of_types(option: &str, given: &[String]) -> Result<Vec<(String, PathBuf)>> {
    let of = |given: &String| named(given).map_err(|_| untyped(option, given));
    given.iter().map(of).collect()
}

/// Values of an option by edge type.
fn of_edges(option: &str, given: &[String]) -> Result<Vec<(Triple, PathBuf)>> {
    let parsed = |(name, file): (String, PathBuf)| Ok((name.parse()?, file));
    of_types(option, given)?.into_iter().map(parsed).collect()
}

fn untyped(option: &str, given: &str) -> Error {
    Error::usage(format!("invalid --{option} '{given}': missing type"))
        .hint("edges have types, so other options name theirs: --features movie=FILE, --split movie:train=FILE")
}

fn count(name: &str, text: &str) -> Result<u64> {
    text.parse().map_err(|_| {
        Error::usage(format!("invalid --num-nodes '{name}={text}': expected a number"))
    })
}

/// `gnarl import triples`
#[derive(Debug, Args)]
pub struct Triples {
    /// Training triples
    #[arg(long)]
    train: PathBuf,
    /// Validation triples
    #[arg(long)]
    valid: Option<PathBuf>,
    /// Test triples
    #[arg(long)]
    test: Option<PathBuf>,
    /// Number of entities, to keep integer ids
    #[arg(long)]
    num_entities: Option<u64>,
    /// Names of entities whose ids are integers, one a line from number 0 on
    #[arg(long)]
    entities: Option<PathBuf>,
    /// Names of relations that are integers, one a line from number 0 on
    #[arg(long)]
    relations: Option<PathBuf>,
    #[command(flatten)]
    pub common: Common,
}

impl Triples {
    pub fn import(&self) -> Result<Imported> {
        let options = TriplesOptions {
            valid: self.valid.clone(),
            test: self.test.clone(),
            num_entities: self.num_entities,
            entities: self.entities.clone(),
            relations: self.relations.clone(),
            memory: self.common.memory,
            ..TriplesOptions::new(&self.train)
        };
        import::triples(&options, &self.common.out)
    }
}
