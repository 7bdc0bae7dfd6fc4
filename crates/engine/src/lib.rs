//! Ranks and collectives.
//!
//! In: each rank's values. Out: what all ranks agree on. A rank is one of `size` workers that run
//! the same program; program code holds a [`Communicator`] and never asks what carries it. Every
//! wait has a deadline and its error names the ranks that did not come and the stage they were
//! awaited at. A group of ranks can be split into groups, and these again.
//!
//! ```
//! use gnarl_engine::{Communicator, local};
//! use std::time::Duration;
//!
//! let sums = local::run(3, Duration::from_secs(10), |rank| {
//!     let mut values = [rank.rank() as f32, 1.0];
//!     rank.all_reduce_sum("demo", &mut values)?;
//!     Ok(values)
//! })?;
//! assert_eq!(sums, [[3.0, 3.0]; 3]);
//! # Ok::<(), gnarl_common::Error>(())
//! ```

mod communicator;
mod failure;
mod group;
pub mod local;
#[cfg(feature = "mpi")]
pub mod mpi;

pub use communicator::Communicator;
