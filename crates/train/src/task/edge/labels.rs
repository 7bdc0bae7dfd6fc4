//! Edge prediction: the state of a run's task.

use std::sync::Arc;

use gnarl_config::RunConfig;
use gnarl_nn::heads::Head;
use gnarl_store::FeatureStore;

use super::splits::HeldOut;
use crate::data::target_edges::TargetEdges;
use crate::task::objective::Objective;

/// The edge prediction task of a run.
pub(crate) struct EdgePrediction {
    pub(super) config: RunConfig,
    pub(super) train: Box<dyn TargetEdges>,
    pub(super) splits: HeldOut,
    /// Number of classes, labels or values of an edge.
    pub(super) outputs: usize,
    /// Features of the held-out edges, if they are used.
    pub(super) features: Option<Arc<dyn FeatureStore>>,
    pub(super) head: Box<dyn Head>,
    pub(super) objective: Box<dyn Objective>,
}

impl EdgePrediction {
    /// Returns whether heads are of another node type than tails.
    pub(super) fn two_types(&self) -> bool {
        self.splits.triple.src != self.splits.triple.dst
    }
}
