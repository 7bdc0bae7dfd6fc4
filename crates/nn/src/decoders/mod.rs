//! Decoders: scores of edges from the embeddings of their endpoints.
//!
//! In: entity embeddings (learned, or computed by a model) and relation ids. Out: one score per
//! triple of head, relation and tail, higher for likelier triples; and explicit gradients of all
//! inputs, with nothing recorded per triple.
//!
//! Every decoder here falls into two halves. A *query* is made of the known entity and the
//! relation; queries are then compared with *candidates* for the other endpoint by a
//! [`Similarity`]. So a batch of triples is scored against a shared set of candidates in one matrix
//! product, in training as in ranking.
//!
//! One file per decoder:
//!
//! | name | score of (h, r, t) | source |
//! |---|---|---|
//! | `dot` | ⟨h, t⟩ | |
//! | `cosine` | ⟨h, t⟩ / (‖h‖ ‖t‖) | |
//! | `distmult` | Σ h r t | Yang et al., ICLR 2015 |
//! | `complex` | Re Σ h r t̄, complex | Trouillon et al., ICML 2016 |
//! | `rotate` | −Σ \|h r − t\|, complex, \|r\| = 1 | Sun et al., ICLR 2019 |
//! | `transe` | −‖h + r − t‖, of degree 1 or 2 | Bordes et al., NIPS 2013 |
//! | `mlp` | w · relu(h A + t B + r + b) + c | |

mod complex;
mod config;
mod cosine;
mod decoder;
mod distmult;
mod dot;
mod links;
mod mlp;
mod ranking;
mod rotate;
mod scores;
mod similarity;
mod top;
mod transe;
mod turn;

#[cfg(test)]
mod tests;

pub use config::DecoderConfig;
pub use decoder::Decoder;
pub use gnarl_graph::triples::Side;
pub use links::{Candidates, LinkBatch, LinkLoss};
pub use ranking::{Beaten, Rank, Ranking};
pub use scores::{Groups, score, score_backward};
pub use similarity::Similarity;
pub use top::{Candidate, TopK};

use gnarl_common::Result;
use gnarl_common::rng::Key;

use crate::{Params, ParamsBuilder};

/// Builds the decoder of `config` for entity embeddings of width `dim` and that many relations, and
/// its parameters initialized from `key`.
///
/// # Errors
/// A usage error if the name is unknown (the nearest known one is the hint) or a value is out of range.
pub fn build(
    config: &DecoderConfig,
    dim: usize,
    relations: usize,
    key: Key,
) -> Result<(Box<dyn Decoder>, Params)> {
    let mut params = ParamsBuilder::new(key);
    let decoder = add(config, dim, relations, &mut params)?;
    Ok((decoder, params.build()))
}

/// As [`build`], beside the parameters of a model.
///
/// # Errors
/// As [`build`].
pub fn add(
    config: &DecoderConfig,
    dim: usize,
    relations: usize,
    params: &mut ParamsBuilder,
) -> Result<Box<dyn Decoder>> {
    config.check(names())?;
    Ok(match config.of_links() {
        "dot" => Box::new(dot::Dot::new(dim)),
        "cosine" => Box::new(cosine::Cosine::new(dim)),
        "distmult" => Box::new(distmult::DistMult::new(dim, relations, params)),
        "complex" => Box::new(complex::ComplEx::new(dim, relations, params)),
        "rotate" => Box::new(rotate::RotatE::new(dim, relations, params)),
        "transe" => Box::new(transe::TransE::new(dim, relations, config.degree, params)),
        _ => Box::new(mlp::Mlp::new(dim, relations, config.hidden, params)),
    })
}

/// The decoder names that [`build`] accepts.
pub fn names() -> &'static [&'static str] {
    &["dot", "cosine", "distmult", "complex", "rotate", "transe", "mlp"]
}
