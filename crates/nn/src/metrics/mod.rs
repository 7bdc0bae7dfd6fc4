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
mod metric;
mod ranks;
mod rmse;
mod roc_auc;

pub use accuracy::Accuracy;
pub use average_precision::AveragePrecision;
pub use f1::{F1, F1Average};
pub use mae::Mae;
pub use metric::{Metric, Targets, argmax};
pub use ranks::Ranks;
pub use rmse::Rmse;
pub use roc_auc::RocAuc;

use gnarl_common::did_you_mean::unknown;
use gnarl_common::error::Result;

/// A classification metric by name; a usage error names the nearest known one.
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

/// The metric names that [`build`] accepts.
pub fn names() -> &'static [&'static str] {
    &["accuracy", "micro-f1", "macro-f1", "roc-auc", "average-precision"]
}

/// A regression metric by name; a usage error names the nearest known one.
pub fn build_of_values(name: &str) -> Result<Box<dyn Metric>> {
    match name {
        "rmse" => Ok(Box::new(Rmse::default())),
        "mae" => Ok(Box::new(Mae::default())),
        other => Err(unknown("metric of a regression", other, names_of_values())),
    }
}

/// The metric names that [`build_of_values`] accepts.
pub fn names_of_values() -> &'static [&'static str] {
    &["rmse", "mae"]
}

/// Returns whether the smaller of two values of a metric is the better one.
pub fn smaller_is_better(name: &str) -> bool {
    names_of_values().contains(&name)
}

#[cfg(test)]
mod tests;
