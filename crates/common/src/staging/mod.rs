//! Staged outputs: claimed by one process, written under a temporary name, and renamed in one step
//! at the end.
//!
//! **In:** the place where a folder or file is to appear. **Out:** the complete output, or what
//! existed before; nothing in between, whoever else writes there and whenever the process is
//! stopped.
//!
//! - [`Claim`] locks a place. Two processes never write to one, and leftovers of an earlier one are
//!   removed by the next.
//! - [`Staging`] is the temporary folder. Its name is random and it is always newly made, so
//!   that no process ever enters another's.
//! - [`AtomicFile`] is its counterpart for single files.
//! - [`interrupt`] removes all of them when the process has to end early.

mod claim;
mod durable;
mod file;
mod folder;
pub mod interrupt;
mod lock;
mod sweep;

pub use claim::Claim;
pub use durable::{create_folder, sync_parent};
pub use file::AtomicFile;
pub use folder::Staging;
pub use lock::LockFile;
pub use sweep::{is_temporary, sweep_files};
