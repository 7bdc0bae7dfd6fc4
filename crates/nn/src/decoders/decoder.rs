//! The trait of decoders.

use super::{Side, Similarity};
use crate::{ParamId, Params, Tensor};

/// A decoder scores triples. Parameters, such as relation embeddings, live in [`Params`].
///
/// A score is `similarity(query(known entity, relation), candidate(other entity))`, equal whichever
/// endpoint is the known one.
pub trait Decoder: Send + Sync {
    /// The name the configuration uses.
    fn name(&self) -> &'static str;

    /// Width of an entity embedding.
    fn width(&self) -> usize;

    /// Number of relations with parameters of their own; none if the decoder ignores relations.
    fn relations(&self) -> Option<usize>;

    /// The similarity between queries and candidates.
    fn similarity<'a>(&self, params: &'a Params) -> Similarity<'a>;

    /// The parameter of the similarity, if it has one.
    fn compared_by(&self) -> Option<ParamId> {
        None
    }

    /// Queries for endpoints of `side`: row `i` from the known entity `given[i]` and
    /// `relations[i]`.
    fn query(&self, params: &Params, side: Side, given: &Tensor, relations: &[u32]) -> Tensor;

    /// The backward pass of [`Decoder::query`]: adds the gradient of parameters to `grads`, laid
    /// out like [`Params::flat`], and returns that of `given`.
    fn query_backward(
        &self,
        params: &Params,
        side: Side,
        given: &Tensor,
        relations: &[u32],
        query_grad: &Tensor,
        grads: &mut [f32],
    ) -> Tensor;

    /// Candidates for endpoints of `side`, from their embeddings.
    fn candidate(&self, _params: &Params, _side: Side, rows: &Tensor) -> Tensor {
        rows.clone()
    }

    /// The backward pass of [`Decoder::candidate`], as [`Decoder::query_backward`].
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

    /// Returns whether embeddings are complex: real parts first, then the imaginary ones.
    fn is_complex(&self) -> bool {
        false
    }

    /// The parameter with one embedding per relation, as wide as those of entities, if there is
    /// one.
    fn relation_rows(&self) -> Option<ParamId> {
        None
    }
}
