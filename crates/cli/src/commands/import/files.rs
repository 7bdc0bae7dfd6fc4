//! Formats that come as a few named files.

use std::path::PathBuf;

use clap::Args;
use gnarl_graph::Result;
use gnarl_graph::import::{self, Imported, NpyOptions, TriplesOptions, WeightType};

use super::{Common, named};

/// `gnarl import npy`
#[derive(Debug, Args)]
pub struct Npy {
    /// Edges [2, E]: row 0 sources, row 1 destinations
    #[arg(long)]
    edges: PathBuf,
    /// Features: [N, F] npy, or a scipy CSR npz
    #[arg(long)]
    features: Option<PathBuf>,
    /// Labels: [N] classes or [N, C] of 0 and 1
    #[arg(long)]
    labels: Option<PathBuf>,
    /// Number of classes, if not the largest label plus one
    #[arg(long)]
    num_classes: Option<u64>,
    /// A split: ids or booleans, such as train=train_idx.npy
    #[arg(long, value_name = "NAME=FILE", value_parser = named)]
    split: Vec<(String, PathBuf)>,
    /// A weight for each edge
    #[arg(long)]
    weights: Option<PathBuf>,
    /// How weights are stored: f32, f16 or bf16
    #[arg(long, default_value_t)]
    weight_type: WeightType,
    /// Number of nodes, if features and labels do not tell
    #[arg(long)]
    num_nodes: Option<u64>,
    /// Store the reverse of every edge too, dropping repeated ones
    #[arg(long)]
    symmetrize: bool,
    /// Whether repeated edges are dropped
    #[arg(long)]
    coalesce: Option<bool>,
    #[command(flatten)]
    pub common: Common,
}

impl Npy {
    pub fn import(&self) -> Result<Imported> {
        let options = NpyOptions {
            edges: self.edges.clone(),
            features: self.features.clone(),
            labels: self.labels.clone(),
            num_classes: self.num_classes,
            splits: self.split.clone(),
            weights: self.weights.clone(),
            weight_type: self.weight_type,
            num_nodes: self.num_nodes,
            symmetrize: self.symmetrize,
            coalesce: self.coalesce,
            memory: self.common.memory,
        };
        import::npy(&options, &self.common.out)
    }
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
    /// Number of entities, if integer ids are to be kept as they are
    #[arg(long)]
    num_entities: Option<u64>,
    #[command(flatten)]
    pub common: Common,
}

impl Triples {
    pub fn import(&self) -> Result<Imported> {
        let options = TriplesOptions {
            train: self.train.clone(),
            valid: self.valid.clone(),
            test: self.test.clone(),
            num_entities: self.num_entities,
            delimiter: None,
            memory: self.common.memory,
        };
        import::triples(&options, &self.common.out)
    }
}
