//! Batches that batch workers prepare (Armada §3): `remote.rs` asks for them, `features.rs` for the features of their
//! input nodes where ranks share them or keep some, and `coordinator.rs` knows whom to ask.
//!
//! A batch is a function of its name, whoever prepares it: a worker that does not reply is replaced by another one, and
//! nothing is lost with it.

mod coordinator;
mod features;
mod remote;

pub(crate) use coordinator::{Access, KeptCoordinator};
pub(crate) use features::Features;
pub(crate) use remote::Feed;
