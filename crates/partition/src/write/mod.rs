//! Partitioned datasets on disk: halo nodes, new ids, and each part's nodes, edges and columns.

pub mod buckets;
pub mod build;
pub(crate) mod catalog;
mod columns;
mod deal;
pub mod describe;
mod distribute;
mod edge_order;
pub mod halo;
pub mod layout;
pub mod nodes;
mod owned;
mod rows;
mod storage;
pub mod targets;
pub mod vertex_cut_layout;
