//! Heterogeneous models.
//!
//! In: one [`RelBlock`] per layer, and for each node type its features, or embeddings of
//! [`ModelConfig::input_width`] values where it has none. Features are projected to the same width
//! by a matrix per type, so that all types form one matrix from then on. Out: logits of the last
//! block's destinations.
//!
//! A layer handles all edge types together: see [`RelBlock`]. `hetero` alone goes from type to
//! type, since its layers may be those of any homogeneous model.
//!
//! [`RelBlock`]: crate::RelBlock

mod decoupled;
mod hetero;
mod hetero_attention;
mod hetero_sliced;
mod hgt;
mod hgt_sliced;
mod input;
mod mlp;
mod model;
mod pairs;
mod rgat;
mod rgat_sliced;
mod rgcn;
mod rgcn_sliced;
mod slices;
mod stack;
#[cfg(test)]
mod tests;

pub use model::{HeteroModel, Source, names};
pub use slices::{HeteroSlices, WholeRelations};

use gnarl_common::did_you_mean::unknown;
use gnarl_common::error::{Error, Result};
use gnarl_common::rng::Key;
use gnarl_graph::blocks::Schema;

use super::model::lstm_mixes;
use super::{Aggregator, ModelConfig};
use crate::{Params, ParamsBuilder};

/// Builds the model that `config` describes for heterogeneous graphs of `schema`, with inputs from
/// `sources`, and its parameters initialized from `key`. `config.in_dim` plays no part.
///
/// # Errors
/// A usage error if the name is unknown (the nearest known one is the hint) or a value is outside its
/// range.
pub fn build(
    config: &ModelConfig,
    schema: &Schema,
    sources: &[Source],
    key: Key,
) -> Result<(Box<dyn HeteroModel>, Params)> {
    let mut params = ParamsBuilder::new(key);
    let model = add(config, schema, sources, &mut params)?;
    Ok((model, params.build()))
}

/// As [`build`], beside other parameters.
///
/// # Errors
/// As [`build`].
pub fn add(
    config: &ModelConfig,
    schema: &Schema,
    sources: &[Source],
    params: &mut ParamsBuilder,
) -> Result<Box<dyn HeteroModel>> {
    if !names().contains(&config.name.as_str()) {
        return Err(unknown("heterogeneous model", &config.name, names()).hint(
            "a homogeneous model can serve as the layer of each edge type: set model.name = 'hetero' \
             and model.relation_layer",
        ));
    }
    let config = &ModelConfig { in_dim: config.input_width(), ..config.clone() };
    config.check()?;
    if config.decoupled && config.name != "rgcn" {
        return Err(Error::usage(format!("model '{}' has no decoupled form", config.name))
            .hint("model.decoupled supports rgcn, and on homogeneous graphs gcn and gat"));
    }
    if sources.len() != schema.node_types().len() {
        return Err(Error::usage(format!(
            "found inputs of {} node types, but the schema has another number",
            sources.len()
        )));
    }
    Ok(match config.name.as_str() {
        "hetero" => Box::new(hetero::build(config, schema, sources, params)?),
        "hgt" => Box::new(hgt::build(config, schema, sources, params)?),
        "mlp" => Box::new(mlp::build(config, schema, sources, params)?),
        "rgat" => Box::new(rgat::build(config, schema, sources, params)?),
        _ if config.decoupled => {
            Box::new(decoupled::DecoupledRgcn::new(config, schema, sources, params))
        }
        _ => Box::new(rgcn::build(config, schema, sources, params)?),
    })
}

/// Rejects models without a tensor-parallel form, see [`HeteroModel::forward_sliced`].
///
/// # Errors
/// A usage error with the reason.
pub fn check_columns(config: &ModelConfig) -> Result<()> {
    match (config.name.as_str(), config.relation_layer.as_str(), config.aggregator) {
        (name @ "hetero", "sage", Aggregator::Lstm) => Err(lstm_mixes(name)),
        _ => Ok(()),
    }
}
