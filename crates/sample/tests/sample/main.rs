//! Samplers over whole graphs and over parts.

mod conformance;
mod edge_features;
mod frontier;
mod heterogeneous;
mod heterogeneous_input;
mod heterogeneous_parts;
mod heterogeneous_temporal;
mod negatives;
mod neighbors;
mod parts;
mod ppr;
mod resident;
mod self_loops;
mod subgraphs;
mod temporal;
mod temporal_parts;
mod walks;
