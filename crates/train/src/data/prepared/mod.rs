//! Prepared batches: written once by `gnarl sample`, as Arrow files that pyarrow reads too, and trained on many times
//! (`sample.source = "batches"`).
//!
//! `batches.json` says what they depend on ([`identity`](crate::data::identity)), how they are shared out to ranks, and what
//! makes a step; `epoch-E/rank-R.arrow` has a record batch of one row for each batch, see [`packed`](crate::data::packed).

mod manifest;
mod read;
mod write;

pub(crate) use manifest::{MANIFEST, Manifest, digest};
pub(crate) use read::PreparedBatches;
pub(crate) use write::BatchWriter;
