//! Kinds of spans, and their work.

use serde::{Deserialize, Serialize};

/// The kind of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A stage of a run, such as sampling.
    Stage,
    /// An operation on numbers, by all threads of its pool.
    Kernel,
    /// An exchange with other ranks, waiting for them included.
    Collective,
}

/// Work done in a span.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// Floating-point operations.
    pub flops: f64,
    /// Bytes read and written, or contributed to a collective.
    pub bytes: f64,
}
