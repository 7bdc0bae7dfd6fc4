//! Heads: labels of edges from the embeddings of their endpoints.
//!
//! In: embeddings of heads and of tails, computed by an encoder, and edge features. Out: per edge,
//! a logit of each class, or one number. One file per head:
//!
//! | name | logit c of an edge from h to t |
//! |---|---|
//! | `mlp` | layers over h, t and the edge features, concatenated |
//! | `bilinear` | Σₖ wₖ꜀ (h A)ₖ (t B)ₖ + b꜀, a bilinear form of the rank of the hidden layer (Kim et al., ICLR 2017) |
//! | `distmult` | Σₖ wₖ꜀ hₖ tₖ + b꜀, symmetric in h and t |

mod bilinear;
mod distmult;
mod head;
mod mlp;

pub use head::{EdgeRows, Head, HeadSizes};

use gnarl_common::{Error, Result};

use crate::ParamsBuilder;
use crate::decoders::DecoderConfig;

/// Adds the parameters of the head that `config` describes.
///
/// # Errors
/// A usage error if the name is unknown (the nearest known one is the hint), a value is out of
/// range, or the head does not take edge features.
pub fn add(
    config: &DecoderConfig,
    sizes: HeadSizes,
    params: &mut ParamsBuilder,
) -> Result<Box<dyn Head>> {
    config.check(names())?;
    let name = config.of_labels();
    if sizes.features > 0 && name != "mlp" {
        return Err(Error::usage(format!("decoder '{name}' does not support edge features"))
            .hint("set decoder.name to 'mlp', or leave out task.edge_features"));
    }
    Ok(match name {
        "bilinear" => Box::new(bilinear::Bilinear::new(sizes, config.hidden, params)),
        "distmult" => Box::new(distmult::DistMult::new(sizes, params)),
        _ => Box::new(mlp::Mlp::new(sizes, config.hidden, config.layers, params)),
    })
}

/// The head names that [`add`] accepts.
pub fn names() -> &'static [&'static str] {
    &["mlp", "bilinear", "distmult"]
}

#[cfg(test)]
mod tests;
