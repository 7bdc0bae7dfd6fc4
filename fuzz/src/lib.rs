//! Ground of the fuzz targets: limits of memory, folders for files, inputs with several parts, datasets that are damaged,
//! and what a reader's results are compared with.

pub mod columns;
pub mod damage;
pub mod fixture;
pub mod graph;
pub mod input;
pub mod memory;
pub mod panics;
pub mod parts;
pub mod scratch;
