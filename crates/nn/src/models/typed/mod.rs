//! Models of graphs with types of nodes and edges.
//!
//! In: one [`RelBlock`] a layer, and for each node type its rows: features, or learnt rows of
//! [`ModelConfig::hidden`] values where it has none. Features are mapped to `hidden` values by a
//! matrix of their type, so that rows of all types are one matrix from then on. Out: logits of the
//! last block's destinations.
//!
//! A layer handles all edge types together: see [`RelBlock`]. `hetero` alone goes from type to type,
//! as its layers may be any.

mod decoupled;
mod hetero;
mod hgt;
mod input;
mod mlp;
mod rgat;
mod rgcn;
mod rgcn_sliced;
mod slices;
mod stack;
#[cfg(test)]
mod tests;

pub use slices::{TypedSlices, WholeRelations};

use gnarl_graph::error::{Error, Result};
use gnarl_graph::names::unknown;
use gnarl_graph::rng::Key;
use gnarl_sample::Schema;

use super::ModelConfig;
use crate::{Params, ParamsBuilder, RelBlock, Span, Tape, Var};

/// Where the rows of a node type come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Features of this many values.
    Features(usize),
    /// Learnt rows of `hidden` values.
    Learnt,
}

/// A stack of message-passing layers over graphs with types. Parameters live in [`Params`], not in
/// the model.
pub trait TypedModel: Send + Sync {
    /// The name the configuration uses.
    fn name(&self) -> &str;

    /// Number of layers, one block each.
    fn num_layers(&self) -> usize;

    /// Makes one matrix of `hidden` columns from the rows of each node type, in the order of `spans`
    /// ([`RelBlock::sources`] of the first block).
    ///
    /// # Errors
    /// A usage error if a type's rows are missing or have another shape than model and spans ask for.
    fn input<'b>(
        &self,
        tape: &mut Tape<'b>,
        spans: &'b [Span],
        rows: &[Option<Var>],
    ) -> Result<Var>;

    /// Applies layer `index`: `x` has `block.num_src()` rows, the result `block.num_dst()`. The last
    /// layer yields logits.
    ///
    /// # Errors
    /// A usage error if `x` has another shape than layer and block ask for.
    fn layer<'b>(
        &self,
        tape: &mut Tape<'b>,
        index: usize,
        block: &'b RelBlock,
        x: Var,
    ) -> Result<Var>;

    /// Applies all layers, one block each, to the rows of each node type.
    ///
    /// # Errors
    /// A usage error if there is not one block a layer, or shapes disagree.
    fn forward<'b>(
        &self,
        tape: &mut Tape<'b>,
        blocks: &'b [RelBlock],
        rows: &[Option<Var>],
    ) -> Result<Var> {
        if blocks.len() != self.num_layers() {
            let (found, layers, name) = (blocks.len(), self.num_layers(), self.name());
            return Err(Error::usage(format!("{found} blocks for the {layers} layers of {name}"))
                .hint("sample one hop a layer: as many fan-outs as model.layers"));
        }
        let mut x = self.input(tape, blocks[0].sources(), rows)?;
        for (index, block) in blocks.iter().enumerate() {
            x = self.layer(tape, index, block, x)?;
        }
        Ok(x)
    }

    /// Applies all layers to the rows of this rank's own nodes, as one of several ranks; the result has a
    /// row for each. All ranks together compute what [`TypedModel::forward`] does with the whole graph in
    /// every layer.
    ///
    /// # Errors
    /// As [`TypedModel::forward`], if a rank fails, or if the model has no such form.
    fn forward_sliced<'b>(
        &self,
        _tape: &mut Tape<'b>,
        _slices: &TypedSlices<'b>,
        _rows: &[Option<Var>],
    ) -> Result<Var> {
        Err(no_columns(self.name()))
    }

    /// Builds what [`TypedModel::forward_sliced`] and its backward pass need of `graph`, so that the compute
    /// stage finds it ready.
    fn prepare_sliced(&self, _graph: &WholeRelations) {}
}

fn no_columns(model: &str) -> Error {
    Error::usage(format!("{model} does not train by columns on graphs with types"))
        .hint("train.strategy = 'tensor' knows rgcn and mlp there; 'gradient' knows all models")
}

/// Builds the model `config` describes for graphs with the types of `schema`, whose rows come from
/// `sources`, and its parameters filled from `key`. `config.in_dim` plays no part.
///
/// # Errors
/// A usage error if the name is unknown (the nearest known one is the hint) or a value is outside its
/// range.
pub fn build(
    config: &ModelConfig,
    schema: &Schema,
    sources: &[Source],
    key: Key,
) -> Result<(Box<dyn TypedModel>, Params)> {
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
) -> Result<Box<dyn TypedModel>> {
    if !names().contains(&config.name.as_str()) {
        return Err(unknown("typed model", &config.name, names()).hint(
            "a model without types serves as the layer of each edge type: model.name = 'hetero' \
             and model.relation_layer",
        ));
    }
    let config = &ModelConfig { in_dim: config.hidden, ..config.clone() };
    config.check()?;
    if config.decoupled && config.name != "rgcn" {
        return Err(Error::usage(format!("{} has no decoupled form", config.name))
            .hint("model.decoupled knows rgcn, and without types gcn and gat"));
    }
    if sources.len() != schema.node_types().len() {
        return Err(Error::usage(format!("rows of {} node types", sources.len())));
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

/// The names [`build`] knows.
pub fn names() -> &'static [&'static str] {
    &["hetero", "hgt", "mlp", "rgat", "rgcn"]
}
