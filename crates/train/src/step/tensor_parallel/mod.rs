//! `tensor`: the whole graph in each step, on ranks that share out columns (NeutronTP, Ai et al.,
//! PVLDB 2024, section 3).
//!
//! Every rank has the structure of the whole graph, and the features of an even share of the nodes. Dense
//! layers run over own rows; messages pass over own columns of all rows, which takes two exchanges a
//! layer, [`Columns::split`] and [`Columns::gather`]. All ranks together compute what one would.
//!
//! [`Columns::split`]: gnarl_nn::Exchange::split
//! [`Columns::gather`]: gnarl_nn::Exchange::gather

mod columns;
mod counted;
mod none;
mod plain;
mod typed;
mod whole;

pub(crate) use columns::Columns;
pub(crate) use counted::Counted;
pub(crate) use none::NoColumns;
pub(crate) use plain::PlainColumns;
pub(crate) use typed::TypedColumns;
pub(crate) use whole::{WholeModel, ascending, gather_nodes};

use gnarl_graph::{Error, Result};

use crate::config::{Method, RunConfig, Strategy};

/// The run file as tasks read it: with `tensor` nodes hear all their neighbours.
///
/// # Errors
/// [`gnarl_graph::Kind::Usage`] if it asks for fewer.
pub(crate) fn all_neighbors(config: &RunConfig) -> Result<RunConfig> {
    let mut config = config.clone();
    if config.train.strategy != Strategy::Tensor {
        return Ok(config);
    }
    if !config.sample.edge_fanouts.is_empty() || !config.sample.meta_path.is_empty() {
        return Err(Error::usage(
            "train.strategy = 'tensor' takes all neighbours over all edge types",
        )
        .hint("leave out sample.edge_fanouts and sample.meta_path"));
    }
    if config.tensor.memory.is_some() || config.tensor.chunks > 0 {
        return Err(Error::usage(
            "tensor.memory and tensor.chunks are for node classification without types",
        )
        .hint("leave them out, or train with sampled neighbours: train.strategy = 'gradient'"));
    }
    config.sample.method = Method::Full;
    Ok(config)
}
