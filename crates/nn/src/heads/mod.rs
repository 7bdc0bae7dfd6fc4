//! Heads: labels of edges from the rows of their ends.
//!
//! In: rows of heads and of tails, put out by a model, and features of the edges themselves. Out: a
//! logit of each class, or a number, for each edge. One file for each head:
//!
//! | name | logit c of an edge from h to t |
//! |---|---|
//! | `mlp` | layers over h, t and the edge's features side by side |
//! | `bilinear` | Σₖ wₖ꜀ (h A)ₖ (t B)ₖ + b꜀, a bilinear form of the rank of the hidden layer (Kim et al., ICLR 2017) |
//! | `distmult` | Σₖ wₖ꜀ hₖ tₖ + b꜀, the same whichever end is the head |

mod bilinear;
mod distmult;
mod mlp;

use gnarl_graph::{Error, Result};

use crate::decoders::DecoderConfig;
use crate::{ParamsBuilder, Tape, Var};

/// What is known of some edges, a row for each.
#[derive(Debug, Clone, Copy)]
pub struct EdgeRows {
    /// Rows of their heads.
    pub heads: Var,
    /// Rows of their tails.
    pub tails: Var,
    /// Features of their own.
    pub features: Option<Var>,
}

/// Widths of what a head takes and gives.
#[derive(Debug, Clone, Copy)]
pub struct HeadSizes {
    /// Of the row of an end.
    pub width: usize,
    /// Of the features of an edge; 0 without.
    pub features: usize,
    /// Classes, or 1 for a number.
    pub outputs: usize,
}

/// Turns rows of ends into logits. Parameters live in [`Params`](crate::Params).
pub trait Head: Send + Sync {
    /// The name the configuration uses.
    fn name(&self) -> &'static str;

    /// A row of logits for each edge.
    ///
    /// # Panics
    /// If rows are not as wide as the head was made for.
    fn forward(&self, tape: &mut Tape<'_>, edges: EdgeRows) -> Var;
}

/// Adds the parameters of the head `config` describes.
///
/// # Errors
/// A usage error if the name is unknown (the nearest known one is the hint), a value is out of range, or
/// the head has no use for features of edges.
pub fn add(
    config: &DecoderConfig,
    sizes: HeadSizes,
    params: &mut ParamsBuilder,
) -> Result<Box<dyn Head>> {
    config.check(names())?;
    let name = config.of_labels();
    if sizes.features > 0 && name != "mlp" {
        return Err(Error::usage(format!("decoder '{name}' takes no features of edges"))
            .hint("set decoder.name to 'mlp', or leave out task.edge_features"));
    }
    Ok(match name {
        "bilinear" => Box::new(bilinear::Bilinear::new(sizes, config.hidden, params)),
        "distmult" => Box::new(distmult::DistMult::new(sizes, params)),
        _ => Box::new(mlp::Mlp::new(sizes, config.hidden, config.layers, params)),
    })
}

/// The names [`add`] knows.
pub fn names() -> &'static [&'static str] {
    &["mlp", "bilinear", "distmult"]
}

#[cfg(test)]
mod tests;
