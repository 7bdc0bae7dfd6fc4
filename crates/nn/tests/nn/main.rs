//! Layers, beside fixtures, finite differences and whole graphs.

mod attention;
mod common;
mod decoupled;
mod decoupled_heterogeneous;
mod finite_differences;
mod heterogeneous_layers;
mod layers;
mod passes;
mod slices;
mod tensors;
mod threads;
