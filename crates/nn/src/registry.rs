//! Errors of the name registries (models, optimizers, metrics).

use gnarl_graph::error::Error;

/// A usage error for a name no registry entry has, with the nearest known one as a hint.
pub(crate) fn unknown_name(what: &str, name: &str, known: &[&str]) -> Error {
    let error = Error::usage(format!("unknown {what} '{name}'"));
    let nearest = known
        .iter()
        .max_by(|a, b| strsim::jaro_winkler(name, a).total_cmp(&strsim::jaro_winkler(name, b)));
    match nearest {
        Some(nearest) if strsim::jaro_winkler(name, nearest) > 0.7 => {
            error.hint(format!("did you mean '{nearest}'? Known: {}", known.join(", ")))
        }
        _ => error.hint(format!("known: {}", known.join(", "))),
    }
}
