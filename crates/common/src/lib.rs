//! Ground that every crate of gnarl stands on, free of graphs and models.
//!
//! | module | in → out |
//! |---|---|
//! | [`error`] | a failure and what was being done → a message with a hint and an exit code |
//! | [`npy`] | `.npy` files ↔ mapped or streamed arrays ([`Buf`], [`NpyScatter`]) |
//! | [`BufMut`] | a length and a place → an array that changes, in memory or in a mapped file |
//! | [`Spool`] | pieces of an array → the array, in memory or in a mapped file |
//! | [`rng`] | a seed and indices → the same random numbers on any thread |
//! | [`staging`] | an output's place → the whole output or none of it |
//! | [`integrity`] | a mapped file and its checksum → an error if they differ, at once or in the background |
//! | [`sealed_json`] | a value ↔ a file of JSON with its checksum |
//! | [`memory`] | bytes this process takes and may still take |
//! | [`did_you_mean`] | an unknown name → the nearest known one |
//! | [`threads`] | a number of threads → a pool; a range → even shares |
//! | [`profile`] | spans of time on threads of ranks → those spans, and their sums by name |
//! | [`multiversion!`] | a function → the same for the baseline processor and for AVX2 |
//! | [`prefetch`] | hints to the cache |
//! | [`read_ahead`] | ranges of a mapped file → the same in memory, many reads at a time |
//! | [`RowFile`] | ids → rows of a file, many reads at a time, past the system's cache |
//!
//! ```
//! use gnarl_common::did_you_mean::unknown;
//! use gnarl_common::rng::Key;
//!
//! let key = Key::new(42).with(3);
//! assert_eq!(key.bits(), Key::new(42).with(3).bits());
//!
//! let error = unknown("model", "graphsage", &["gat", "gcn", "sage"]);
//! assert!(error.to_string().contains("did you mean 'sage'?"));
//! ```

mod buf;
mod buf_mut;
mod checked;
pub mod did_you_mean;
mod divisor;
mod dtype;
pub mod error;
mod fnv;
pub mod folders;
mod id_map;
pub mod integrity;
pub mod memory;
mod multiversion;
pub mod npy;
mod place;
pub mod prefetch;
pub mod profile;
pub mod read_ahead;
pub mod rng;
mod row_file;
mod scatter;
pub mod sealed_json;
mod spool;
pub mod staging;
mod stored;
pub mod threads;

pub use buf::Buf;
pub use buf_mut::{BufMut, Home, Scan};
pub use checked::read_checked;
pub use divisor::Divisor;
pub use dtype::{DType, Element};
pub use error::{Context, Error, Kind, Result, ResultExt};
pub use fnv::fnv1a;
pub use id_map::IdMap;
pub use place::{FileRange, Folder, Place, Subfolder};
pub use row_file::RowFile;
pub use scatter::NpyScatter;
pub use spool::Spool;
pub use stored::Stored;
