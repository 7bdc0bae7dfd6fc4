//! Writing during a run: checkpoints, and the best weights so far.

use std::time::{Duration, Instant};

use gnarl_common::staging::interrupt;
use gnarl_common::{Error, Kind, Result, integrity};
use gnarl_engine::Communicator;

use crate::run::checkpoint::owned_files;
use crate::run::folder::MODEL;
use crate::session::Session;
use crate::state::TrainState;
use crate::telemetry::short;

/// Share of the time since the last write that writing the best weights at once may take.
const SHARE: f64 = 0.01;

/// Decides on rank 0 when to write, so that all ranks agree, and writes with the embeddings of all
/// ranks.
pub(super) struct Keeper<'a> {
    session: &'a Session<'a>,
    comm: &'a dyn Communicator,
    /// The last checkpoint, and seconds between two.
    saved: Instant,
    interval: Duration,
    /// Duration of the last evaluation, if there was one.
    evaluation: Option<Duration>,
    /// The epoch of the weights last written, with the time and duration of the write.
    kept: usize,
    wrote: Instant,
    took: Duration,
}

impl<'a> Keeper<'a> {
    /// The keeper of a run that begins or continues.
    pub fn new(session: &'a Session<'a>, comm: &'a dyn Communicator) -> Self {
        let seconds = session.config.train.checkpoint_seconds.clamp(0.0, 1e9);
        let now = Instant::now();
        Self {
            session,
            comm,
            saved: now,
            interval: Duration::from_secs_f64(seconds),
            evaluation: None,
            kept: 0,
            wrote: now,
            took: Duration::ZERO,
        }
    }

    /// Communicator of this rank.
    pub fn comm(&self) -> &'a dyn Communicator {
        self.comm
    }

    /// Notes the duration of an evaluation.
    pub fn evaluated(&mut self, took: Duration) {
        self.evaluation = Some(took);
    }

    /// Writes a checkpoint if one is due and the evaluation that begins may take longer than the time between two, so that
    /// a kill in it does not lose the epoch; and if a stop was requested, which need not wait for the evaluation. History
    /// from place `first` on is not evaluated; `optimizers` updates their state.
    ///
    /// # Errors
    /// Those of [`Self::after_epoch`].
    pub fn before_evaluation(
        &mut self,
        state: &mut TrainState,
        first: usize,
        optimizers: &mut dyn FnMut(&mut TrainState) -> Result<()>,
    ) -> Result<()> {
        let long = self.evaluation.is_none_or(|took| took >= self.interval);
        let due = long && self.saved.elapsed() >= self.interval;
        let stop = interrupt::requested().is_some();
        let all = self.comm.all_gather("checkpoint", &[due, stop].map(u8::from))?;
        let stop = all.iter().any(|other| other.get(1) == Some(&1));
        if stop || all[0].first() == Some(&1) {
            state.progress.unevaluated = state.progress.history[first..].to_vec();
            optimizers(state)?;
            self.unchanged()?;
            self.save(state)?;
            self.saved = Instant::now();
            state.progress.unevaluated.clear();
        }
        match stop {
            true => Err(self.stopped(state, ", before its evaluation")),
            false => Ok(()),
        }
    }

    /// Writes what is due after an epoch: new best weights at the latest with the next checkpoint,
    /// and at once where that takes less than [`SHARE`] of the time. `optimizers` updates their
    /// state.
    ///
    /// # Errors
    /// If the disk is full or a rank fails, or a file that is read was found to be damaged; [`Kind::Interrupted`] after a
    /// checkpoint, if a stop was requested.
    pub fn after_epoch(
        &mut self,
        state: &mut TrainState,
        optimizers: &mut dyn FnMut(&mut TrainState) -> Result<()>,
    ) -> Result<()> {
        if let Err(damage) = integrity::so_far() {
            // One that was written to since the last checkpoint did no harm to it.
            integrity::unchanged()?;
            return Err(damage.hint(
                "mend the file, and start anew with --restart: checkpoints were trained on it",
            ));
        }
        let finished =
            state.progress.stopped || state.progress.epoch == self.session.config.train.epochs;
        // A request to stop may have reached any rank.
        let stop = interrupt::requested().is_some() && !finished;
        let checkpoint = stop || finished || self.saved.elapsed() >= self.interval;
        let cheap = self.took.as_secs_f64() <= SHARE * self.wrote.elapsed().as_secs_f64();
        // The end of the run writes the best weights anyway.
        let best = self.is_new(state) && !finished && (checkpoint || cheap);
        let own = [checkpoint, best, stop].map(u8::from);
        let all = self.comm.all_gather("checkpoint", &own)?;
        let stop = all.iter().any(|other| other.get(2) == Some(&1));
        let checkpoint = stop || all[0].first() == Some(&1);
        let best = all[0].get(1) == Some(&1);
        if best || checkpoint {
            self.unchanged()?;
        }
        if best {
            self.write_best(state)?;
        }
        if checkpoint {
            optimizers(state)?;
            self.save(state)?;
            self.saved = Instant::now();
        }
        match stop {
            true => Err(self.stopped(state, "")),
            false => Ok(()),
        }
    }

    /// The error of a run that was asked to stop; its checkpoint is written.
    fn stopped(&self, state: &TrainState, place: &str) -> Error {
        let epoch = state.progress.epoch;
        let epochs = self.session.config.train.epochs;
        let message = format!("stopped after epoch {epoch} of {epochs}{place}, as asked");
        Error::new(Kind::Interrupted, message).hint("continue with --resume")
    }

    /// Returns whether there are unwritten best weights.
    fn is_new(&self, state: &TrainState) -> bool {
        state.progress.best_epoch > self.kept
    }

    fn write_best(&mut self, state: &TrainState) -> Result<()> {
        let start = Instant::now();
        // One rank has its rows where they are, and writes them from first to last.
        let _scans: Vec<_> = state.tables.iter().map(|table| table.best().scan()).collect();
        let rows = state.tables.iter().map(|table| table.best_on_first(self.comm));
        let rows = rows.collect::<Result<Vec<_>>>()?;
        if self.comm.rank() == 0 {
            (self.session.on_best)(state, rows)?;
        }
        self.kept = state.progress.best_epoch;
        self.took = start.elapsed();
        self.wrote = Instant::now();
        Ok(())
    }

    /// Makes sure that no rank has trained on a file that changed, before anything is written: the run could not go on to its
    /// numbers.
    ///
    /// # Errors
    /// If one has, naming the file.
    fn unchanged(&self) -> Result<()> {
        integrity::unchanged()?;
        self.comm.barrier("files behind the checkpoint")
    }

    /// Saves the state on the first rank, with the embeddings of all ranks; those in files are saved by their owners.
    fn save(&self, state: &TrainState) -> Result<()> {
        if let Some(files) = owned_files(state) {
            files.write(self.session.dir, &state.tables)?;
            self.comm.barrier("embeddings of the checkpoint")?;
            if self.comm.rank() == 0 {
                (self.session.on_checkpoint)(state, &[])?;
            }
            self.comm.barrier("the checkpoint")?;
            return files.remove_others(self.session.dir, state.tables.len());
        }
        let tables = state.tables.iter().map(|table| table.whole(self.comm));
        let tables = tables.collect::<Result<Vec<_>>>()?;
        if self.comm.rank() > 0 {
            return Ok(());
        }
        (self.session.on_checkpoint)(state, &tables)
    }

    /// Rejects `state` if `found` is not finite, such as the loss of `epoch`. All ranks call it
    /// with the same number.
    ///
    /// # Errors
    /// With the diverged quantity, a remedy, and the place of the best weights, which are written
    /// first; if a file that is read has changed.
    pub fn finite(
        &mut self,
        state: &TrainState,
        what: &str,
        found: f64,
        epoch: usize,
    ) -> Result<()> {
        if found.is_finite() {
            return Ok(());
        }
        // What changed may be the reason.
        self.unchanged()?;
        if self.is_new(state) {
            self.write_best(state)?;
        }
        Err(self.diverged(state, what, found, epoch))
    }

    fn diverged(&self, state: &TrainState, what: &str, found: f64, epoch: usize) -> Error {
        let (train, progress) = (&self.session.config.train, &state.progress);
        let found = if found.is_nan() { "NaN" } else { "infinite" };
        let before = progress.history.iter().rfind(|record| record.epoch < epoch);
        let before = before.map(|r| format!(" (loss {} in epoch {})", short(r.loss), r.epoch));
        let text = format!("{what} is {found} in epoch {epoch}{}", before.unwrap_or_default());
        let clip = match train.clip_norm > 0.0 {
            true => format!("or train.clip_norm (now {})", short(train.clip_norm.into())),
            false => "or set train.clip_norm".into(),
        };
        let kept = match progress.best_epoch {
            0 => "no weights were evaluated before, so none are kept".to_string(),
            best => {
                let path = self.session.dir.join(MODEL);
                let metric = &self.session.goal.metric;
                let score = progress.best_valid.get(metric);
                let score = score.map(|score| format!(", valid {metric} {score:.4}"));
                let score = score.unwrap_or_default();
                format!("the best weights so far (epoch {best}{score}) are in {}", path.display())
            }
        };
        let lr = short(train.lr.into());
        Error::invalid(text).hint(format!("lower train.lr (now {lr}) {clip}; {kept}"))
    }
}
