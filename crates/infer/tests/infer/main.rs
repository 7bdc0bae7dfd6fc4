//! Passes over all nodes, and tables in files.

mod common;
mod course;
mod export;
mod export_refused;
#[cfg(feature = "zarr")]
mod export_zarr;
