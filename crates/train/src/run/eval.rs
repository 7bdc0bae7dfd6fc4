//! Evaluation of the saved weights of a run.

use std::path::Path;

use gnarl_common::{Context, Error, Kind, Result, ResultExt};
use gnarl_config::RunConfig;

use crate::embeddings::{about_model, model_from_bytes};
use crate::evaluation::Evaluation;
use crate::registry::Registry;
use crate::run::folder::{CONFIG, MODEL, Provenance, SUMMARY};
use crate::run::setup::{Setup, Source};
use crate::state::Start;

/// Evaluates the best weights of a run with a model of the library. See [`Registry::eval_run`].
///
/// # Errors
/// As [`Registry::eval_run`].
pub fn eval_run(dir: &Path, dataset: Option<&Path>) -> Result<Evaluation> {
    Registry::default().eval_run(dir, dataset)
}

impl Registry {
    /// Evaluates the best weights of a run, finished or not, on the splits of its dataset, or of another one.
    ///
    /// # Errors
    /// If the folder holds no run with weights, or they do not fit the dataset.
    pub fn eval_run(&self, dir: &Path, dataset: Option<&Path>) -> Result<Evaluation> {
        let path = dir.join(CONFIG);
        if !path.exists() {
            return Err(Error::new(Kind::Io, format!("{}: no run", dir.display()))
                .hint("name the folder of a run, which output.dir said"));
        }
        let text = std::fs::read_to_string(&path).at(&path)?;
        let mut config: RunConfig = toml::from_str(&text)
            .map_err(|e| Error::invalid(format!("{}: {e}", path.display())))?;
        let provenance = Provenance::read(dir)?.filter(|_| dataset.is_none());
        if let Some(dataset) = dataset {
            config.dataset.path = dataset.into();
        }
        if config.dataset.path.as_os_str().is_empty() {
            return Err(Error::usage("the run was trained on parts, without a dataset")
                .hint("give the whole one with --dataset"));
        }
        config.partition.servers = None;
        let source = Source::open(&config)?;
        if let Some(made) = provenance.filter(|made| made.dataset == config.dataset.path) {
            let hint = "evaluate on the current data with --dataset";
            made.check(&config, &source.fingerprint(), hint)?;
        }
        let Setup { task, start, .. } = Setup::new((&config, self), source, None)?;
        let Start { mut params, tables } = start;
        let path = dir.join(MODEL);
        if !path.exists() {
            return Err(Error::invalid(format!("{}: no weights yet", path.display()))
                .hint("a run writes its best weights after evaluations, see train.eval_every"));
        }
        let bytes = std::fs::read(&path).at(&path)?;
        if !dir.join(SUMMARY).exists() {
            let about =
                about_model(&bytes).while_doing(|| format!("reading {}", path.display()))?;
            let (place, epoch) = (dir.display(), about.unwrap_or_default().epoch);
            tracing::warn!(
                "{place}: the run is not finished; evaluating its best so far, epoch {epoch}"
            );
        }
        let rows = model_from_bytes(&mut params, &tables, &bytes)
            .while_doing(|| format!("reading {}", path.display()))?;
        task.evaluate(&params, &rows)
    }
}
