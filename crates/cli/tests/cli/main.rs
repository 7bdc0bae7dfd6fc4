//! The binary as a user runs it.

mod bench;
mod cloud;
mod common;
mod compare;
mod console;
#[cfg(feature = "serve")]
mod crowded;
mod edges;
mod errors;
#[cfg(feature = "serve")]
mod faults;
mod flipped;
mod heterogeneous;
mod import;
#[cfg(feature = "serve")]
mod in_time;
mod infer;
mod infer_edges;
#[cfg(feature = "serve")]
mod infer_parts;
mod interrupted;
mod memory;
mod metrics;
mod mistakes;
#[cfg(feature = "mpi")]
mod mpi;
mod pages;
mod partition;
mod plan;
mod recipes;
mod resume;
mod sample;
#[cfg(feature = "serve")]
mod serve;
#[cfg(feature = "serve")]
mod serve_model;
#[cfg(all(feature = "serve", target_os = "linux"))]
mod shortened;
mod tables;
mod train;
#[cfg(feature = "serve")]
mod work;
