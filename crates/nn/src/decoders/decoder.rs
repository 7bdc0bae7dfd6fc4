//! The trait of decoders.

use super::{Side, Similarity};
use crate::{ParamId, Params, Tensor};

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
    fn compared_by(&self) -> Option<ParamId> {
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
    fn relation_rows(&self) -> Option<ParamId> {
        None
    }
}
