//! Metrics, accumulated exactly: counts are integers and ranks merge without rounding.
//!
//! In: logits and targets, batch by batch. Out: one number at the end. The state of a metric is a
//! list of words that another rank can merge, so that a metric over p ranks is bitwise the metric
//! over one.

mod accuracy;
mod average_precision;
mod deviations;
mod f1;
mod mae;
mod ranks;
mod rmse;
mod roc_auc;

pub use accuracy::Accuracy;
pub use average_precision::AveragePrecision;
pub use f1::{F1, F1Average};
pub use mae::Mae;
pub use ranks::Ranks;
pub use rmse::Rmse;
pub use roc_auc::RocAuc;

use gnarl_graph::error::Result;
use gnarl_graph::names::unknown;

/// What the logits of one row are judged by.
#[derive(Debug, Clone, Copy)]
pub enum Targets<'a> {
    /// One class a row.
    Classes(&'a [u32]),
    /// `C` zeros or ones a row, row-major: several labels a node.
    Multi(&'a [u8]),
    /// One number a row, which metrics of classes pass over, as those of numbers pass over classes.
    Values(&'a [f32]),
}

/// A measure of predictions that accumulates over batches and merges over ranks.
pub trait Metric: Send {
    /// The name the configuration uses.
    fn name(&self) -> &'static str;

    /// Adds one batch: `logits` is row-major with `num_classes` columns, `rows[i]` the row that
    /// target `i` belongs to.
    fn update(&mut self, logits: &[f32], num_classes: usize, rows: &[u32], targets: Targets<'_>);

    /// The state as words, for another rank's [`Metric::merge`].
    fn state(&self) -> Vec<u64>;

    /// Adds the state of another rank.
    fn merge(&mut self, state: &[u64]);

    /// The value over all batches so far, of metrics of classes in `[0, 1]`; 0 where nothing defines it.
    fn value(&self) -> f64;
}

/// A metric of classes by name; a usage error names the nearest known one.
pub fn build(name: &str) -> Result<Box<dyn Metric>> {
    match name {
        "accuracy" => Ok(Box::new(Accuracy::default())),
        "micro-f1" => Ok(Box::new(F1::new(F1Average::Micro))),
        "macro-f1" => Ok(Box::new(F1::new(F1Average::Macro))),
        "roc-auc" => Ok(Box::new(RocAuc::default())),
        "average-precision" => Ok(Box::new(AveragePrecision::default())),
        other => Err(unknown("metric", other, names())),
    }
}

/// The names [`build`] knows.
pub fn names() -> &'static [&'static str] {
    &["accuracy", "micro-f1", "macro-f1", "roc-auc", "average-precision"]
}

/// A metric of numbers by name; a usage error names the nearest known one.
pub fn build_of_values(name: &str) -> Result<Box<dyn Metric>> {
    match name {
        "rmse" => Ok(Box::new(Rmse::default())),
        "mae" => Ok(Box::new(Mae::default())),
        other => Err(unknown("metric of a regression", other, names_of_values())),
    }
}

/// The names [`build_of_values`] knows.
pub fn names_of_values() -> &'static [&'static str] {
    &["rmse", "mae"]
}

/// Whether the smaller of two values of a metric is the better one.
pub fn smaller_is_better(name: &str) -> bool {
    names_of_values().contains(&name)
}

/// Column of the largest value; the first one on ties.
pub fn argmax(row: &[f32]) -> usize {
    let mut best = 0;
    for (c, &x) in row.iter().enumerate() {
        if x > row[best] {
            best = c;
        }
    }
    best
}

/// Row `row` of row-major `logits`.
fn row_of(logits: &[f32], num_classes: usize, row: u32) -> &[f32] {
    &logits[row as usize * num_classes..][..num_classes]
}

#[cfg(test)]
mod tests;
