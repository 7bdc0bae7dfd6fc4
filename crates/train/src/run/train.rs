//! Training from a configuration, on threads or as one rank of a group.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use gnarl_common::memory::{Resident, resident, share_among};
use gnarl_common::staging::interrupt::{self, Stoppable};
use gnarl_common::staging::sweep_files;
use gnarl_common::{Buf, Context, Error, Home, Result, ResultExt, integrity};
use gnarl_config::{EvaluateOn, RowStore, RunConfig, Strategy};
use gnarl_engine::{Communicator, local};
use gnarl_partition::{PartitionManifest, PartitionedDataset};
use gnarl_store::placement::Placement;
use serde::Serialize;

use crate::data::shares::trainer_of;
use crate::embeddings::{About, EMBEDDINGS, Rows, TableSpec, Whole, by_parts, write_model};
use crate::evaluation::Goal;
use crate::fit::Training;
use crate::registry::Registry;
use crate::run::announce::Opening;
use crate::run::auto;
use crate::run::checkpoint::{self, CHECKPOINT};
#[cfg(feature = "serve")]
use crate::run::feed;
use crate::run::finish;
use crate::run::folder::{Begin, GRAPH, GraphRecord, METRICS, MODEL, RunFolder};
use crate::run::handshake;
use crate::run::partition::open_parts;
use crate::run::prepared::{check_prepared, drawn_elsewhere, with_batches};
use crate::run::setup::{KeptServer, Purpose, Setup, Source};
use crate::run::summary::Finished;
use crate::run::watch::{Ending, Epochs, Watch};
use crate::session::{Session, Threads, threads_each};
use crate::state::{Progress, Start, TrainState};
use crate::telemetry::EpochRecord;
use crate::telemetry::profile::{self, Observed, Profiler, Taken};
use crate::telemetry::prometheus::Metrics;
use crate::telemetry::pulse::Pulse;

/// Trains by `config`, on threads of this process, with the models of the library. See
/// [`Registry::run`].
///
/// # Errors
/// As [`Registry::run`].
pub fn run(
    config: &RunConfig,
    begin: Begin,
    watch: &(dyn Fn(&EpochRecord) + Sync),
) -> Result<Finished> {
    Registry::default().run(config, begin, watch)
}

/// Trains by `config`, as one rank of a group, with the models of the library. See
/// [`Registry::run_on`].
///
/// # Errors
/// As [`Registry::run_on`].
pub fn run_on(
    comm: &dyn Communicator,
    config: &RunConfig,
    begin: Begin,
    watch: &(dyn Fn(&EpochRecord) + Sync),
) -> Result<Option<Finished>> {
    Registry::default().run_on(comm, config, begin, watch)
}

impl Registry {
    /// Trains by `config`, on threads of this process. `watch` is called after every epoch.
    ///
    /// # Errors
    /// Those of the dataset, the configuration, the folder and the ranks.
    pub fn run(
        &self,
        config: &RunConfig,
        begin: Begin,
        watch: &(dyn Fn(&EpochRecord) + Sync),
    ) -> Result<Finished> {
        self.run_watched(config, begin, &Epochs(watch))
    }

    /// As [`Registry::run`]; `watch` also learns the folder.
    ///
    /// # Errors
    /// As [`Registry::run`].
    pub fn run_watched(
        &self,
        config: &RunConfig,
        begin: Begin,
        watch: &dyn Watch,
    ) -> Result<Finished> {
        let _checksums = integrity::in_background()?;
        let source = Source::open(config)?;
        let fingerprint = source.fingerprint();
        let config = &auto::resolve(&drawn_elsewhere(config), &source)?;
        check_prepared((config, self), &source)?;
        // Workers of a process read one graph.
        share_among(1);
        let setup = Setup::new((config, self), source, Purpose::Training(None))?;
        let metrics = Metrics::start(config, 0)?;
        let made_by = (&*fingerprint, watch.command());
        let (folder, resume) = RunFolder::open(config, begin, made_by)?;
        watch.begins(folder.dir());
        let cut = setup.source.cut((config, self), &folder, config.train.workers)?;
        let checkpoint = resume.then(|| checkpoint::read(folder.dir())).transpose()?;
        let workers = config.train.workers;
        let run = Run::new((config, self), setup, folder, cut, (0..workers, workers), None)?;
        // Dropped before the run, which holds the lock of its folder.
        let ending = Ending::new(watch);
        run.announce(1)?;
        let mut states = run.states(0..workers, workers, checkpoint.as_deref())?;
        run.recall(&mut states, checkpoint.as_deref())?;
        drop(checkpoint);
        let states: Vec<_> = states.into_iter().map(|state| Mutex::new(Some(state))).collect();
        let deadline = Duration::from_secs_f64(config.train.deadline_seconds);
        let profiler = Profiler::start(config, (workers, workers));
        let trained = local::run(workers, deadline, |comm| {
            let state = states[comm.rank()].lock().unwrap_or_else(PoisonError::into_inner).take();
            let state = state.ok_or_else(|| Error::invalid("duplicate rank"))?;
            run.train(comm, workers, state, &metrics, &|record| watch.epoch(record))
        });
        let taken = profiler.map(|profiler| profiler.finish(run.threads(workers).0));
        let mut trained = match (trained, &taken) {
            (Ok(trained), _) => trained,
            (Err(e), None) => return Err(e),
            (Err(e), Some(taken)) => {
                // A run that stops early has one, too.
                taken.write(config, &run.folder);
                return Err(e);
            }
        };
        let finished = run.finish(trained.swap_remove(0), taken)?;
        ending.finish();
        Ok(finished)
    }

    /// Trains by `config`, as one rank of a group: `train.workers` is its size, whatever the
    /// configuration says. The first rank makes the run's folder, and the partition if there is
    /// none; the others read both, from a file system they share with it, unless
    /// `partition.servers` says that machines have parts of their own. `watch` is called on the
    /// first rank after every epoch; that rank alone returns the results.
    ///
    /// # Errors
    /// Those of the dataset, the configuration, the folder and the ranks;
    /// [`gnarl_common::Kind::Rank`] if they do not all have the same dataset and configuration.
    pub fn run_on(
        &self,
        comm: &dyn Communicator,
        config: &RunConfig,
        begin: Begin,
        watch: &(dyn Fn(&EpochRecord) + Sync),
    ) -> Result<Option<Finished>> {
        self.run_on_watched(comm, config, begin, &Epochs(watch))
    }

    /// As [`Registry::run_on`]; `watch` also learns the folder.
    ///
    /// # Errors
    /// As [`Registry::run_on`].
    pub fn run_on_watched(
        &self,
        comm: &dyn Communicator,
        config: &RunConfig,
        begin: Begin,
        watch: &dyn Watch,
    ) -> Result<Option<Finished>> {
        let mut config = config.clone();
        config.train.workers = comm.size();
        let _checksums = integrity::in_background()?;
        let source = Source::open(&config)?;
        config = auto::resolve(&drawn_elsewhere(&config), &source)?;
        let metrics = Metrics::start(&config, comm.rank())?;
        let fingerprint = source.fingerprint();
        let hosts = handshake::reach(comm, &config, with_batches(&config, &fingerprint))?;
        check_prepared((&config, self), &source)?;
        let local_ranks = hosts.iter().filter(|host| **host == hosts[comm.rank()]).count();
        share_among(local_ranks);
        let setup = Setup::new((&config, self), source, Purpose::Training(Some((comm, &hosts))))?;
        let lead = comm.rank() == 0;
        let opened = lead.then(|| RunFolder::open(&config, begin, (&fingerprint, watch.command())));
        let opened = opened.transpose()?;
        if let Some((folder, _)) = &opened {
            watch.begins(folder.dir());
        }
        let dir = opened.as_ref().map_or(PathBuf::new(), |(folder, _)| folder.dir().into());
        let dirs = comm.all_gather("folder of the run", dir.as_os_str().as_encoded_bytes())?;
        let (folder, resume) = match opened {
            Some(opened) => opened,
            None => (RunFolder::join(PathBuf::from(&*String::from_utf8_lossy(&dirs[0]))), false),
        };
        let mut parts =
            if lead { setup.source.cut((&config, self), &folder, local_ranks)? } else { None };
        // A state to continue from is never empty.
        let state = if resume { checkpoint::read(folder.dir())? } else { Buf::default() };
        let state = comm.all_gather("checkpoint to resume", &state)?.swap_remove(0);
        let place = parts.as_ref().map_or(&[][..], |cut| cut.dir().as_os_str().as_encoded_bytes());
        let place = comm.all_gather("partition of the run", place)?.swap_remove(0);
        if !lead && !place.is_empty() {
            parts = match &setup.source {
                Source::Parts(made) => Some((**made).clone()),
                Source::Whole(_) => {
                    // Hosts may have existing partitions at different paths.
                    let given = config.partition.path.clone();
                    let place = || PathBuf::from(&*String::from_utf8_lossy(&place));
                    Some(open_parts(&config, &given.unwrap_or_else(place))?)
                }
            };
        }
        if let Some(made) = &parts {
            handshake::same_parts(comm, made, &hosts)?;
        }
        let checkpoint = Some(&*state).filter(|state| !state.is_empty());
        let own = comm.rank()..comm.rank() + 1;
        let ranks = (own.clone(), comm.size());
        let run = Run::new((&config, self), setup, folder, parts, ranks, Some(comm))?;
        // Dropped before the run, which holds the lock of its folder.
        let ending = lead.then(|| Ending::new(watch));
        let mut states = run.states(own, comm.size(), checkpoint)?;
        if lead {
            let mut machines = hosts.clone();
            machines.sort_unstable();
            machines.dedup();
            run.announce(machines.len())?;
            run.recall(&mut states, checkpoint)?;
        }
        tell_memory(comm.rank());
        // None asks another for rows and lists before all have told.
        comm.barrier("the first step")?;
        let profiler = Profiler::start(&config, (1, comm.size()));
        let trained = run.train(comm, local_ranks, states.swap_remove(0), &metrics, &|record| {
            watch.epoch(record)
        });
        if lead && profiler.is_some() && trained.is_err() {
            tracing::warn!("no profile: the run did not end by itself");
        }
        let trained = trained?;
        // Others may still request features from this rank's server.
        let taken = profile::gathered(profiler, comm, run.threads(local_ranks).0)?;
        let finished = lead.then(|| run.finish(trained, taken)).transpose()?;
        if let Some(ending) = ending {
            ending.finish();
        }
        Ok(finished)
    }
}

/// Logs the memory of a process that is ready to train.
fn tell_memory(rank: usize) {
    if let Some(Resident { anonymous, mapped }) = resident() {
        let [anonymous, mapped] = [anonymous, mapped].map(|bytes| bytes / 1_000_000);
        tracing::debug!(
            "rank {rank}: {anonymous} MB anonymous, {mapped} MB mapped before the first step"
        );
    }
}

/// A run about to start, or to continue.
struct Run<'a> {
    config: &'a RunConfig,
    registry: &'a Registry,
    folder: RunFolder,
    source: Source,
    task: Box<dyn Training>,
    goal: Goal,
    partition: Option<PartitionManifest>,
    start: Start,
    /// The placement of each table's embeddings; empty if the graph was not partitioned.
    placements: Vec<Arc<dyn Placement>>,
    /// The batch workers, if they prepare batches.
    #[cfg(feature = "serve")]
    workers: Option<feed::Workers>,
    /// Serves other machines' requests as long as it lives.
    _server: KeptServer,
}

/// The result of training.
struct Trained {
    progress: Progress,
    /// Weights of the best evaluation.
    weights: Vec<f32>,
    /// All embeddings of the best evaluation, per table; on the first rank.
    rows: Vec<Rows<'static>>,
}

impl<'a> Run<'a> {
    fn new(
        (config, registry): (&'a RunConfig, &'a Registry),
        setup: Setup,
        folder: RunFolder,
        cut: Option<PartitionedDataset>,
        (ranks, size): (Range<usize>, usize),
        comm: Option<&dyn Communicator>,
    ) -> Result<Self> {
        let Setup { source, mut task, start, _server } = setup;
        let mut placements = Vec::new();
        if let Some(cut) = &cut {
            // The first rank evaluates on parts.
            let all = config.train.evaluate_on == EvaluateOn::Parts && ranks.contains(&0);
            let mine = |part: usize| ranks.contains(&trainer_of(part, size, cut.num_parts()));
            if config.train.strategy.parts_train_alone() {
                check_here(cut, &mine)?;
            }
            task.divide(cut, &|part| all || mine(part), ranks.len())?;
            let tables = start.tables.iter().map(|table| by_parts(cut, &table.node_type));
            placements = tables.collect::<Result<_>>()?;
        }
        #[cfg(feature = "serve")]
        let workers = {
            let width = task.features_apart();
            feed::gather((config, registry), (&source, cut.as_ref()), width, comm)?
        };
        #[cfg(not(feature = "serve"))]
        no_batch_workers(config, comm)?;
        let partition = cut.map(|cut| cut.manifest().clone());
        let (metric, smaller_is_better) = (task.metric(), task.smaller_is_better());
        let goal = Goal { metric, smaller_is_better };
        Ok(Self {
            config,
            registry,
            folder,
            source,
            goal,
            task,
            partition,
            start,
            placements,
            #[cfg(feature = "serve")]
            workers,
            _server,
        })
    }

    /// The states from which `ranks` of `size` continue: those of a checkpoint if there is one.
    fn states(
        &self,
        ranks: Range<usize>,
        size: usize,
        checkpoint: Option<&[u8]>,
    ) -> Result<Vec<TrainState>> {
        let path = || format!("reading {}", self.folder.dir().join(CHECKPOINT).display());
        let dir = self.folder.dir();
        let home = home(self.config, dir)?;
        let start = match checkpoint {
            Some(_) => &self.start.blank(),
            None => &self.start,
        };
        let state = |rank| {
            let start = start.share(&self.placements, (rank, size), &home)?;
            match checkpoint {
                Some(bytes) => checkpoint::decode(bytes, dir, start).while_doing(path),
                None => Ok(start),
            }
        };
        let mut states = ranks.map(state).collect::<Result<Vec<_>>>()?;
        for state in &mut states {
            state.progress.lengthen(&self.config.train)?;
        }
        Ok(states)
    }

    /// Logs the opening lines, and records the graph. For the first rank.
    fn announce(&self, hosts: usize) -> Result<()> {
        let opening = Opening {
            config: self.config,
            source: &self.source,
            sizes: self.task.sizes(),
            dir: self.folder.place(),
            parameters: self.parameters() as u64,
            tables: &self.start.tables,
            partition: self.partition.as_ref(),
            hosts,
        };
        opening.announce()?;
        match GraphRecord::new(self.config, &self.source, &opening.sizes, &self.goal) {
            Ok(graph) => graph.write(self.folder.dir())?,
            // The run may need nothing of what cannot be read.
            Err(e) => tracing::warn!("the report has no section on the dataset: {e}"),
        }
        self.folder.changed(&[GRAPH])
    }

    /// Reads the folder's records of the epochs in `checkpoint`, and prepares it for further ones.
    fn recall(&self, states: &mut [TrainState], checkpoint: Option<&[u8]>) -> Result<()> {
        let Some(Progress { epoch, unevaluated, .. }) = states.first().map(|state| &state.progress)
        else {
            return Ok(());
        };
        let epoch = *epoch;
        let left = unevaluated.len();
        let lines = checkpoint.map_or(Ok(None), checkpoint::lines)?;
        let history = self.folder.history(epoch - left, lines)?;
        self.folder.start_metrics(&history)?;
        states.iter_mut().for_each(|state| state.progress.history.clone_from(&history.records));
        let first = if left > 0 { ", with its evaluation" } else { "" };
        if epoch > 0 {
            tracing::info!("resuming after epoch {epoch} of {}{first}", self.config.train.epochs);
        }
        Ok(())
    }

    /// Trains to the end as one rank, one of `local_ranks` that share this machine.
    fn train(
        &self,
        comm: &dyn Communicator,
        local_ranks: usize,
        state: TrainState,
        metrics: &Metrics,
        watch: &(dyn Fn(&EpochRecord) + Sync),
    ) -> Result<Trained> {
        let unwritten = Mutex::new(None);
        let first = || unwritten.lock().unwrap_or_else(PoisonError::into_inner);
        let on_epoch = |record: &EpochRecord| {
            if let Err(e) = self.folder.append(record) {
                first().get_or_insert(e);
            }
            watch(record);
        };
        let save = |state: &TrainState, tables: &[Whole<'_>]| {
            // A checkpoint refers to the metrics lines of its epochs, which must be written first.
            first().take().map_or(Ok(()), Err)?;
            let lines = self.folder.sync_metrics()?;
            checkpoint::save(self.folder.dir(), state, tables, lines)?;
            self.folder.changed(&[METRICS, CHECKPOINT])?;
            interrupt::advise(go_on(state.progress.epoch));
            Ok(())
        };
        // Between epochs the strategies poll for requests to stop.
        let _stoppable = Stoppable::new("at the end of this epoch");
        interrupt::advise(go_on(state.progress.epoch));
        let keep = |state: &TrainState, rows: Vec<Rows<'_>>| {
            self.write_model(&state.best, &rows, &state.progress)
        };
        let meter = metrics.meter(comm.rank());
        let lead = comm.rank() == 0;
        let pulse = if lead { Pulse::new(self.config.train.epochs) } else { Pulse::silent() };
        let (threads, busy) = self.threads(local_ranks);
        state.progress.history.iter().for_each(|record| meter.epoch(record));
        let session = Session {
            config: self.config,
            registry: self.registry,
            goal: &self.goal,
            threads: Threads {
                each: threads,
                host: threads * busy,
                several_hosts: comm.size() > local_ranks,
            },
            local_ranks,
            tables: &self.start.tables,
            meter: &meter,
            on_epoch: &on_epoch,
            on_checkpoint: &save,
            on_best: &keep,
            dir: self.folder.dir(),
            #[cfg(feature = "serve")]
            feed: self.workers.as_ref().map(|workers| &workers.feed),
            home: &home(self.config, self.folder.dir())?,
            pulse: &pulse,
        };
        let observed = Observed::new(comm);
        let comm: &dyn Communicator = if self.config.output.profile { &observed } else { comm };
        let train = || self.task.train(&session, comm, state);
        let state = if lead { pulse.while_working(train)? } else { train()? };
        let rows = state.tables.into_iter().map(|table| table.into_best_on_first(comm));
        let rows = rows.collect::<Result<_>>()?;
        integrity::settle()?;
        Ok(Trained { progress: state.progress, weights: state.best, rows })
    }

    /// Compute threads of a rank, and ranks that have some, of those that share this machine.
    fn threads(&self, local_ranks: usize) -> (usize, usize) {
        // Ranks without a part leave their threads to the others.
        let parts = self.partition.as_ref().map_or(1, |cut| cut.parts);
        let busy = match self.config.train.strategy {
            Strategy::Average => local_ranks.min(parts),
            _ => local_ranks,
        };
        (threads_each(self.config, busy), busy)
    }

    /// Writes the best weights and embeddings so far, with `progress` as metadata.
    fn write_model(&self, weights: &[f32], rows: &[Rows<'_>], progress: &Progress) -> Result<()> {
        let Start { params, tables } = &self.start;
        let mut params = params.clone();
        params.flat_mut().copy_from_slice(weights);
        let about = About {
            version: env!("CARGO_PKG_VERSION").into(),
            task: word(self.config.task.kind),
            model: self.config.model.name.clone(),
            classes: self.task.sizes().outputs,
            dataset: self.source.fingerprint(),
            normalize: word(self.config.dataset.normalize),
            epoch: progress.best_epoch,
            valid: progress.best_valid.clone(),
        };
        write_model(&self.folder.dir().join(MODEL), &params, (tables, rows), &about)
            .while_doing(|| "writing the best weights")?;
        self.folder.changed(&[MODEL])
    }

    /// Number of weights, embeddings included.
    fn parameters(&self) -> usize {
        let Start { params, tables } = &self.start;
        params.len() + tables.iter().map(TableSpec::values).sum::<usize>()
    }

    fn finish(&self, trained: Trained, taken: Option<Taken>) -> Result<Finished> {
        let Trained { progress, weights, rows } = trained;
        self.write_model(&weights, &rows, &progress)?;
        let figures = (self.goal.metric.clone(), self.parameters());
        let partition = self.partition.clone();
        finish::finish(self.config, &self.folder, partition, figures, (progress, taken))
    }
}

/// The place of embeddings: the memory, or the run's folder.
fn home(config: &RunConfig, dir: &Path) -> Result<Home> {
    match config.embedding.store {
        RowStore::Memory => Ok(Home::Memory),
        RowStore::File => {
            let folder = dir.join(EMBEDDINGS);
            // Hosts that do not share the run's folder have one of their own.
            std::fs::create_dir_all(&folder).at(&folder)?;
            sweep_files(&folder)?;
            Ok(Home::Folder(folder))
        }
    }
}

/// Rejects parts to train alone without files on this host.
///
/// # Errors
/// [`gnarl_common::Kind::Usage`] naming the first such part.
fn check_here(cut: &PartitionedDataset, mine: &dyn Fn(usize) -> bool) -> Result<()> {
    match (0..cut.num_parts()).find(|&part| mine(part) && !cut.has_part(part)) {
        None => Ok(()),
        Some(part) => Err(Error::usage(format!(
            "{}: part {part} is to be trained on this host, and its files are not here",
            cut.dir().display()
        ))
        .hint("train.strategy = 'average' trains the parts that a host has: copy it here")),
    }
}

/// Rejects batch workers.
///
/// # Errors
/// [`gnarl_common::Kind::Usage`] if the run has some.
#[cfg(not(feature = "serve"))]
fn no_batch_workers(config: &RunConfig, _: Option<&dyn Communicator>) -> Result<()> {
    match config.train.strategy == Strategy::Disaggregated && config.disaggregated.batch_workers > 0
    {
        true => Err(Error::usage("disaggregated.batch_workers is not supported by this build")
            .hint("build with --features serve")),
        false => Ok(()),
    }
}

/// Advice on how to continue an interrupted run.
fn go_on(epoch: usize) -> String {
    match epoch {
        0 => "no epoch was saved yet; start again".into(),
        _ => format!("resume after epoch {epoch} with --resume"),
    }
}

/// A one-word value of the run file.
fn word(value: impl Serialize) -> String {
    let value = toml::Value::try_from(value).ok();
    value.as_ref().and_then(toml::Value::as_str).unwrap_or_default().into()
}
