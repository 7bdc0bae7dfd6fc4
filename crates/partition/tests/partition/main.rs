//! Partitioners, and the files of parts.

mod assess;
mod buckets;
mod common;
mod conformance;
mod damaged;
mod edge_conformance;
mod edge_real;
mod graphs;
mod knot;
mod owner;
mod real;
mod tables;
mod tail;
mod targets;
mod two_level;
mod vertex_cut;
