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
    /// A collective, waiting for other ranks included.
    Wait,
}

/// Work done in a span.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// Floating-point operations.
    pub flops: f64,
    /// Bytes read and written, or sent.
    pub bytes: f64,
}
