//! The binary as a user runs it.

mod bench;
mod common;
mod errors;
mod import;
mod partition;
mod plan;
mod resume;
mod train;
