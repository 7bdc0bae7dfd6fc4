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
mod head;
mod mlp;

pub use head::{EdgeRows, Head, HeadSizes};

use gnarl_common::{Error, Result};

use crate::ParamsBuilder;
use crate::decoders::DecoderConfig;

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
