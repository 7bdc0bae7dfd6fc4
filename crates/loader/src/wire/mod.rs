//! Requests for batches and batches as Arrow record batches.

mod batch;
mod check;
mod lists;
mod request;
mod spec;

pub(crate) use batch::{batch_of, batch_reply};
pub(crate) use request::{request_message, request_of};
pub(crate) use spec::BatchSpec;
