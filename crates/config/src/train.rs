//! Training and its execution.

use serde::{Deserialize, Serialize};

use super::strategy::Strategy;

/// The transport between ranks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// Threads of this process.
    #[default]
    Local,
    /// Processes started by `mpirun`.
    Mpi,
}

/// The graph for evaluation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EvaluateOn {
    /// The whole graph.
    #[default]
    Graph,
    /// Each part evaluates its own nodes with its own edges.
    Parts,
}

/// Concurrency of batch preparation and compute.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pipeline {
    /// Prepared ahead of compute, continuing from one epoch into the next (DistDGLv2 §5.5).
    #[default]
    NonStop,
    /// Prepared ahead of compute within each epoch.
    Epoch,
    /// Prepared on demand, one stage after the other.
    Off,
}

/// Precision in which products of matrices read their two sides, while training.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// 32 bits.
    #[default]
    F32,
    /// Rounded to bf16; sums, weights and all else have 32 bits.
    Bf16,
}

impl From<Precision> for gnarl_nn::Precision {
    fn from(precision: Precision) -> Self {
        match precision {
            Precision::F32 => Self::F32,
            Precision::Bf16 => Self::Bf16,
        }
    }
}

/// `[train]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TrainSection {
    /// Parallel training strategy.
    pub strategy: Strategy,
    /// Transport between ranks.
    pub engine: Engine,
    /// Number of ranks.
    pub workers: usize,
    /// Compute threads over all workers; 0 takes all cores.
    pub threads: usize,
    /// Passes over the training nodes.
    pub epochs: usize,
    /// Base learning rate.
    pub lr: f32,
    /// `average`: epochs between two averagings.
    pub sync_every: usize,
    /// Seed of everything random in training.
    pub seed: u64,
    /// Stop after this many evaluations without a better validation metric; 0 never stops early.
    pub patience: usize,
    /// Epochs between two evaluations; 0 evaluates only at the end.
    pub eval_every: usize,
    /// Graph for evaluation.
    pub evaluate_on: EvaluateOn,
    /// `accuracy`, `micro-f1`, `macro-f1`, `roc-auc` or `average-precision`; by default `accuracy` for
    /// classes and `micro-f1` for several labels a node. Of link prediction `mrr`, `mrr_raw`, `hits@1`,
    /// `hits@3` or `hits@10`; by default `mrr`. Of regression `rmse` or `mae`; by default `rmse`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
    /// Scores of the training nodes in every evaluation, too.
    pub score_training: bool,
    /// Largest global norm of a gradient; 0 does not clip.
    pub clip_norm: f32,
    /// Precision of products.
    pub precision: Precision,
    /// Concurrency of batch preparation and compute.
    pub pipeline: Pipeline,
    /// Mini-batches buffered at each stage of the pipeline.
    pub prefetch: usize,
    /// Mini-batches that each stage ahead of compute works on at once, in each rank; 0 follows the
    /// compute threads.
    pub preparation_threads: usize,
    /// Seconds between two checkpoints, written between epochs; 0 writes one after every epoch.
    pub checkpoint_seconds: f64,
    /// Seconds that a worker waits for the others before the run fails.
    pub deadline_seconds: f64,
}

impl Default for TrainSection {
    fn default() -> Self {
        Self {
            strategy: Strategy::Gradient,
            engine: Engine::Local,
            workers: 1,
            threads: 0,
            epochs: 100,
            lr: 0.01,
            sync_every: 1,
            seed: 0,
            patience: 0,
            eval_every: 1,
            evaluate_on: EvaluateOn::Graph,
            metric: None,
            score_training: false,
            clip_norm: 0.0,
            precision: Precision::F32,
            pipeline: Pipeline::NonStop,
            prefetch: 2,
            preparation_threads: 0,
            checkpoint_seconds: 10.0,
            deadline_seconds: 600.0,
        }
    }
}
