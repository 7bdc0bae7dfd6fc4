//! Formats of one folder.

use std::path::PathBuf;

use clap::Args;
use gnarl_common::Result;
use gnarl_graph::import::{self, GraphboltOptions, Imported, OgbOptions, WeightType};

use super::options::Common;

/// `gnarl import ogb`
#[derive(Debug, Args)]
pub struct Ogb {
    /// The folder of the graph, such as ogbn_arxiv, that holds raw/ and split/
    #[arg(long, value_name = "DIR")]
    root: PathBuf,
    /// The folder below split/, or 'none', if there are several
    #[arg(long, value_name = "TYPE")]
    split: Option<String>,
    /// Store the reverse of every edge too (ogbn-products, ogbn-proteins)
    #[arg(long)]
    add_inverse: bool,
    /// Number of classes, if not the largest label plus one
    #[arg(long)]
    num_classes: Option<u64>,
    /// Storage type of edge weights: f32, f16 or bf16
    #[arg(long, default_value_t)]
    weight_type: WeightType,
    #[command(flatten)]
    pub common: Common,
}

impl Ogb {
    pub fn import(&self) -> Result<Imported> {
        let options = OgbOptions {
            root: self.root.clone(),
            split: self.split.clone(),
            add_inverse: self.add_inverse,
            num_classes: self.num_classes,
            weight_type: self.weight_type,
            memory: self.common.memory,
        };
        import::ogb(&options, &self.common.out)
    }
}

/// `gnarl import graphbolt`
#[derive(Debug, Args)]
pub struct Graphbolt {
    /// metadata.yaml, or the folder that holds it
    path: PathBuf,
    /// The task whose sets become splits and labels, if not the first
    #[arg(long)]
    task: Option<String>,
    #[command(flatten)]
    pub common: Common,
}

impl Graphbolt {
    pub fn import(&self) -> Result<Imported> {
        let options = GraphboltOptions {
            path: self.path.clone(),
            task: self.task.clone(),
            memory: self.common.memory,
        };
        import::graphbolt(&options, &self.common.out)
    }
}
