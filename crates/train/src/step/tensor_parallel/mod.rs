//! `tensor`: the whole graph in each step, with the feature dimension split among ranks (NeutronTP,
//! Ai et al., PVLDB 2024, section 3).
//!
//! Every rank has the structure of the whole graph, and the features of an even share of the nodes.
//! Dense layers run over own rows; messages pass over the own feature slice of all rows, which
//! takes two exchanges a layer, [`Columns::split`] and [`Columns::gather`]. All ranks together
//! compute the result of a single one.
//!
//! [`Columns::split`]: gnarl_nn::Exchange::split
//! [`Columns::gather`]: gnarl_nn::Exchange::gather

mod columns;
mod counted;
mod heterogeneous;
mod homogeneous;
mod none;
mod packing;
mod whole;

pub(crate) use columns::Columns;
pub(crate) use counted::Counted;
pub(crate) use heterogeneous::HeteroColumns;
pub(crate) use homogeneous::HomoColumns;
pub(crate) use none::NoColumns;
pub(crate) use whole::{OwnOutputs, Purpose, WholeModel, ascending, gather_nodes};
