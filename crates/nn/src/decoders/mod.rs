//! Decoders: scores of edges from the rows of their ends.
//!
//! In: rows of entities (learnt, or put out by a model) and numbers of relations. Out: one score for
//! each triple of head, relation and tail, higher for those more likely; and gradients of all that went
//! in, explicit, with nothing recorded for each triple.
//!
//! Every decoder here falls into two halves. A *query* is made of the known end and the relation; then
//! queries are compared with *candidates* for the other end by a [`Similarity`]. So a batch of triples
//! meets a set of candidates that it shares in one product of matrices, in training as in ranking.
//!
//! One file for each decoder:
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
mod transe;
mod turn;

#[cfg(test)]
mod tests;

pub use config::DecoderConfig;
pub use decoder::Decoder;
pub use gnarl_graph::triples::Side;
pub use links::{Candidates, LinkBatch, LinkLoss};
pub use ranking::{Rank, Ranker};
pub use scores::{Groups, score, score_backward};
pub use similarity::Similarity;

use gnarl_common::Result;
use gnarl_common::rng::Key;

use crate::{Params, ParamsBuilder};

/// Builds the decoder `config` describes for rows of `dim` numbers and that many relations, and its
/// parameters filled from `key`.
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

/// The names [`build`] knows.
pub fn names() -> &'static [&'static str] {
    &["dot", "cosine", "distmult", "complex", "rotate", "transe", "mlp"]
}
