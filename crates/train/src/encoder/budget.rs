//! The memory of inference.

use gnarl_config::RunConfig;
use gnarl_infer::Budget;

/// The memory that the run file allows.
pub(crate) fn budget(config: &RunConfig) -> Budget {
    config.evaluate.memory.map_or_else(Budget::of_system, |bytes| Budget::new(bytes.as_u64()))
}
