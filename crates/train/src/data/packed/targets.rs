//! Targets as a column: `targets.class`, `targets.labels` or `targets.value`.

use gnarl_common::Result;

use super::columns::Columns;
use crate::task::objective::Targets;

/// Adds targets to `out`.
pub(crate) fn pack(targets: Targets, out: &mut Columns) {
    match targets {
        Targets::Classes(classes) => out.add("targets.class", classes),
        Targets::Multi(labels) => out.add("targets.labels", labels),
        Targets::Values(values) => out.add("targets.value", values),
    }
}

/// Takes the targets of examples with `outputs` labels each from `columns`, and their number.
///
/// # Errors
/// If they are missing.
pub(crate) fn unpack(columns: &mut Columns, outputs: usize) -> Result<(Targets, usize)> {
    if let Some(classes) = columns.take_some("targets.class")? {
        let count = classes.len();
        return Ok((Targets::Classes(classes), count));
    }
    if let Some(labels) = columns.take_some("targets.labels")? {
        let count = labels.len() / outputs.max(1);
        return Ok((Targets::Multi(labels), count));
    }
    let values: Vec<f32> = columns.take("targets.value")?;
    let count = values.len();
    Ok((Targets::Values(values), count))
}
