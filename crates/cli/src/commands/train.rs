//! `gnarl train`

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use clap::Args;
use gnarl_common::Result;
use gnarl_common::staging::interrupt;
use gnarl_config::RunConfig;
use gnarl_config::{Engine, Strategy, load};
use gnarl_report::LiveReport;
use gnarl_train::{Begin, EpochRecord, Finished, Recorded, Registry, Summary, Watch};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value;
use signal_hook::consts::SIGINT;

use super::dataset;
use super::parse::{alone, engine};
use crate::allocator::{AMPLE, hold_little};
use crate::output::{json, stream};

/// `gnarl train`
#[derive(Debug, Args)]
pub struct TrainArgs {
    /// The run file
    pub run: PathBuf,
    /// Override a key of the run file, such as train.lr=0.01
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub settings: Vec<String>,
    /// Engine of the workers, instead of train.engine: local or mpi
    #[arg(long, value_parser = engine)]
    pub engine: Option<Engine>,
    /// Continue from the checkpoint of an interrupted run
    #[arg(long, conflicts_with = "restart")]
    pub resume: bool,
    /// Start over, replacing an existing run
    #[arg(long)]
    pub restart: bool,
    /// Write a profile to the run's folder: trace.json for ui.perfetto.dev, and its sums
    #[arg(long)]
    pub profile: bool,
    /// Print the run's folder, and the record of each epoch, as lines of JSON on stdout, before the result
    #[arg(long)]
    pub stream: bool,
    /// After each streamed epoch read a line from stdin: 'stop', or the end of the input, stops the run there
    #[arg(long, requires = "stream", hide = true)]
    pub attended: bool,
}

/// Trains as `args` say, which are those of the command `words`.
pub fn run(args: &TrainArgs, words: &[OsString]) -> Result<Value> {
    let mut config = load(&args.run, &args.settings)?;
    config.train.engine = args.engine.unwrap_or(config.train.engine);
    config.output.profile |= args.profile;
    let begin = match (args.resume, args.restart) {
        (true, _) => Begin::Resume,
        (_, true) => Begin::Restart,
        _ => Begin::Fresh,
    };
    if let Some(budget) = config.tensor.memory {
        hold_little(budget.as_u64() >= AMPLE);
    }
    let has_parts = config.disaggregated.batch_workers == 0;
    if config.train.strategy == Strategy::Disaggregated && has_parts {
        // Memory is what the strategy is chosen for.
        hold_little(true);
    }
    match config.train.engine {
        Engine::Local => {
            alone("train.engine = 'local'", "start one process and set train.workers")?;
            dataset::prepare(&mut config, &args.run)?;
            Ok(json(&train(&config, begin, Progress::new(&config, args, words))?))
        }
        Engine::Mpi => under_mpi(&config, begin, args, words),
    }
}

/// Trains as one of the processes started by `mpirun`; only the first returns a result.
#[cfg(feature = "mpi")]
fn under_mpi(
    config: &RunConfig,
    begin: Begin,
    args: &TrainArgs,
    words: &[OsString],
) -> Result<Value> {
    use gnarl_engine::Communicator;

    let deadline = std::time::Duration::from_secs_f64(config.train.deadline_seconds);
    gnarl_engine::mpi::run(deadline, |rank| {
        let mut config = config.clone();
        if rank.rank() == 0 {
            dataset::prepare(&mut config, &args.run)?;
        }
        rank.barrier("importing the dataset")?;
        if rank.rank() > 0 {
            dataset::find(&mut config, &args.run)?;
        }
        let config = &config;
        let progress = Progress::new(config, args, words);
        let registry = Registry::default();
        let finished = registry.run_on_watched(rank, config, begin, &progress)?;
        progress.finish();
        finished.map_or(Ok(Value::Null), |finished| Ok(json(&report(finished)?)))
    })
}

#[cfg(not(feature = "mpi"))]
fn under_mpi(_: &RunConfig, _: Begin, _: &TrainArgs, _: &[OsString]) -> Result<Value> {
    Err(gnarl_common::Error::usage("train.engine = 'mpi' is not supported by this build")
        .hint("build with --features mpi, which requires an MPI library; see docs/cluster.md"))
}

/// Trains and reports, with progress on stderr, and the records of epochs on stdout if asked for.
fn train(config: &RunConfig, begin: Begin, progress: Progress) -> Result<Summary> {
    let finished = Registry::default().run_watched(config, begin, &progress)?;
    progress.finish();
    report(finished)
}

/// Writes the report of a finished run and logs its result.
fn report(finished: Finished) -> Result<Summary> {
    gnarl_report::write_run_report(&finished.folder, &Recorded::of(&finished))?;
    finished.keep_report()?;
    let verdict = finished.verdict();
    let summary = finished.summary;
    let scores = |scores: &gnarl_train::evaluation::Scores| {
        let each: Vec<String> = scores.iter().map(|(k, v)| format!("{k} {v:.4}")).collect();
        each.join(", ")
    };
    let shown = |split: &str, found: &gnarl_train::evaluation::Scores| match found.is_empty() {
        true => format!("no {split} scores"),
        false => format!("{split} {}", scores(found)),
    };
    tracing::info!(
        "{} ({}) after epoch {} of {}; {:.3} s an epoch; see {}",
        shown("test", &summary.test),
        shown("valid", &summary.valid),
        summary.best_epoch,
        summary.epochs,
        summary.epoch_seconds,
        summary.run_dir.join("report.html").display()
    );
    tracing::info!("{verdict}");
    Ok(summary)
}

/// Whoever follows a run from outside the process.
#[derive(Debug, Clone, Copy)]
struct Follow {
    /// True if records go to stdout too.
    stream: bool,
    /// True if the reader is asked after each epoch to go on.
    attended: bool,
}

impl Follow {
    fn of(args: &TrainArgs) -> Self {
        Self { stream: args.stream, attended: args.attended }
    }

    /// Prints an epoch, and asks to stop after it if the reader wants that, or is gone.
    fn epoch(self, record: &EpochRecord) {
        if !self.stream {
            return;
        }
        stream(&record.line());
        if self.attended {
            let mut answer = String::new();
            let read = std::io::stdin().read_line(&mut answer);
            if read.is_err() || answer.is_empty() || answer.trim_end() == "stop" {
                interrupt::request(SIGINT);
            }
        }
    }
}

/// A progress bar on terminals, elsewhere the run logs its progress; and the report, which grows with the run.
struct Progress {
    bar: Option<ProgressBar>,
    follow: Follow,
    /// None before the folder is known, and after the end.
    report: Mutex<Option<LiveReport>>,
    command: Vec<String>,
}

impl Progress {
    fn new(config: &RunConfig, args: &TrainArgs, words: &[OsString]) -> Self {
        let style = "{elapsed_precise} {bar:30} epoch {pos}/{len}, {eta} left  {msg}";
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(config.train.epochs as u64);
            if let Ok(style) = ProgressStyle::with_template(style) {
                bar.set_style(style);
            }
            bar
        });
        let command = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        Self { bar, follow: Follow::of(args), report: Mutex::default(), command }
    }

    fn report(&self) -> MutexGuard<'_, Option<LiveReport>> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes room for the result.
    fn finish(self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Watch for Progress {
    fn command(&self) -> Vec<String> {
        self.command.clone()
    }

    fn ends(&self, finished: bool) {
        let report = self.report().take();
        if let Some(report) = report {
            report.end(finished);
        }
    }

    fn begins(&self, folder: &Path) {
        *self.report() = Some(LiveReport::start(folder));
        if self.follow.stream {
            stream(&serde_json::json!({ "run_dir": folder }));
        }
    }

    fn epoch(&self, record: &EpochRecord) {
        if let Some(report) = self.report().as_ref() {
            report.epoch(record);
        }
        if let Some(bar) = &self.bar {
            let valid = record.valid.iter().map(|(name, v)| format!(", valid {name} {v:.4}"));
            bar.set_position(record.epoch as u64);
            bar.set_message(format!("loss {:.4}{}", record.loss, valid.collect::<String>()));
        }
        // Last: it may wait for an answer.
        self.follow.epoch(record);
    }
}
