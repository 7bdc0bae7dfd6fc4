//! The sections of a run file, with their defaults.

use std::collections::BTreeMap;
use std::path::PathBuf;

use bytesize::ByteSize;
use gnarl_common::{Error, Result};
use gnarl_graph::splits::RandomSplit;
use gnarl_nn::decoders::{self, DecoderConfig};
use gnarl_nn::heads;
use gnarl_nn::losses::LossConfig;
use gnarl_nn::models::ModelConfig;
use gnarl_nn::optim::{OptimizerConfig, Schedule};
use gnarl_store::Normalize;
use gnarl_store::cache::CachePolicy;
use serde::{Deserialize, Serialize};

use super::Listen;
use super::average::AverageSection;
use super::disaggregated::DisaggregatedSection;
use super::evaluate::EvaluateSection;
use super::negatives::NegativesSection;
use super::parts::{CacheSection, PartitionSection};
use super::plan::PlanSection;
use super::read_ahead::ReadAhead;
use super::sample::{Method, SampleSection, TimeRule};
use super::strategy::Strategy;
use super::task::{EmbeddingSection, RowStore, SplitBy, TaskKind, TaskSection};
use super::tensor::TensorSection;
use super::train::{EvaluateOn, TrainSection};

/// The configuration of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RunConfig {
    /// The graph.
    pub dataset: DatasetSection,
    /// Partitioning.
    pub partition: PartitionSection,
    /// Caching of remote features.
    pub cache: CacheSection,
    /// The task.
    pub task: TaskSection,
    /// Embeddings of nodes without features.
    pub embedding: EmbeddingSection,
    /// The model.
    pub model: ModelConfig,
    /// The decoder of links, or the head of edge labels.
    pub decoder: DecoderConfig,
    /// The link-prediction loss, or the regression loss.
    pub loss: LossConfig,
    /// Negative sampling for link prediction.
    pub negatives: NegativesSection,
    /// Mini-batch sampling.
    pub sample: SampleSection,
    /// Training.
    pub train: TrainSection,
    /// Model averaging.
    pub average: AverageSection,
    /// Chunking of full-graph steps in tensor parallelism.
    pub tensor: TensorSection,
    /// Parts in memory at a time.
    pub disaggregated: DisaggregatedSection,
    /// The optimizer of the weights.
    pub optimizer: OptimizerConfig,
    /// The learning-rate schedule.
    pub schedule: Schedule,
    /// Evaluation.
    pub evaluate: EvaluateSection,
    /// Machine rates for comparing strategies.
    pub plan: PlanSection,
    /// Output.
    pub output: OutputSection,
}

/// `[dataset]`
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DatasetSection {
    /// The dataset directory.
    pub path: PathBuf,
    /// Import options, if the dataset does not exist.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub import: Option<ImportSection>,
    /// Normalization of features.
    pub normalize: Normalize,
    /// A seeded split, instead of the dataset's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub split: Option<RandomSplit>,
    /// Reading of mapped files ahead of batches.
    pub read_ahead: ReadAhead,
    /// Memory of a process for rows of features that batches read ahead, such as `"2GiB"`; 0 keeps none. By default by what is
    /// free when the first batch begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_memory: Option<ByteSize>,
}

/// `[dataset.import]`: the words of a `gnarl import` command.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ImportSection {
    /// `npy`, `csv`, `parquet` and so on.
    pub format: String,
    /// Its options without the dashes, for instance `edges = "edges.parquet"`. Relative paths
    /// refer to the run file's directory.
    pub options: BTreeMap<String, toml::Value>,
}

/// Longest wait for other ranks: some 30 years.
const LONGEST_SECONDS: f64 = 1e9;
/// Most hops of halo nodes.
const MOST_HOPS: usize = 100;

/// `[output]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OutputSection {
    /// The run's folder.
    pub dir: PathBuf,
    /// Listening address of the run's metrics; none by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics_listen: Option<Listen>,
    /// Events for TensorBoard in the run's folder.
    pub tensorboard: bool,
    /// A profile of the run in its folder.
    pub profile: bool,
}

impl Default for OutputSection {
    fn default() -> Self {
        Self { dir: "runs/run".into(), metrics_listen: None, tensorboard: false, profile: false }
    }
}

/// Most classes of `sample.buckets`: their pairs, 32,896 buckets, would each have few edges.
const MOST_BUCKETS: usize = 256;
/// Most preparation threads.
const MOST_PREPARATION_THREADS: usize = 1024;

impl RunConfig {
    /// Rejects embeddings in files where a rank has others in memory, or files are not kept.
    fn check_rows_in_files(&self) -> Result<()> {
        let key = "embedding.store = 'file'";
        if !matches!(self.train.strategy, Strategy::Gradient | Strategy::Disaggregated) {
            return Err(Error::usage(format!(
                "{key} requires train.strategy = 'gradient' or 'disaggregated': 'average' has the rows of each part in \
                 memory, and 'tensor' those of all nodes"
            )));
        }
        if self.output.dir.to_str().is_some_and(|dir| dir.contains("://")) {
            return Err(Error::usage(format!(
                "{key} requires a folder of this host as output.dir"
            ))
            .hint("copy the finished run to the object store"));
        }
        Ok(())
    }

    /// Rejects events for TensorBoard in an object store, whose objects cannot be appended to.
    fn check_tensorboard(&self) -> Result<()> {
        let remote = self.output.dir.to_str().is_some_and(|dir| dir.contains("://"));
        match self.output.tensorboard && remote {
            true => Err(Error::usage(
                "output.tensorboard = true requires a folder of this host as output.dir",
            )
            .hint("metrics.jsonl has the same numbers, in the object store too")),
            false => Ok(()),
        }
    }

    /// Rejects invalid combinations.
    pub fn check(&self) -> Result<()> {
        let positive = [
            ("train.workers", self.train.workers),
            ("train.epochs", self.train.epochs),
            ("train.sync_every", self.train.sync_every),
            ("train.prefetch", self.train.prefetch),
            ("sample.accumulate", self.sample.accumulate),
        ];
        for (key, value) in positive {
            if value == 0 {
                return Err(Error::usage(format!("invalid {key} '0': expected a positive number")));
            }
        }
        if self.train.preparation_threads > MOST_PREPARATION_THREADS {
            return Err(Error::usage(format!(
                "invalid train.preparation_threads '{}': expected at most {MOST_PREPARATION_THREADS}",
                self.train.preparation_threads
            ))
            .hint("each works on a batch of its own: as many as keep up with computing are enough"));
        }
        let workers =
            self.train.strategy == Strategy::Disaggregated && self.disaggregated.batch_workers > 0;
        if workers && self.cache.memory.as_u64() > 0 && self.cache.policy == CachePolicy::Fixed {
            return Err(Error::usage(
                "cache.policy = 'fixed' chooses its nodes by the graph, which batch workers have",
            )
            .hint("set cache.policy to clockpro, lru or fifo"));
        }
        if self.sample.buckets > MOST_BUCKETS {
            return Err(Error::usage(format!(
                "invalid sample.buckets '{}': expected at most {MOST_BUCKETS} classes of nodes",
                self.sample.buckets
            )));
        }
        if self.sample.buckets_in_memory < 2 {
            return Err(Error::usage(format!(
                "invalid sample.buckets_in_memory '{}': edges between two classes need both, expected 2 or more",
                self.sample.buckets_in_memory
            )));
        }
        self.check_tensorboard()?;
        if self.embedding.store == RowStore::File {
            self.check_rows_in_files()?;
        }
        if self.dataset.path.as_os_str().is_empty() && self.partition.servers.is_none() {
            return Err(Error::usage("dataset.path is not set"));
        }
        if !(self.train.lr > 0.0 && self.train.lr.is_finite()) {
            return Err(Error::usage(format!(
                "invalid train.lr '{}': expected a number above 0",
                self.train.lr
            )));
        }
        let deadline = self.train.deadline_seconds;
        if !(deadline > 0.0 && deadline.is_finite()) {
            return Err(Error::usage(format!(
                "invalid train.deadline_seconds '{deadline}': expected a number above 0"
            )));
        }
        let clip = self.train.clip_norm;
        if !(clip >= 0.0 && clip.is_finite()) {
            return Err(Error::usage(format!(
                "invalid train.clip_norm '{clip}': expected 0 (no clipping) or a number above 0"
            )));
        }
        let checkpoint = self.train.checkpoint_seconds;
        if checkpoint.is_nan() || checkpoint < 0.0 {
            return Err(Error::usage(format!(
                "invalid train.checkpoint_seconds '{checkpoint}': expected 0 (after every epoch) or a number above 0"
            )));
        }
        if deadline > LONGEST_SECONDS {
            return Err(Error::usage(format!(
                "invalid train.deadline_seconds '{deadline}': expected {LONGEST_SECONDS:e} at most"
            )));
        }
        if self.partition.hops.is_some_and(|hops| hops > MOST_HOPS) {
            return Err(Error::usage(format!(
                "invalid partition.hops '{}': expected {MOST_HOPS} at most",
                self.halo_hops()
            )));
        }
        self.check_fanouts()?;
        self.check_evaluation()?;
        self.check_split()?;
        self.check_servers()?;
        self.plan.check()?;
        self.optimizer.build().map(drop)?;
        self.average.check()?;
        self.disaggregated.check()?;
        self.task.check()?;
        self.embedding.check()?;
        let of_edges = self.task.kind.is_of_edges();
        self.decoder.check(if of_edges { heads::names() } else { decoders::names() })?;
        match self.task.kind {
            TaskKind::EdgeClassification => self.loss.none()?,
            TaskKind::NodeRegression | TaskKind::EdgeRegression => {
                self.loss.of_values().map(drop)?
            }
            _ => self.loss.build().map(drop)?,
        }
        self.negatives.check()?;
        self.schedule.check()
    }

    /// Fan-outs of the neighbor sampler at each hop, the seeds' first; -1 takes all.
    pub fn hops(&self) -> Vec<i64> {
        match self.sample.method {
            Method::Full => vec![-1; self.model.blocks()],
            _ => self.sample.fanouts.clone(),
        }
    }

    /// The rule by which messages are sampled as of the times of seeds, if they are.
    pub fn time_rule(&self) -> Option<TimeRule> {
        self.sample.time.filter(|_| !matches!(&*self.model.name, "none" | "mlp"))
    }

    /// Returns whether messages are sampled as of the times of seeds.
    pub fn samples_by_time(&self) -> bool {
        self.time_rule().is_some()
    }

    /// The criterion of held-out edges in link prediction, where the dataset has no splits.
    pub fn split_by(&self) -> SplitBy {
        let default = if self.samples_by_time() { SplitBy::Time } else { SplitBy::Endpoints };
        self.task.split_by.unwrap_or(default)
    }

    /// Returns whether evaluation reads sampled neighbors: with `evaluate.fanouts`, where what a node hears depends on a
    /// time, and where neighborhoods are not the edges of a node.
    pub fn evaluates_sampled(&self) -> bool {
        let sample = &self.sample;
        let sampled = sample.time.is_some() || sample.method.is_by_walks();
        !self.evaluate.fanouts.is_empty() || sampled && !self.train.strategy.takes_whole_graph()
    }

    /// Hops of halo nodes around each part: by default as many as the model has layers where parts of nodes train
    /// alone, so that neighborhoods in a part are those of the whole graph.
    pub fn halo_hops(&self) -> usize {
        let alone = self.train.strategy.parts_train_alone() && self.task.kind.is_of_nodes();
        let default = if alone && self.model.name != "mlp" { self.model.blocks() } else { 1 };
        self.partition.hops.unwrap_or(default)
    }

    /// Rejects fan-outs of evaluation that do not fit the model.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] naming what is expected.
    pub fn check_evaluation(&self) -> Result<()> {
        match &*self.model.name {
            "none" => Ok(()),
            _ => self.evaluate.check((self.model.blocks(), self.model.blocks_key())),
        }
    }

    fn check_fanouts(&self) -> Result<()> {
        let (fanouts, hops) = (&self.sample.fanouts, self.model.blocks());
        // What `auto` comes to is checked again.
        let draws = self.train.strategy.draws_batches();
        let uses = self.sample.method.has_fanouts() && self.model.name != "none" && draws;
        if !uses || fanouts.len() == hops {
            return Ok(());
        }
        let key = self.model.blocks_key();
        let found = fanouts.len();
        Err(Error::usage(format!(
            "invalid sample.fanouts: expected {hops} entries ({key}), found {found}"
        ))
        .hint("give one fan-out per layer, the seeds' hop first; -1 takes all neighbors"))
    }

    fn check_servers(&self) -> Result<()> {
        let section = &self.partition;
        if section.servers.is_none() {
            return Ok(());
        }
        if section.path.is_none() {
            return Err(Error::usage("partition.servers requires partition.path")
                .hint("partition the graph beforehand with gnarl partition"));
        }
        if self.train.evaluate_on == EvaluateOn::Parts {
            return Err(Error::usage(
                "train.evaluate_on = 'parts' requires the whole graph on this machine",
            )
            .hint("leave out partition.servers"));
        }
        Ok(())
    }

    fn check_split(&self) -> Result<()> {
        let Some(split) = &self.dataset.split else { return Ok(()) };
        let shares = [split.train, split.valid, split.test];
        let sum: f64 = shares.iter().sum();
        if shares.iter().any(|s| !(0.0..=1.0).contains(s)) || sum > 1.0 + 1e-9 || split.train == 0.0
        {
            return Err(Error::usage(format!(
                "invalid dataset.split: train {}, valid {} and test {} must sum up to at most 1",
                split.train, split.valid, split.test
            )));
        }
        Ok(())
    }
}
