//! Caches of remote rows.
//!
//! A [`Policy`] decides which ids have a slot, one file per policy; [`CachedRows`] keeps the rows
//! of the slots and fetches the others from the source. [`CachePolicy`] names the policies and
//! builds a cache within a byte budget, and [`scores`] ranks the rows for a fixed cache.
//!
//! ```
//! use gnarl_common::Result;
//! use gnarl_store::RowSource;
//! use gnarl_store::cache::CachePolicy;
//!
//! struct Squares;
//!
//! impl RowSource for Squares {
//!     fn width(&self) -> usize {
//!         1
//!     }
//!
//!     fn fetch(&self, ids: &[u64], out: &mut [f32]) -> Result<()> {
//!         ids.iter().zip(out).for_each(|(&id, value)| *value = (id * id) as f32);
//!         Ok(())
//!     }
//! }
//!
//! let choose = |_| unreachable!("for fixed caches only");
//! let cached = CachePolicy::Lru.build(Squares, 1 << 20, choose)?;
//! let mut rows = [0.0; 3];
//! cached.fetch(&[3, 4, 3], &mut rows)?;
//! cached.fetch(&[4, 5, 3], &mut rows)?;
//! assert_eq!(rows, [16.0, 25.0, 9.0]);
//! assert_eq!((cached.stats().hits, cached.stats().fetched), (2, 3));
//! # Ok::<(), gnarl_common::Error>(())
//! ```

mod budget;
mod clockpro;
mod fifo;
mod fixed;
mod lru;
mod policy;
mod registry;
mod rows;
pub mod scores;
mod shared;

pub use policy::Policy;
pub use registry::CachePolicy;
pub use rows::{CacheStats, CachedRows, FetchRows, RowCache};
pub use shared::SharedRows;

#[cfg(test)]
mod tests;
