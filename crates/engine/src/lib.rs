//! Ranks and collectives.
//!
//! In: each rank's values. Out: values that all ranks agree on. A rank is one of `size` workers
//! that run the same program; program code holds a [`Communicator`] whatever its transport. Every
//! wait has a deadline, and its error names the missing ranks and the stage at which they were
//! expected. A group of ranks can be split into groups, and these again.
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
