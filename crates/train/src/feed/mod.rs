//! Batches that batch workers prepare (Armada §3): `remote.rs` asks for them, and `coordinator.rs` knows whom to ask.
//!
//! A batch is a function of its name, whoever prepares it: a worker that does not reply is replaced by another one, and
//! nothing is lost with it.

mod coordinator;
mod remote;

pub(crate) use coordinator::{Access, KeptCoordinator};
pub(crate) use remote::Feed;
