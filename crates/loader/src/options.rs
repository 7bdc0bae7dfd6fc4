//! Options of loaders.

use std::str::FromStr;

use gnarl_common::did_you_mean::unknown;
use gnarl_common::{Error, Result};
use gnarl_sample::TemporalRule;

/// Processes that may share an epoch.
const MOST_RANKS: usize = 1 << 20;

/// The batches of an epoch, and the way in which they are made.
#[derive(Debug, Clone)]
pub struct LoaderOptions {
    /// Seeds of a batch.
    pub batch_size: usize,
    /// True if each epoch has the seeds in another order, by `seed` and the epoch's number.
    pub shuffle: bool,
    /// True if an epoch ends before a batch of fewer seeds.
    pub drop_last: bool,
    /// Seed of everything random.
    pub seed: u64,
    /// This process among those that share each epoch.
    pub rank: usize,
    /// Number of processes that share each epoch.
    pub world_size: usize,
    /// Threads that prepare batches.
    pub threads: usize,
    /// Batches that are ready or being made beside the one that is taken.
    pub prefetch: usize,
    /// The columns that batches bring.
    pub columns: Columns,
    /// The kind of neighborhoods.
    pub neighborhood: Neighborhood,
}

/// The kind of neighborhoods, beside their fan-outs and the rule by which neighbors are drawn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Neighborhood {
    /// True if each seed has nodes of its own, in a tree that does not depend on the other seeds.
    pub disjoint: bool,
    /// The rule among edges that are no later than their seed, in temporal sampling; each seed then has a tree of its own.
    pub time: Option<TemporalRule>,
    /// True if a node draws as many neighbors as the fan-out, each any of its list, so that some may be there several times.
    pub replace: bool,
    /// The edges of a batch.
    pub subgraph: Subgraph,
}

/// The edges of a batch, by the names of PyTorch Geometric.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Subgraph {
    /// Those that were drawn.
    #[default]
    Directional,
    /// Those that were drawn and their reverses, each once, by destination and source. In heterogeneous graphs reverses are
    /// of the type that goes the other way, and edges have no rows.
    Bidirectional,
    /// All edges between the nodes of the batch.
    Induced,
}

impl FromStr for Subgraph {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "directional" => Ok(Self::Directional),
            "bidirectional" => Ok(Self::Bidirectional),
            "induced" => Ok(Self::Induced),
            other => {
                Err(unknown("subgraph_type", other, &["directional", "bidirectional", "induced"]))
            }
        }
    }
}

impl Subgraph {
    /// The name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Directional => "directional",
            Self::Bidirectional => "bidirectional",
            Self::Induced => "induced",
        }
    }
}

/// The columns of a batch beside its edge lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Columns {
    /// Features of all nodes and edges.
    pub features: bool,
    /// Labels of all nodes.
    pub labels: bool,
    /// Times of nodes and edges, and weights of edges.
    pub others: bool,
}

impl Default for Columns {
    fn default() -> Self {
        Self { features: true, labels: true, others: true }
    }
}

impl Default for LoaderOptions {
    fn default() -> Self {
        Self {
            batch_size: 1,
            shuffle: false,
            drop_last: false,
            seed: 0,
            rank: 0,
            world_size: 1,
            threads: 1,
            prefetch: 2,
            columns: Columns::default(),
            neighborhood: Neighborhood::default(),
        }
    }
}

impl LoaderOptions {
    /// Refuses options that make no batch.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] naming the option.
    pub(crate) fn check(&self) -> Result<()> {
        for (name, value) in [
            ("batch_size", self.batch_size),
            ("world_size", self.world_size),
            ("threads", self.threads),
            ("prefetch", self.prefetch),
        ] {
            if value == 0 {
                return Err(Error::usage(format!("invalid {name} 0: expected a positive number")));
            }
        }
        if self.world_size > MOST_RANKS {
            let message = format!("invalid world_size {}: at most {MOST_RANKS}", self.world_size);
            return Err(Error::usage(message));
        }
        if self.rank >= self.world_size {
            let Self { rank, world_size, .. } = self;
            return Err(Error::usage(format!("invalid rank {rank} of {world_size} processes"))
                .hint("ranks count from 0"));
        }
        Ok(())
    }
}
