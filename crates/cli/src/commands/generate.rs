//! `gnarl generate`

use std::path::PathBuf;

use clap::{Args, Subcommand};
use gnarl_common::staging::Claim;
use gnarl_common::{DType, Error, Result};
use gnarl_graph::MANIFEST;
use gnarl_graph::generate::{
    Attributes, CommunityOptions, Generated, HeteroOptions, RmatOptions, community, heterogeneous,
    rmat,
};
use serde_json::{Value, json};

use super::parse::size;
use crate::output::while_busy;

/// `gnarl generate`
#[derive(Debug, Args)]
pub struct GenerateArgs {
    #[command(subcommand)]
    kind: Kind,
}

#[derive(Debug, Subcommand)]
enum Kind {
    /// R-MAT: a skewed random graph (Chakrabarti et al., SDM 2004)
    Rmat(Rmat),
    /// Degree-corrected planted communities whose features and labels a GNN can learn
    Community(Community),
    /// Four node types and any number of edge types, with labels a GNN can learn
    Typed(Typed),
}

#[derive(Debug, Args)]
struct Common {
    /// The dataset directory to make
    #[arg(long)]
    out: PathBuf,
    /// Replace an existing dataset
    #[arg(long)]
    force: bool,
    /// Random seed
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Standard deviation of the features around their class's centroid
    #[arg(long, default_value_t = 1.0)]
    noise: f64,
    /// Type of the features: f32, f16 or bf16
    #[arg(long, default_value = "f32")]
    dtype: String,
    /// Memory limit of building the topology
    #[arg(long, default_value = "1GiB", value_parser = size)]
    memory: u64,
}

#[derive(Debug, Args)]
struct Rmat {
    /// Number of nodes
    #[arg(long, default_value_t = 1 << 20)]
    nodes: u64,
    /// Edges drawn
    #[arg(long, default_value_t = 16 << 20)]
    edges: u64,
    /// Probability of the upper left quarter of the matrix
    #[arg(long, default_value_t = 0.57)]
    a: f64,
    /// Probability of the upper right quarter
    #[arg(long, default_value_t = 0.19)]
    b: f64,
    /// Probability of the lower left quarter; the lower right one has the rest
    #[arg(long, default_value_t = 0.19)]
    c: f64,
    /// Store every edge in both directions
    #[arg(long)]
    symmetrize: bool,
    /// Drop repeated edges
    #[arg(long)]
    coalesce: bool,
    /// Width of the features; 0 for none
    #[arg(long, default_value_t = 0)]
    features: usize,
    /// Number of (random) classes; 0 for none
    #[arg(long, default_value_t = 0)]
    classes: u32,
    /// Shares of the nodes in the splits train, valid and test
    #[arg(long, num_args = 3, value_names = ["TRAIN", "VALID", "TEST"], default_values_t = [0.0, 0.0, 0.0])]
    split: Vec<f64>,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Args)]
struct Community {
    /// Number of nodes
    #[arg(long, default_value_t = 200_000)]
    nodes: u64,
    /// Number of communities
    #[arg(long, default_value_t = 64)]
    communities: u64,
    /// Mean number of edges of a node
    #[arg(long, default_value_t = 25.0)]
    average_degree: f64,
    /// Share of the edges that leave their community
    #[arg(long, default_value_t = 0.3)]
    mixing: f64,
    /// Exponent of the degree distribution
    #[arg(long, default_value_t = 2.5)]
    exponent: f64,
    /// Expected degree of the largest hubs, in multiples of the mean
    #[arg(long, default_value_t = 60.0)]
    hub: f64,
    /// Width of the features
    #[arg(long, default_value_t = 100)]
    features: usize,
    /// Number of classes; communities take them in turn
    #[arg(long, default_value_t = 64)]
    classes: u32,
    /// Shares of the nodes in the splits train, valid and test
    #[arg(long, num_args = 3, value_names = ["TRAIN", "VALID", "TEST"], default_values_t = [0.5, 0.2, 0.3])]
    split: Vec<f64>,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Args)]
struct Typed {
    /// Nodes of all types
    #[arg(long, default_value_t = 200_000)]
    nodes: u64,
    /// Edges of all types
    #[arg(long, default_value_t = 2_000_000)]
    edges: u64,
    /// Number of edge types
    #[arg(long, default_value_t = 8)]
    relations: usize,
    /// Number of communities, the classes of the labeled type
    #[arg(long, default_value_t = 16)]
    communities: u64,
    /// Share of the edges that leave their community
    #[arg(long, default_value_t = 0.3)]
    mixing: f64,
    /// Preference among sources; 1 draws evenly
    #[arg(long, default_value_t = 2.0)]
    skew: f64,
    /// Width of the features of the two types that have some; 0 for none
    #[arg(long, default_value_t = 64)]
    features: usize,
    /// Shares of the labeled nodes in the splits train, valid and test
    #[arg(long, num_args = 3, value_names = ["TRAIN", "VALID", "TEST"], default_values_t = [0.5, 0.2, 0.3])]
    split: Vec<f64>,
    #[command(flatten)]
    common: Common,
}

impl Kind {
    fn common(&self) -> &Common {
        match self {
            Self::Rmat(args) => &args.common,
            Self::Community(args) => &args.common,
            Self::Typed(args) => &args.common,
        }
    }
}

pub fn run(args: GenerateArgs) -> Result<Value> {
    let common = args.kind.common();
    let _claim = Claim::new(&common.out, MANIFEST, common.force)?;
    let (out, made) = match args.kind {
        Kind::Rmat(args) => {
            let options = RmatOptions {
                nodes: args.nodes,
                edges: args.edges,
                a: args.a,
                b: args.b,
                c: args.c,
                seed: args.common.seed,
                symmetrize: args.symmetrize,
                coalesce: args.coalesce,
                attributes: attributes(&args.common, args.features, args.classes, &args.split)?,
                memory: args.common.memory,
            };
            (args.common.out.clone(), busy(&args.common.out, || rmat(&options, &args.common.out))?)
        }
        Kind::Community(args) => {
            let options = CommunityOptions {
                nodes: args.nodes,
                communities: args.communities,
                average_degree: args.average_degree,
                mixing: args.mixing,
                exponent: args.exponent,
                hub: args.hub,
                seed: args.common.seed,
                attributes: attributes(&args.common, args.features, args.classes, &args.split)?,
                memory: args.common.memory,
                ..CommunityOptions::default()
            };
            (
                args.common.out.clone(),
                busy(&args.common.out, || community(&options, &args.common.out))?,
            )
        }
        Kind::Typed(args) => {
            let options = HeteroOptions {
                nodes: args.nodes,
                edges: args.edges,
                relations: args.relations,
                communities: args.communities,
                mixing: args.mixing,
                skew: args.skew,
                seed: args.common.seed,
                attributes: attributes(&args.common, args.features, 0, &args.split)?,
                memory: args.common.memory,
            };
            (
                args.common.out.clone(),
                busy(&args.common.out, || heterogeneous(&options, &args.common.out))?,
            )
        }
    };
    Ok(result(&out, &made))
}

fn busy<T>(out: &std::path::Path, work: impl FnOnce() -> T) -> T {
    while_busy("generating", out, work)
}

fn attributes(common: &Common, features: usize, classes: u32, split: &[f64]) -> Result<Attributes> {
    let dtype = match common.dtype.as_str() {
        "f32" => DType::F32,
        "f16" => DType::F16,
        "bf16" => DType::BF16,
        other => {
            return Err(Error::usage(format!(
                "invalid --dtype '{other}': expected f32, f16 or bf16"
            )));
        }
    };
    let train = split[0];
    let valid = split[1];
    let test = split[2];
    Ok(Attributes { features, dtype, classes, noise: common.noise, train, valid, test })
}

fn result(out: &std::path::Path, made: &Generated) -> Value {
    json!({
        "dataset": out,
        "nodes": made.dataset.manifest().num_nodes(),
        "edges": made.dataset.manifest().num_edges(),
        "drawn": made.drawn,
        "facts": made.facts,
        "seconds": made.seconds,
        "peak_rss_bytes": gnarl_common::memory::peak_rss(),
    })
}
