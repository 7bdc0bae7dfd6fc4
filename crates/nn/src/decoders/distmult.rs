//! DistMult (Yang et al., ICLR 2015).

use super::{Decoder, Side, Similarity};
use crate::{Init, ParamId, Params, ParamsBuilder, Tensor};

/// `Σ h r t`, which is symmetric in h and t.
pub(super) struct DistMult {
    width: usize,
    relations: usize,
    relation: ParamId,
}

impl DistMult {
    pub fn new(width: usize, relations: usize, params: &mut ParamsBuilder) -> Self {
        let bound = Init::Uniform((width as f32).sqrt().recip());
        let relation = params.add("relation", relations, width, bound);
        Self { width, relations, relation }
    }
}

impl Decoder for DistMult {
    fn name(&self) -> &'static str {
        "distmult"
    }

    fn width(&self) -> usize {
        self.width
    }

    fn relations(&self) -> Option<usize> {
        Some(self.relations)
    }

    fn similarity<'a>(&self, _: &'a Params) -> Similarity<'a> {
        Similarity::Product
    }

    fn query(&self, params: &Params, _: Side, given: &Tensor, relations: &[u32]) -> Tensor {
        let mut out = given.clone();
        let width = self.width;
        let table = params.get(self.relation);
        for (row, &relation) in out.data_mut().chunks_exact_mut(width).zip(relations) {
            let relation = &table[relation as usize * width..][..width];
            row.iter_mut().zip(relation).for_each(|(v, r)| *v *= r);
        }
        out
    }

    fn query_backward(
        &self,
        params: &Params,
        _: Side,
        given: &Tensor,
        relations: &[u32],
        query_grad: &Tensor,
        grads: &mut [f32],
    ) -> Tensor {
        let mut out = query_grad.clone();
        let width = self.width;
        let table = params.get(self.relation);
        let grads = &mut grads[params.spec(self.relation).range()];
        let rows = out.data_mut().chunks_exact_mut(width).zip(given.data().chunks_exact(width));
        for ((out, given), &relation) in rows.zip(relations) {
            let at = relation as usize * width;
            let own = table[at..at + width].iter().zip(&mut grads[at..at + width]);
            for ((out, x), (r, grad)) in out.iter_mut().zip(given).zip(own) {
                *grad += *out * x;
                *out *= r;
            }
        }
        out
    }

    fn relation_rows(&self) -> Option<ParamId> {
        Some(self.relation)
    }
}
