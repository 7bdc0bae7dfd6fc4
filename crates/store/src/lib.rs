//! Feature and embedding storage, local and remote.
//!
//! In: local node ids. Out: their features as `f32`, dense or sparse as stored. Columns are mapped,
//! so that only the requested rows are read; f16, bf16 and u8 are widened on the way.
//!
//! Remote features come from a [`RowSource`], by dataset id, through a [`cache`]; [`placement`]
//! maps them to machines. [`embedding`] has learned embeddings.
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
mod file_rows;
mod mapped;
mod placed;
pub mod placement;
mod source;
mod widen;

pub use mapped::{MappedFeatures, Normalize};
pub use placed::PlacedFeatures;
pub use source::RowSource;

use std::ops::Range;

use gnarl_common::{DType, Result, Stored};

/// Gathered features, in the order of the requested ids.
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

/// Calls [`FeatureStore::begin_random_reads`] of all `stores`, which share `memory` by the bytes of their files.
///
/// # Errors
/// As there; stores after the one that fails are read as before, too.
pub fn begin_random_reads<'a>(
    stores: impl Iterator<Item = &'a dyn FeatureStore> + Clone,
    memory: u64,
) -> Result<()> {
    let all: u64 = stores.clone().map(FeatureStore::file_bytes).sum();
    for store in stores {
        let share = u128::from(memory) * u128::from(store.file_bytes()) / u128::from(all.max(1));
        store.begin_random_reads(share as u64)?;
    }
    Ok(())
}

/// A store of node features.
pub trait FeatureStore: Send + Sync {
    /// Number of nodes with features.
    fn rows(&self) -> usize;

    /// Feature width.
    fn width(&self) -> usize;

    /// Returns whether [`FeatureStore::gather`] returns sparse features.
    fn is_sparse(&self) -> bool;

    /// The features of `ids`.
    ///
    /// # Errors
    /// If an id has no row.
    fn gather(&self, ids: &[u32]) -> Result<Rows>;

    /// Gathers the features of `ids` into `out`, `ids × width` values, for dense stores.
    ///
    /// # Errors
    /// If an id has no row, or the rows are sparse.
    fn gather_into(&self, ids: &[u32], out: &mut [f32]) -> Result<()>;

    /// All rows, one after the other, where they are dense and not normalized.
    fn stored(&self) -> Option<Stored<'_>> {
        None
    }

    /// The type in which all dense values can be given without a change: that in which they are stored, unless they are
    /// normalized.
    fn exact_type(&self) -> DType {
        DType::F32
    }

    /// Bytes of files that dense features are read from; 0 where they are in memory or elsewhere.
    fn file_bytes(&self) -> u64 {
        0
    }

    /// Advises that the features of `ids` are read soon, so that a store of mapped files may read ahead.
    fn expect_reads(&self, _ids: Range<usize>) {}

    /// Prepares for reads here and there of files larger than memory: dense rows are read past the system's cache from then on,
    /// many at a time, and those that are read most often stay in `memory` bytes. Nothing where they are not in files. Only the
    /// first call counts.
    ///
    /// # Errors
    /// If a file cannot be opened once more; it is read by pages then.
    fn begin_random_reads(&self, _memory: u64) -> Result<()> {
        Ok(())
    }

    /// As [`FeatureStore::gather`] for files larger than memory: rows are read many at a time.
    ///
    /// # Errors
    /// As [`FeatureStore::gather`].
    fn gather_ahead(&self, ids: &[u32]) -> Result<Rows> {
        self.gather(ids)
    }

    /// As [`FeatureStore::gather_into`] for files larger than memory: rows are read many at a time.
    ///
    /// # Errors
    /// As [`FeatureStore::gather_into`].
    fn gather_ahead_into(&self, ids: &[u32], out: &mut [f32]) -> Result<()> {
        self.gather_into(ids, out)
    }

    /// Advises that the features of `ids` are not read for a while, so that a store of mapped files
    /// may release their memory.
    fn forget(&self, _ids: Range<usize>) {}

    /// Statistics of the cache of features of other hosts, or of files larger than memory, if there is one.
    fn cache_stats(&self) -> Option<cache::CacheStats> {
        None
    }
}
