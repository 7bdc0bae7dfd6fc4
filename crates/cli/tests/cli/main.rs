//! The binary as a user runs it.

mod common;
mod errors;
mod import;
mod partition;
mod resume;
mod train;
