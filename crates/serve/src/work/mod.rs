//! Batch workers and their coordinator: who prepares batches, and the batches themselves (Armada §3.1).
//!
//! A batch worker [joins](Joining) a [`Coordinator`], and goes on to say that it lives; compute workers ask the coordinator
//! [where](Living) batch workers are, and these for [batches](BatchRequest) by name, and for [features](RowsRequest). What a batch holds is a function of its
//! name, so that any worker may prepare it, and a lost one is asked for again.

mod client;
mod coordinator;
mod message;
mod roster;
mod service;

pub use coordinator::{Coordinator, LEASE, at_host};
pub use message::{BatchRequest, Joining, Living, Orders, RowsRequest, WorkRequest};
pub(crate) use service::WorkService;
pub use service::{Handler, Reply};
