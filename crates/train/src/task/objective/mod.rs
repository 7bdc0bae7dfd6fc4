//! Objectives: predictions of examples compared with their targets, as a loss and as scores. One file per kind of
//! targets; a program adds its own by [`Registry::add_task`](crate::Registry::add_task).

mod classes;
mod compare;
mod labels;
mod metric;
mod targets;
mod values;

use gnarl_common::{Error, Result};
use gnarl_config::{RunConfig, TaskKind};
use gnarl_graph::Labels;

pub use compare::{Objective, Scorer};
pub use targets::Targets;

use classes::Classes;
use labels::MultiLabel;
use values::Regression;

/// The objective of the library for such labels, as a run file asks for it.
///
/// # Errors
/// [`gnarl_common::Kind::Usage`] if the metric or the loss is none for such labels.
pub(crate) fn of_labels(config: &RunConfig, labels: &Labels) -> Result<Box<dyn Objective>> {
    let metric = config.train.metric.as_deref();
    let numbers = matches!(config.task.kind, TaskKind::NodeRegression | TaskKind::EdgeRegression);
    Ok(match labels {
        Labels::Values { .. } if numbers => Box::new(Regression::new(metric, &config.loss)?),
        Labels::Single { .. } if !numbers => Box::new(Classes::new(metric)?),
        Labels::Multi { .. } if !numbers => Box::new(MultiLabel::new(metric)?),
        Labels::Values { .. } => return Err(Error::usage("numbers are no classes")),
        _ => return Err(Error::usage("classes are no numbers")),
    })
}
