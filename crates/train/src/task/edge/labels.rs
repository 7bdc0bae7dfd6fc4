//! Edge prediction: the state of a run's task.

use std::sync::Arc;

use gnarl_config::RunConfig;
use gnarl_nn::heads::Head;
use gnarl_store::MappedFeatures;

use super::splits::Splits;
use crate::task::objective::Objective;

/// The edge prediction task of a run.
pub(crate) struct EdgePrediction {
    pub(super) config: RunConfig,
    pub(super) splits: Splits,
    /// Features of the edges, if they are used.
    pub(super) features: Option<Arc<MappedFeatures>>,
    pub(super) head: Box<dyn Head>,
    pub(super) objective: Box<dyn Objective>,
    /// Part of each node that is a head; empty if the graph was not partitioned.
    pub(super) owner: Vec<u32>,
    /// Training edges of each part, where parts train alone.
    pub(super) by_part: Vec<Vec<u32>>,
}

impl EdgePrediction {
    /// Returns whether heads are of another node type than tails.
    pub(super) fn two_types(&self) -> bool {
        self.splits.triple.src != self.splits.triple.dst
    }
}
