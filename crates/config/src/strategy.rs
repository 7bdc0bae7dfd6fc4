//! Parallel training strategies, and what sets them apart.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The parallel training strategy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Strategy {
    /// Synchronous SGD: gradients are added over all workers at every step (DistDGLv2 §5).
    #[default]
    Gradient,
    /// Model averaging: parts train alone; weights are averaged every `sync_every` epochs (CATGNN
    /// §3.3).
    Average,
    /// Tensor parallelism: the whole graph in each step, with the feature dimension split among
    /// workers (NeutronTP §3).
    Tensor,
    /// Synchronous SGD on the parts that are in memory, which change during an epoch (Armada §3).
    Disaggregated,
    /// The fastest strategy by the rates of `[plan]`; resolved before the run begins.
    Auto,
}

impl Strategy {
    /// The name in run files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gradient => "gradient",
            Self::Average => "average",
            Self::Tensor => "tensor",
            Self::Disaggregated => "disaggregated",
            Self::Auto => "auto",
        }
    }

    /// Returns whether each part trains a model of its own between two exchanges.
    pub fn parts_train_alone(self) -> bool {
        match self {
            Self::Average => true,
            Self::Gradient | Self::Tensor | Self::Disaggregated | Self::Auto => false,
        }
    }

    /// Returns whether messages of a step pass over the whole graph, so that nothing is sampled.
    pub fn takes_whole_graph(self) -> bool {
        match self {
            Self::Tensor => true,
            Self::Gradient | Self::Average | Self::Disaggregated | Self::Auto => false,
        }
    }

    /// Returns whether steps are known to be of sampled batches; not before `auto` has chosen.
    pub fn draws_batches(self) -> bool {
        match self {
            Self::Gradient | Self::Average | Self::Disaggregated => true,
            Self::Tensor | Self::Auto => false,
        }
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
