//! `tensor`: the whole graph in each step, on ranks that share out columns (NeutronTP, Ai et al.,
//! PVLDB 2024, section 3).
//!
//! Every rank has the structure of the whole graph, and the features of an even share of the nodes. Dense
//! layers run over own rows; messages pass over own columns of all rows, which takes two exchanges a
//! layer, [`Columns::split`] and [`Columns::gather`]. All ranks together compute what one would.
//!
//! [`Columns::split`]: gnarl_nn::Exchange::split
//! [`Columns::gather`]: gnarl_nn::Exchange::gather

mod chunks;
mod columns;
mod learner;
mod share;
mod train;

pub(crate) use train::train;
