//! Node features: which rows a batch needs, gathered from where they live.
//!
//! In: local node ids. Out: their rows as `f32`, dense or sparse as stored. Columns are mapped,
//! so only the rows asked for are read; f16, bf16 and u8 widen on the way.
//!
//! Rows of other machines come from a [`RowSource`], by dataset id, through a [`cache`]; [`placement`]
//! says which machine has them. Rows that are learnt are in an [`embedding`].
//!
//! ```
//! use gnarl_store::{FeatureStore, MappedFeatures, Normalize, Rows};
//! # use gnarl_graph::{DatasetWriter, Features, IdWidth, Triple};
//! # let dir = tempfile::tempdir()?;
//! # let mut writer = DatasetWriter::create(dir.path().join("g"), IdWidth::U32)?;
//! # writer.add_node_type("_N", 3);
//! # let mut column = writer.node_column::<f32>("_N", "features", &[2])?;
//! # column.push(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?;
//! # let spec = column.finish()?;
//! # writer.node_type("_N")?.columns.push(spec);
//! # let mut edges = writer.edge_writer(&Triple::plain(), None)?;
//! # edges.push(&[0], &[1])?;
//! # let columns = edges.finish()?;
//! # writer.add_edge_type(Triple::plain(), columns);
//! # let dataset = writer.finish(Default::default())?;
//! let features = dataset.features("_N")?.expect("the dataset has features");
//! let store = MappedFeatures::new(features, Normalize::None)?;
//! let Rows::Dense(values) = store.gather(&[2, 0])? else { unreachable!("stored dense") };
//! assert_eq!(values, [5.0, 6.0, 1.0, 2.0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod cache;
pub mod embedding;
mod mapped;
pub mod placement;
mod source;
mod widen;

pub use mapped::{MappedFeatures, Normalize};
pub use source::RowSource;

use std::ops::Range;

use gnarl_common::Result;

/// Gathered feature rows, in the order of the ids asked for.
#[derive(Debug, Clone, PartialEq)]
pub enum Rows {
    /// `ids × width` values.
    Dense(Vec<f32>),
    /// The non-zero values of each row.
    Sparse {
        /// `ids + 1` offsets.
        indptr: Vec<u64>,
        /// Column of each value, ascending within a row.
        indices: Vec<u32>,
        /// The values.
        values: Vec<f32>,
    },
}

/// Where feature rows come from.
pub trait FeatureStore: Send + Sync {
    /// Number of nodes with a row.
    fn rows(&self) -> usize;

    /// Values in a row.
    fn width(&self) -> usize;

    /// Whether [`FeatureStore::gather`] returns sparse rows.
    fn is_sparse(&self) -> bool;

    /// The rows of `ids`.
    ///
    /// # Errors
    /// If an id has no row.
    fn gather(&self, ids: &[u32]) -> Result<Rows>;

    /// The rows of `ids` into `out`, `ids × width` values, for stores of dense rows.
    ///
    /// # Errors
    /// If an id has no row, or the rows are sparse.
    fn gather_into(&self, ids: &[u32], out: &mut [f32]) -> Result<()>;

    /// Says that the rows of `ids` are not wanted for a while, so that a store of mapped files need not
    /// hold them in memory.
    fn forget(&self, _ids: Range<usize>) {}

    /// What the cache before rows of other machines answered so far, if there is one.
    fn cache_stats(&self) -> Option<cache::CacheStats> {
        None
    }
}
