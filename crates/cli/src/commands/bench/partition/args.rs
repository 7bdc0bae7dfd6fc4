//! Arguments of `gnarl bench partition`.

use std::path::PathBuf;

use clap::Args;

use crate::commands::parse::size;

/// `gnarl bench partition`
#[derive(Debug, Args)]
pub struct PartitionBench {
    /// Folder of graphs: one subfolder each, with edges.npy, triples.npy or edges__*.npy
    #[arg(long, env = "GNARL_DATA")]
    pub data: Option<PathBuf>,
    /// A dataset directory to partition too; may be repeated
    #[arg(long = "dataset", value_name = "DIR")]
    pub datasets: Vec<PathBuf>,
    /// The table, in Markdown; imported graphs are kept beside it, in a folder .work
    #[arg(long)]
    pub out: PathBuf,
    /// Numbers of parts
    #[arg(long, value_delimiter = ',', default_value = "4,8,16")]
    pub parts: Vec<usize>,
    /// Only these partitioners; options for 'gnarl partition' may follow a name, as in
    /// 'spring --tau-vol 500'
    #[arg(long, value_delimiter = ',')]
    pub algorithms: Vec<String>,
    /// Only these graphs, by name
    #[arg(long, value_delimiter = ',')]
    pub graphs: Vec<String>,
    /// Seconds after which a partitioner is stopped
    #[arg(long, default_value_t = 600)]
    pub timeout: u64,
    /// Memory limit of each partitioner
    #[arg(long, default_value = "4GiB", value_parser = size)]
    pub memory: u64,
    /// Maximum size of a part over the mean
    #[arg(long, default_value_t = 1.05)]
    pub balance: f64,
    /// Random seed
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// A Python with numpy and pymetis, to partition by METIS of PyPI too
    #[arg(long)]
    pub python: Option<PathBuf>,
}
