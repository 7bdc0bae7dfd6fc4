//! ComplEx (Trouillon et al., ICML 2016).

use super::turn::{multiply, multiply_backward, sign};
use super::{Decoder, Side, Similarity};
use crate::{Init, ParamId, Params, ParamsBuilder, Tensor};

/// `Re Σ h r t̄`. An embedding has the real parts of its `dim` numbers first, then the imaginary
/// ones.
pub(super) struct ComplEx {
    dim: usize,
    relations: usize,
    relation: ParamId,
}

impl ComplEx {
    pub fn new(dim: usize, relations: usize, params: &mut ParamsBuilder) -> Self {
        let bound = Init::Uniform((dim as f32).sqrt().recip());
        Self { dim, relations, relation: params.add("relation", relations, 2 * dim, bound) }
    }
}

impl Decoder for ComplEx {
    fn name(&self) -> &'static str {
        "complex"
    }

    fn width(&self) -> usize {
        2 * self.dim
    }

    fn relations(&self) -> Option<usize> {
        Some(self.relations)
    }

    fn similarity<'a>(&self, _: &'a Params) -> Similarity<'a> {
        Similarity::Product
    }

    fn query(&self, params: &Params, side: Side, given: &Tensor, relations: &[u32]) -> Tensor {
        let (width, table) = (2 * self.dim, params.get(self.relation));
        let mut out = Tensor::scratch(given.rows(), width);
        let rows = out.data_mut().chunks_exact_mut(width).zip(given.data().chunks_exact(width));
        for ((out, x), &relation) in rows.zip(relations) {
            multiply(out, x, &table[relation as usize * width..][..width], sign(side));
        }
        out
    }

    fn query_backward(
        &self,
        params: &Params,
        side: Side,
        given: &Tensor,
        relations: &[u32],
        query_grad: &Tensor,
        grads: &mut [f32],
    ) -> Tensor {
        let (width, table) = (2 * self.dim, params.get(self.relation));
        let grads = &mut grads[params.spec(self.relation).range()];
        let mut out = Tensor::scratch(given.rows(), width);
        let inputs = given.data().chunks_exact(width).zip(query_grad.data().chunks_exact(width));
        let rows = out.data_mut().chunks_exact_mut(width).zip(inputs);
        for ((out, (x, g)), &relation) in rows.zip(relations) {
            let own = relation as usize * width..(relation as usize + 1) * width;
            let r = &table[own.clone()];
            multiply_backward((out, &mut grads[own]), (x, r, g), sign(side));
        }
        out
    }

    fn is_complex(&self) -> bool {
        true
    }

    fn relation_rows(&self) -> Option<ParamId> {
        Some(self.relation)
    }
}
