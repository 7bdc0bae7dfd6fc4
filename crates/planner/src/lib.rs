//! Predictions of the fastest strategy, before anything is trained.
//!
//! **In:** the configuration of a run ([`RunConfig`]) and the counts of its dataset. **Out:** a [`RunPlan`]:
//! for each strategy and number of workers the bytes a rank sends, its work and memory, and the seconds of
//! an epoch at the rates of `[plan]`. `train.strategy = "auto"` takes the fastest.
//!
//! Each strategy has a file with the work of one rank in an epoch ([`Work`]); the cost of models per
//! row and per edge is in one place (`layers.rs`), and so are the rates (`work.rs`).
//!
//! ```
//! use gnarl_config::RunConfig;
//! use gnarl_graph::generate::{Attributes, CommunityOptions, community};
//! use gnarl_planner::RunPlan;
//!
//! let dir = tempfile::tempdir()?;
//! let attributes = Attributes { features: 8, classes: 3, train: 0.5, ..Default::default() };
//! let options = CommunityOptions { nodes: 500, communities: 3, attributes, ..Default::default() };
//! let dataset = community(&options, &dir.path().join("graph"))?.dataset;
//!
//! let mut run = RunConfig::default();
//! run.dataset.path = dataset.dir().into();
//! let plan = RunPlan::of(&run, &dataset, &[1, 4])?;
//! println!("{}", plan.verdict());
//! assert!(plan.fastest().is_some());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod average;
mod batch_workers;
mod disaggregated;
mod exchange;
mod facts;
mod gradient;
mod graph;
mod layers;
mod measure;
mod predict;
mod sampled;
mod tensor;
mod work;

#[cfg(test)]
mod tests;

use gnarl_common::{Error, Result};
use gnarl_config::{PlanSection, RunConfig, Strategy, support::Combination};
use gnarl_graph::Dataset;
use gnarl_partition::Counts;
use serde::Serialize;

pub use batch_workers::{BatchWorkersPlan, Choice, Measured, Prices, Sides};
use facts::Facts;
pub use measure::{measure, measure_by};
use predict::Predict;
pub use work::{Seconds, Work};

/// The strategies on whole graphs; `auto` takes the first of equally fast ones.
const STRATEGIES: [&dyn Predict; 3] = [&gradient::Gradient, &average::Average, &tensor::Tensor];

/// Rejects unsupported runs.
fn allowed(run: &RunConfig, heterogeneous: bool) -> Result<()> {
    run.check()?;
    Combination { run, heterogeneous }.check()
}

/// The predictions for a run file, and the facts they are based on.
#[derive(Debug, Clone, Serialize)]
pub struct RunPlan {
    /// Counts of the dataset; training nodes are those of the run.
    pub counts: Counts,
    /// The rates.
    pub rates: PlanSection,
    /// Supported strategies, by number of workers, then strategy.
    pub predictions: Vec<StrategyPrediction>,
    /// Unsupported ones.
    pub refused: Vec<RefusedStrategy>,
    /// The number of batch workers, for runs of strategy `disaggregated` on their own number of workers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch_workers: Option<BatchWorkersPlan>,
}

/// The prediction for one strategy.
#[derive(Debug, Clone, Serialize)]
pub struct StrategyPrediction {
    /// The strategy.
    pub strategy: Strategy,
    /// True if all dense layers come before messages pass.
    pub decoupled: bool,
    /// True if it trains the model of the run file; the decoupled form is another model.
    pub same_model: bool,
    /// Number of ranks.
    pub workers: usize,
    /// Work of the most loaded rank.
    pub work: Work,
    /// Time per kind of work.
    pub stages: Seconds,
    /// Seconds of an epoch, evaluation not included.
    pub seconds: f64,
    /// The kind of work with most of the time.
    pub dominant: &'static str,
}

/// A strategy that cannot train the run.
#[derive(Debug, Clone, Serialize)]
pub struct RefusedStrategy {
    /// The strategy.
    pub strategy: Strategy,
    /// True if all dense layers come before messages pass.
    pub decoupled: bool,
    /// Number of ranks.
    pub workers: usize,
    /// Reason.
    pub reason: String,
}

impl RunPlan {
    /// Predicts the run of `config` on each number of `workers`: each strategy, and in tensor
    /// parallelism the other form of the model too, if it has one.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] for tasks that are not predicted, and invalid models.
    pub fn of(config: &RunConfig, dataset: &Dataset, workers: &[usize]) -> Result<Self> {
        let facts = Facts::of(config, dataset)?;
        // Errors of the model itself do not depend on the strategy.
        facts.parameters(config)?;
        let mut plan = Self {
            counts: facts.counts.clone(),
            rates: config.plan.clone(),
            predictions: Vec::new(),
            refused: Vec::new(),
            batch_workers: None,
        };
        for &workers in workers {
            if workers == 0 {
                return Err(Error::usage("invalid number of workers '0': expected at least 1"));
            }
            for predict in STRATEGIES {
                plan.add(&facts, config, predict, workers, config.model.decoupled)?;
            }
            if facts.graph.can_be_decoupled(&config.model) {
                plan.add(&facts, config, &tensor::Tensor, workers, !config.model.decoupled)?;
            }
            if config.train.strategy == Strategy::Disaggregated {
                let same = config.model.decoupled;
                plan.add(&facts, config, &disaggregated::Disaggregated, workers, same)?;
            }
        }
        plan.batch_workers = plan.batch_workers(config, None);
        Ok(plan)
    }

    /// Epochs of a run of strategy `disaggregated` by the number of batch workers, as predicted, or from what a run has
    /// `measured`; none for other strategies.
    pub fn batch_workers(
        &self,
        config: &RunConfig,
        measured: Option<&Measured>,
    ) -> Option<BatchWorkersPlan> {
        let own = self
            .predictions
            .iter()
            .find(|p| p.strategy == Strategy::Disaggregated && p.workers == config.train.workers)?;
        Some(BatchWorkersPlan::of(Sides::of((&own.work, &own.stages), measured, config), config))
    }

    /// Predicts the run of `config` on its own number of workers, as `train.strategy = "auto"` asks.
    ///
    /// # Errors
    /// As [`RunPlan::of`], and for samplers that are not predicted: steps over the whole graph would drop
    /// them.
    pub fn of_run(config: &RunConfig, dataset: &Dataset) -> Result<Self> {
        sampled::check(config)?;
        Self::of(config, dataset, &[config.train.workers])
    }

    /// Returns whether a strategy can train and predict the run. Steps over the whole graph would drop a subgraph
    /// sampler, which is another run than the one asked about.
    fn supported(facts: &Facts<'_>, run: &RunConfig, predict: &dyn Predict) -> Result<()> {
        allowed(run, facts.heterogeneous)?;
        sampled::check(run)?;
        predict.check(facts, run)
    }

    fn add(
        &mut self,
        facts: &Facts<'_>,
        config: &RunConfig,
        predict: &dyn Predict,
        workers: usize,
        decoupled: bool,
    ) -> Result<()> {
        let (strategy, mut run) = (predict.strategy(), config.clone());
        (run.train.strategy, run.train.workers) = (strategy, workers);
        run.model.decoupled = decoupled;
        let mut refuse = |reason: String| {
            self.refused.push(RefusedStrategy { strategy, decoupled, workers, reason });
        };
        if let Err(error) = Self::supported(facts, &run, predict) {
            if error.kind() != gnarl_common::Kind::Usage {
                return Err(error);
            }
            refuse(error.to_string().replace('\n', "; "));
            return Ok(());
        }
        let work = predict.work(facts, &run)?;
        let limit = config.plan.memory.as_u64();
        if limit > 0 && work.memory_bytes > limit as f64 {
            let needed = work.memory_bytes / (1u64 << 20) as f64;
            refuse(format!(
                "needs {needed:.0} MiB a worker, and plan.memory is {}",
                config.plan.memory
            ));
            return Ok(());
        }
        let stages = Seconds::of(&work, &run);
        self.predictions.push(StrategyPrediction {
            strategy,
            decoupled,
            same_model: decoupled == config.model.decoupled,
            workers,
            work,
            stages,
            seconds: stages.total(&run),
            dominant: stages.dominant(),
        });
        Ok(())
    }

    /// The fastest strategy for the model of the run file; none if no strategy supports it.
    pub fn fastest(&self) -> Option<&StrategyPrediction> {
        let same = self.predictions.iter().filter(|p| p.same_model);
        same.min_by(|a, b| a.seconds.total_cmp(&b.seconds))
    }

    /// One sentence with the fastest strategy, and the reason.
    pub fn verdict(&self) -> String {
        let Some(best) = self.fastest() else {
            let reasons = self.refused.iter().map(|r| format!("{}: {}", r.strategy, r.reason));
            let reasons: Vec<String> = reasons.collect();
            return format!("no strategy can train this run ({})", reasons.join("; "));
        };
        let mut text = format!("{best}, mostly {}", best.dominant);
        let others =
            self.predictions.iter().filter(|p| p.same_model && p.strategy != best.strategy);
        let second = others.min_by(|a, b| a.seconds.total_cmp(&b.seconds));
        match second {
            Some(other) => {
                let (saved, here, there) = best.stages.saved(&other.stages);
                text += &format!(
                    "; against {other}, mostly {}: a worker takes {here:.4} s for {saved}, not {there:.4}",
                    other.dominant,
                );
                let edges = [best, other].map(|p| format!("{:.0}", p.work.sampled_edges));
                let sent = [best, other].map(|p| format!("{:.1}", p.work.sent_bytes / 1e6));
                // Figures that round to the same tell nothing.
                if edges[0] != edges[1] {
                    text += &format!(", samples {} edges, not {}", edges[0], edges[1]);
                }
                if sent[0] != sent[1] {
                    text += &format!(", sends {} MB, not {}", sent[0], sent[1]);
                }
            }
            None => text += "; no other strategy can train this run",
        }
        text
    }
}

impl std::fmt::Display for StrategyPrediction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { strategy, workers, seconds, .. } = self;
        let plural = if *workers == 1 { "" } else { "s" };
        write!(f, "{strategy} on {workers} worker{plural}, {seconds:.4} s an epoch")
    }
}
