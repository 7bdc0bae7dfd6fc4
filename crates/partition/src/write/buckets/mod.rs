//! Edge buckets (Armada §3, after Marius): for each pair of parts (i, j) the edges from nodes of i
//! to nodes of j are stored consecutively, so that a worker with two parts reads the edges between
//! them in one go. They are sorted as in-neighbor lists are, so that lists are made of several buckets
//! by merging.

mod load;
mod reader;
mod write;

use std::path::Path;

use gnarl_common::error::{Context, Error, Result};
use gnarl_common::sealed_json;
use gnarl_graph::{ColumnSpec, Triple, check_columns};
use serde::{Deserialize, Serialize};

use crate::edge_cut::partitioner::MAX_PARTS;

pub use load::{BucketFiles, LoadedBucket};
pub use reader::{Bucket, EdgeBuckets};
pub(crate) use write::write;

/// Directory of the buckets, within the partition's.
pub const BUCKETS: &str = "buckets";
/// Version written and read by this build.
pub const BUCKETS_VERSION: u32 = 2;
/// Oldest version read by this build.
const OLDEST: u32 = 1;
const FORMAT: &str = "gnarl-buckets";
pub(crate) const FILE: &str = "buckets.json";

/// Contents of `buckets.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BucketsManifest {
    /// Always `gnarl-buckets`.
    pub format: String,
    /// Format version, see [`BUCKETS_VERSION`].
    pub version: u32,
    /// Number of parts.
    pub parts: usize,
    /// Edge types of the source, in its order.
    pub edge_types: Vec<BucketsType>,
}

/// The buckets of an edge type.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BucketsType {
    /// `source:relation:destination`.
    #[serde(rename = "type")]
    pub triple: Triple,
    /// Number of edges.
    pub count: u64,
    /// `offsets` (u64, `parts² + 1`: bucket (i, j) has the rows from entry `i · parts + j` on, to
    /// below the next), `src` and `dst` (u32, rows among the nodes their parts own), the edge columns,
    /// and `checksums` (u32, `parts²` rows: the CRC-32 of the bucket in `src`, in `dst` and in each
    /// edge column, in the order of this list). Edges of a bucket ascend by `dst`, and those of one
    /// destination by `src`; in version 1 they are in the order of the source, without checksums.
    pub columns: Vec<ColumnSpec>,
}

impl BucketsManifest {
    /// The manifest in `dir`.
    ///
    /// # Errors
    /// If there is none, or it is damaged or of another version.
    pub(crate) fn read(dir: &Path) -> Result<Self> {
        let path = dir.join(FILE);
        if !path.exists() {
            return Err(Error::invalid(format!("no {FILE} here"))
                .hint("make buckets with 'gnarl partition --buckets'"));
        }
        let manifest: Self = sealed_json::read(&path)?;
        if manifest.parts > MAX_PARTS {
            let parts = manifest.parts;
            return Err(Error::invalid(format!("{}: {parts} parts", path.display())));
        }
        for edges in &manifest.edge_types {
            check_columns(&edges.triple.to_string(), &edges.columns)
                .while_doing(|| format!("reading {}", path.display()))?;
        }
        let known = (OLDEST..=BUCKETS_VERSION).contains(&manifest.version);
        if manifest.format == FORMAT && known {
            return Ok(manifest);
        }
        Err(Error::invalid(format!(
            "{}: format '{}' version {}, this build reads '{FORMAT}' version {OLDEST} to {BUCKETS_VERSION}",
            path.display(),
            manifest.format,
            manifest.version
        )))
    }

    /// Position of an edge type.
    ///
    /// # Errors
    /// Lists the known ones if there is none.
    pub(crate) fn edge_type(&self, triple: &Triple) -> Result<usize> {
        let types = &self.edge_types;
        types.iter().position(|t| t.triple == *triple).ok_or_else(|| {
            let known: Vec<String> = types.iter().map(|t| t.triple.to_string()).collect();
            Error::invalid(format!("unknown edge type '{triple}'"))
                .hint(format!("there are: {}", known.join(", ")))
        })
    }
}
