//! Optimizer states of parts that train alone, for checkpoints.

use std::collections::BTreeMap;

use gnarl_common::{Error, Result};
use gnarl_engine::Communicator;
use gnarl_nn::optim::Optimizer;
use gnarl_nn::state::{vectors_from_bytes, vectors_to_bytes};

use crate::embeddings::Replicas;
use crate::state::{OptimizerState, TrainState};

/// Gathers the optimizer states of all parts for the checkpoint.
///
/// # Errors
/// If a rank fails or sends what is no state.
pub(super) fn collect(
    comm: &dyn Communicator,
    state: &mut TrainState,
    optimizers: &BTreeMap<usize, Box<dyn Optimizer>>,
    replicas: &[Replicas],
) -> Result<()> {
    let own = optimizers.iter().zip(replicas).flat_map(|((part, optimizer), replicas)| {
        let entries = optimizer.state().into_iter().chain(replicas.state());
        entries.map(move |(entry, values)| (format!("{part}.{entry}"), values))
    });
    let bytes = vectors_to_bytes(&own.collect::<Vec<_>>())?;
    let mut all: BTreeMap<usize, OptimizerState> = BTreeMap::new();
    for bytes in comm.all_gather("optimizer state", &bytes)? {
        for (name, values) in vectors_from_bytes(&bytes)? {
            let named = name
                .split_once('.')
                .and_then(|(part, entry)| Some((part.parse().ok()?, entry.to_string())));
            let broken = || Error::invalid(format!("optimizer state is named '{name}'"));
            let (part, entry) = named.ok_or_else(broken)?;
            all.entry(part).or_default().push((entry, values));
        }
    }
    state.optimizers.extend(all);
    Ok(())
}
