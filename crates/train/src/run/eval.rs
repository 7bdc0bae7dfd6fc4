//! Evaluation of the saved weights of a run.

use std::path::Path;

use gnarl_common::Result;

use crate::evaluation::Evaluation;
use crate::registry::Registry;
use crate::run::trained::{OpenOptions, TrainedRun};

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
        let options = OpenOptions { dataset: dataset.map(Into::into), ..OpenOptions::default() };
        TrainedRun::open(self, dir, &options)?.evaluate()
    }
}
