//! Graphs on disk: datasets, importers, generators, edge streams and CSC.

pub mod error;
pub mod rng;

pub use error::{Context, Error, Kind, Result, ResultExt};
