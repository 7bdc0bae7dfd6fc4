//! The rule for resuming a run with other settings than it was started with.

use std::path::Path;

use gnarl_common::{Error, Result};
use gnarl_config::{RunConfig, absolute};
use toml::{Table, Value};

/// Rejects resuming a run with other settings than it was started with. Settings may differ that
/// cannot change the results of earlier epochs: speed, locations, the length of the run.
///
/// # Errors
/// [`gnarl_common::Kind::Usage`] naming the first key that differs.
pub(super) fn check(path: &Path, old: &RunConfig, new: &RunConfig) -> Result<()> {
    let decisive = |config: &RunConfig| {
        let mut c = absolute(config);
        c.train.threads = 0;
        c.train.prefetch = 1;
        c.train.preparation_threads = 0;
        c.cache = Default::default();
        c.train.epochs = 1;
        c.train.patience = 0;
        c.train.score_training = false;
        c.train.checkpoint_seconds = 0.0;
        c.train.deadline_seconds = 1.0;
        c.train.engine = Default::default();
        c.embedding.store = Default::default();
        c.disaggregated = c.disaggregated.of_batches();
        // Their digest is compared.
        c.sample.batches = None;
        c.dataset.read_ahead = Default::default();
        c.dataset.cache_memory = None;
        c.output = Default::default();
        c.plan = Default::default();
        // Nobody reads it then; its defaults have changed, and runs begun before have the old ones in their folder.
        if !c.train.strategy.parts_train_alone() {
            c.average = Default::default();
        }
        c.to_table()
    };
    if let Some(key) = first_difference(&decisive(old)?, &decisive(new)?, "") {
        return Err(Error::usage(format!("{key} differs from the run to be resumed"))
            .hint(format!("{} has the settings it was started with", path.display())));
    }
    if old.train.epochs != new.train.epochs && old.schedule.spans_epochs() {
        tracing::warn!(
            "train.epochs was {} and is {}: the schedule of learning rates spans all epochs, so the run \
             differs from one started with that number",
            old.train.epochs,
            new.train.epochs
        );
    }
    Ok(())
}

/// The first key that differs, with the sections it is in after `prefix`.
fn first_difference(old: &Table, new: &Table, prefix: &str) -> Option<String> {
    let changed = old.iter().find_map(|(key, value)| match (value, new.get(key)) {
        (Value::Table(old), Some(Value::Table(new))) => {
            first_difference(old, new, &format!("{prefix}{key}."))
        }
        (old, Some(new)) if old == new => None,
        _ => Some(format!("{prefix}{key}")),
    });
    let added = || new.keys().find(|key| !old.contains_key(*key));
    changed.or_else(|| added().map(|key| format!("{prefix}{key}")))
}

#[cfg(test)]
mod tests {
    use gnarl_config::{Batch, Strategy};

    use super::*;

    #[test]
    fn the_length_of_a_run_may_differ_and_its_rate_not() {
        let mut old = RunConfig::default();
        old.dataset.path = "data/g".into();
        let path = Path::new("config.toml");
        let mut new = absolute(&old);
        new.train.epochs += 10;
        new.train.patience = 3;
        new.train.threads = 7;
        new.output.dir = "elsewhere".into();
        check(path, &old, &new).unwrap();
        new.train.lr *= 2.0;
        let error = check(path, &old, &new).unwrap_err();
        assert!(error.to_string().contains("train.lr differs"), "{error}");
        assert_eq!(error.exit_code(), 2);
    }

    /// Runs begun before `average.batch` had another default go on; those that average have to name it.
    #[test]
    fn averaging_may_differ_where_nothing_is_averaged() {
        let mut old = RunConfig::default();
        old.dataset.path = "data/g".into();
        let mut new = old.clone();
        old.average.batch = Batch::Local;
        let path = Path::new("config.toml");
        check(path, &old, &new).unwrap();
        (old.train.strategy, new.train.strategy) = (Strategy::Average, Strategy::Average);
        let error = check(path, &old, &new).unwrap_err();
        assert!(error.to_string().contains("average.batch differs"), "{error}");
        new.average.batch = Batch::Local;
        check(path, &old, &new).unwrap();
    }
}
