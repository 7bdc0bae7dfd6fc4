//! Batches that are prepared before runs: `gnarl sample`, and the checks of runs that train on them.

use std::path::Path;
use std::time::Instant;

use gnarl_common::staging::Staging;
use gnarl_common::{Error, Result, integrity};
use gnarl_config::support::Combination;
use gnarl_config::{BatchSource, Parts, RunConfig, Strategy};

use super::auto;
use super::partition::given;
use super::setup::{Purpose, Setup, Source};
use crate::data::identity::identity;
use crate::data::prepared::{BatchWriter, MANIFEST, Manifest, digest};
use crate::registry::Registry;
use crate::session::threads_each;
use crate::step::preparation::Ready;
use crate::telemetry::pulse::every_minute;

/// Lines of an identity that runs may differ in from those that prepared their batches: who prepared them, and the seed.
const FREE: [&str; 5] =
    ["gnarl =", "parts =", "train.strategy =", "train.seed =", "disaggregated."];

/// Counts of batches that have been prepared.
#[derive(Debug, Clone, PartialEq)]
pub struct PreparedSummary {
    /// Workers that they are shared out to.
    pub workers: usize,
    /// Batches of all workers and epochs.
    pub batches: u64,
    /// Examples in them.
    pub examples: u64,
    /// Bytes of their files.
    pub bytes: u64,
    /// Seconds that it took.
    pub seconds: f64,
}

impl Registry {
    /// Prepares the batches of `epochs` epochs of `config`, for `train.workers` workers, to the folder `out`, by
    /// `train.threads` threads. Runs with `sample.source = "batches"` train on them.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] for strategies other than `gradient` and `disaggregated`, and for what has no batches in
    /// files; those of the dataset and of its parts; if `out` exists or the disk is full.
    pub fn prepare(
        &self,
        config: &RunConfig,
        epochs: usize,
        out: &Path,
    ) -> Result<PreparedSummary> {
        let start = Instant::now();
        let source = Source::open(config)?;
        let config = &auto::resolve(config, &source)?;
        check_preparation(config, &source)?;
        let graph = source.message_graph((config, self))?;
        let mut setup = Setup::new((config, self), source, Purpose::Training(None))?;
        let ranks = config.train.workers;
        let cut = match (&config.partition.path, setup.source.dataset()) {
            (Some(path), Some(dataset)) => Some(given((config, self), dataset, path)?),
            _ => None,
        };
        if let Some(cut) = &cut {
            setup.task.divide(cut, &|_| true, ranks)?;
        }
        let staging = Staging::create(out, MANIFEST)?;
        let mut writer = BatchWriter::new(staging.path(), ranks);
        let mut batches = 0;
        let mut examples = 0;
        let mut take = |ready: Ready<'_>| match ready {
            Ready::Batch { rank, spec, batch } => {
                batches += u64::from(batch.is_some());
                examples += spec.share.len() as u64;
                writer.add(rank, batch.as_ref(), (spec.share.len(), spec.last_of_step))
            }
            Ready::Epoch(epoch) => {
                tracing::info!("epoch {epoch} of {epochs}: {batches} batches so far");
                writer.end_epoch()
            }
        };
        let threads = threads_each(config, 1);
        every_minute(
            || "preparing batches".to_string(),
            || setup.task.prepare_epochs((epochs, ranks), threads, &mut take),
        )?;
        let manifest = writer.finish(&identity(config, &graph, cut.as_ref()))?;
        // While the graph is mapped: files that nobody has open any more are not compared.
        integrity::settle()?;
        staging.commit()?;
        let bytes = manifest.epochs.iter().flatten().map(|of_rank| of_rank.bytes).sum();
        let seconds = start.elapsed().as_secs_f64();
        Ok(PreparedSummary { workers: ranks, batches, examples, bytes, seconds })
    }
}

/// Rejects runs whose batches cannot be prepared.
fn check_preparation(config: &RunConfig, source: &Source) -> Result<()> {
    let Some(dataset) = source.dataset() else {
        return Err(Error::usage("batches are prepared from files, not from partition.servers")
            .hint("leave out partition.servers"));
    };
    if config.sample.source == BatchSource::Batches {
        return Err(Error::usage("sample.source = 'batches': these batches are prepared already")
            .hint("leave it out"));
    }
    if !matches!(config.train.strategy, Strategy::Gradient | Strategy::Disaggregated) {
        let name = config.train.strategy.name();
        return Err(Error::usage(format!(
            "batches of strategy '{name}' are not prepared beforehand"
        ))
        .hint("set train.strategy to 'gradient' or 'disaggregated'"));
    }
    if config.disaggregated.batch_workers > 0 {
        return Err(Error::usage(
            "disaggregated.batch_workers: batches are prepared by this process",
        )
        .hint("leave it out"));
    }
    let several = config.partition.parts != Parts::Count(1);
    if several && config.partition.path.is_none() {
        return Err(Error::usage("partition.parts: parts of a run are made by its training")
            .hint("make them by 'gnarl partition', and set partition.path"));
    }
    // What training on them will require.
    let mut later = config.clone();
    (later.sample.source, later.sample.batches) = (BatchSource::Batches, Some(MANIFEST.into()));
    later.train.strategy = Strategy::Gradient;
    later.partition = Default::default();
    let heterogeneous = gnarl_config::support::is_heterogeneous(config, dataset.manifest());
    Combination { run: &later, heterogeneous }.check()
}

/// The configuration of a run whose batches have been drawn before it: their strategy and their parts are no longer asked
/// for. Others stay as they are.
pub(super) fn drawn_elsewhere(config: &RunConfig) -> RunConfig {
    let mut config = config.clone();
    let is_cut = config.partition != RunConfig::default().partition;
    let disaggregated = config.train.strategy == Strategy::Disaggregated;
    if config.sample.source == BatchSource::Batches && (is_cut || disaggregated) {
        tracing::info!(
            "sample.source = 'batches': batches have been drawn and shared out, [partition] and [disaggregated] are not used"
        );
        config.partition = Default::default();
        config.disaggregated = Default::default();
        if disaggregated {
            config.train.strategy = Strategy::Gradient;
        }
    }
    config
}

/// The fingerprint `dataset` with that of the prepared batches of a run, for comparison among ranks.
pub(super) fn with_batches(config: &RunConfig, dataset: &str) -> String {
    match digest(config) {
        Ok(None) => dataset.into(),
        // A rank without them differs, and all ranks learn that at once.
        found => format!("{dataset} batches {}", found.ok().flatten().unwrap_or_default()),
    }
}

/// Rejects prepared batches of another run than that of `config` on the dataset `source`.
///
/// # Errors
/// [`gnarl_common::Kind::Usage`] with the first setting that differs.
pub(super) fn check_prepared(
    (config, registry): (&RunConfig, &Registry),
    source: &Source,
) -> Result<()> {
    let (BatchSource::Batches, Some(dir)) = (config.sample.source, &config.sample.batches) else {
        return Ok(());
    };
    let manifest = Manifest::read(dir)?;
    let place = dir.display();
    let again = "prepare them again by 'gnarl sample', or set it as it was";
    let own = identity(config, &source.message_graph((config, registry))?, None);
    let counts = |line: &&str| !FREE.iter().any(|free| line.starts_with(free));
    let of_run: Vec<&str> = own.lines().filter(counts).collect();
    let of_batches: Vec<&str> = manifest.run.iter().map(String::as_str).filter(counts).collect();
    let differs = of_run.iter().find(|line| !of_batches.contains(*line));
    if let Some(line) = differs.or_else(|| of_batches.iter().find(|line| !of_run.contains(*line))) {
        let key = line.split(" = ").next().unwrap_or(line);
        let of = |lines: &[&str]| {
            let found = lines.iter().find(|line| line.split(" = ").next() == Some(key));
            found.map_or_else(|| "not set".to_string(), |line| format!("'{line}'"))
        };
        let found = of(&of_run);
        let expected = of(&of_batches);
        return Err(Error::usage(format!(
            "sample.batches: {place} was prepared for another run: there {expected}, here {found}"
        ))
        .hint(again));
    }
    if manifest.ranks != config.train.workers {
        return Err(Error::usage(format!(
            "sample.batches: {place} was prepared for {} workers, and this run has {}",
            manifest.ranks, config.train.workers
        ))
        .hint("set train.workers as it was then, or prepare them again by 'gnarl sample'"));
    }
    Ok(())
}
