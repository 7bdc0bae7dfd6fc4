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
pub use gnarl_sample::negatives::Side;
pub use links::{Candidates, LinkBatch, LinkLoss};
pub use ranking::{Rank, Ranker};
pub use scores::{Groups, score, score_backward};
pub use similarity::Similarity;

use gnarl_graph::Result;
use gnarl_graph::rng::Key;

use crate::{Params, ParamsBuilder, Tensor};

/// Scores triples. Parameters, such as rows of relations, live in [`Params`].
///
/// A score is `similarity(query(known end, relation), candidate(other end))`, the same from either side.
pub trait Decoder: Send + Sync {
    /// The name the configuration uses.
    fn name(&self) -> &'static str;

    /// Values in the row of an entity.
    fn width(&self) -> usize;

    /// Relations it has parameters for; none if it does not tell them apart.
    fn relations(&self) -> Option<usize>;

    /// How queries are compared with candidates.
    fn similarity<'a>(&self, params: &'a Params) -> Similarity<'a>;

    /// The parameter that the similarity reads, if it has one.
    fn compared_by(&self) -> Option<crate::ParamId> {
        None
    }

    /// Queries for the ends of `side`: row `i` from the known end `given[i]` and `relations[i]`.
    fn query(&self, params: &Params, side: Side, given: &Tensor, relations: &[u32]) -> Tensor;

    /// Sends the gradient of [`Decoder::query`] on: adds that of parameters to `grads`, laid out like
    /// [`Params::flat`], and returns that of `given`.
    fn query_backward(
        &self,
        params: &Params,
        side: Side,
        given: &Tensor,
        relations: &[u32],
        query_grad: &Tensor,
        grads: &mut [f32],
    ) -> Tensor;

    /// Candidates for the ends of `side`, from their rows.
    fn candidate(&self, _params: &Params, _side: Side, rows: &Tensor) -> Tensor {
        rows.clone()
    }

    /// Sends the gradient of [`Decoder::candidate`] on, as [`Decoder::query_backward`].
    fn candidate_backward(
        &self,
        _params: &Params,
        _side: Side,
        _rows: &Tensor,
        grad: Tensor,
        _grads: &mut [f32],
    ) -> Tensor {
        grad
    }

    /// Whether the numbers of rows are complex: real parts first, then the imaginary ones.
    fn is_complex(&self) -> bool {
        false
    }

    /// The parameter with a row of the width of entities for each relation, if there is one.
    fn relation_rows(&self) -> Option<crate::ParamId> {
        None
    }
}

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
