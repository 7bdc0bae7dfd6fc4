//! The training state that changes from epoch to epoch; equal on every rank, except for embeddings,
//! of which each has its own.

use std::collections::BTreeMap;
use std::sync::Arc;

use gnarl_common::{Error, Home, Result};
use gnarl_config::TrainSection;
use gnarl_nn::Params;
use gnarl_store::placement::Placement;

use crate::embeddings::{Table, TableSpec};
use crate::evaluation::Goal;
use crate::evaluation::{ClassScores, Evaluation, RelationScores, Scores};
use crate::json;
use crate::telemetry::EpochRecord;

/// State of an optimizer by entry name, from [`gnarl_nn::optim::Optimizer::state`].
pub type OptimizerState = Vec<(String, Vec<f32>)>;

/// The initial state, before it is distributed over ranks.
#[derive(Clone)]
pub struct Start {
    /// Initial weights.
    pub params: Params,
    /// Embedding tables.
    pub tables: Vec<TableSpec>,
}

impl Start {
    /// The same with embeddings of zeros, to be read from a checkpoint: initial values would be written for nothing.
    pub fn blank(&self) -> Self {
        let blank = |table: &TableSpec| TableSpec { bound: 0.0, ..table.clone() };
        Self { params: self.params.clone(), tables: self.tables.iter().map(blank).collect() }
    }

    /// The initial state of rank `rank` of `ranks`. Embeddings are in `home`, placed by `placements`, one per
    /// table; split evenly where there is none.
    ///
    /// # Errors
    /// If there are more rows than a table can have, or files cannot be made.
    pub fn share(
        &self,
        placements: &[Arc<dyn Placement>],
        (rank, ranks): (usize, usize),
        home: &Home,
    ) -> Result<TrainState> {
        let tables = self.tables.iter().enumerate();
        let tables = tables.map(|(i, spec)| spec.share(placements.get(i), (rank, ranks), home));
        Ok(TrainState::new(self.params.clone(), tables.collect::<Result<_>>()?))
    }
}

/// The position and result of training so far, on one rank.
#[derive(Debug)]
pub struct TrainState {
    /// Current weights.
    pub params: Params,
    /// Weights of the best evaluation so far.
    pub best: Vec<f32>,
    /// This rank's embeddings, each table with its best so far.
    pub tables: Vec<Table>,
    /// State saved beside the weights.
    pub progress: Progress,
    /// Optimizer state by owner: 0 for `gradient`, the part for `average`.
    pub optimizers: BTreeMap<usize, OptimizerState>,
    /// State of the outer optimizer of `average`.
    pub outer: OptimizerState,
}

/// The part of the state without arrays.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Progress {
    /// Epochs finished.
    pub epoch: usize,
    /// Epoch of the best evaluation, 0 before any.
    pub best_epoch: usize,
    /// Validation scores of that epoch.
    #[serde(deserialize_with = "json::floats")]
    pub best_valid: Scores,
    /// Mean validation loss of that epoch.
    #[serde(deserialize_with = "json::float")]
    pub best_loss: f64,
    /// Test scores of that epoch.
    #[serde(deserialize_with = "json::floats")]
    pub best_test: Scores,
    /// Test scores of each relation at that epoch, in link prediction.
    #[serde(default)]
    pub best_relations: Vec<RelationScores>,
    /// Counts of each class at that epoch, where an example has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best_classes: Option<ClassScores>,
    /// Evaluations since that epoch.
    pub since_best: usize,
    /// True if patience ended the run.
    pub stopped: bool,
    /// Records of the last epochs if they were trained, but their evaluation had not ended. They are not in
    /// `metrics.jsonl`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unevaluated: Vec<EpochRecord>,
    /// One record per epoch; they are in `metrics.jsonl`, not in checkpoints.
    #[serde(skip)]
    pub history: Vec<EpochRecord>,
}

impl Progress {
    /// Sets the length of the run, which may have changed since it was saved.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] if it has more epochs already.
    pub fn lengthen(&mut self, train: &TrainSection) -> Result<()> {
        if self.epoch > train.epochs {
            return Err(Error::usage(format!(
                "invalid train.epochs '{}': the run has trained {} already",
                train.epochs, self.epoch
            ))
            .hint("give a larger number, or start over with --restart"));
        }
        self.stopped = train.patience > 0 && self.since_best >= train.patience;
        if self.stopped && self.epoch < train.epochs {
            tracing::info!(
                "train.patience = {} ended the run after epoch {}; a larger one continues it",
                train.patience,
                self.epoch
            );
        }
        Ok(())
    }
}

impl TrainState {
    /// The initial state.
    pub fn new(params: Params, tables: Vec<Table>) -> Self {
        let best = params.flat().to_vec();
        Self {
            params,
            best,
            tables,
            progress: Progress::default(),
            optimizers: BTreeMap::new(),
            outer: OptimizerState::new(),
        }
    }

    /// Records an evaluation of the current weights by the score of `goal`. Of equal scores the one
    /// with the lower validation loss is better, and does not count against patience. Without
    /// validation nodes the latest weights count as the best.
    pub fn evaluate(&mut self, evaluation: &Evaluation, goal: &Goal, patience: usize) {
        let score = |scores: &Scores| scores.get(&goal.metric).copied();
        let p = &mut self.progress;
        let better = match (score(&evaluation.valid), score(&p.best_valid)) {
            (Some(new), Some(old)) if new == old => evaluation.valid_loss < p.best_loss,
            (Some(new), Some(old)) => goal.improves(new, old),
            _ => true,
        };
        if better {
            self.keep_latest();
            let p = &mut self.progress;
            p.best_valid = evaluation.valid.clone();
            p.best_loss = evaluation.valid_loss;
            p.best_test = evaluation.test.clone();
            p.best_relations = evaluation.relations.clone();
            p.best_classes = evaluation.classes.clone();
            p.since_best = 0;
        } else {
            p.since_best += 1;
            p.stopped = patience > 0 && p.since_best >= patience;
        }
        if let Some(last) = self.progress.history.last_mut() {
            last.valid = evaluation.valid.clone();
            last.test = evaluation.test.clone();
            last.train = evaluation.train.clone();
        }
    }

    /// Keeps the current weights as the best ones.
    pub fn keep_latest(&mut self) {
        self.best.copy_from_slice(self.params.flat());
        for table in &mut self.tables {
            table.keep_latest();
        }
        self.progress.best_epoch = self.progress.epoch;
    }
}
