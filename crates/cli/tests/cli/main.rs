//! The binary as a user runs it.

mod common;
mod errors;
mod import;
mod resume;
mod train;
