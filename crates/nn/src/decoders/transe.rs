//! TransE (Bordes et al., NIPS 2013).

use super::{Decoder, Side, Similarity};
use crate::{Init, ParamId, Params, ParamsBuilder, Tensor};

/// `−‖h + r − t‖` of degree 1 or 2.
pub(super) struct TransE {
    width: usize,
    relations: usize,
    degree: usize,
    relation: ParamId,
}

impl TransE {
    pub fn new(width: usize, relations: usize, degree: usize, params: &mut ParamsBuilder) -> Self {
        let bound = Init::Uniform((width as f32).sqrt().recip());
        let relation = params.add("relation", relations, width, bound);
        Self { width, relations, degree, relation }
    }

    /// Tails are looked for at `h + r`, heads at `t − r`.
    fn sign(side: Side) -> f32 {
        match side {
            Side::Tail => 1.0,
            Side::Head => -1.0,
        }
    }
}

impl Decoder for TransE {
    fn name(&self) -> &'static str {
        "transe"
    }

    fn width(&self) -> usize {
        self.width
    }

    fn relations(&self) -> Option<usize> {
        Some(self.relations)
    }

    fn similarity<'a>(&self, _: &'a Params) -> Similarity<'a> {
        if self.degree == 1 { Similarity::Manhattan } else { Similarity::Euclidean }
    }

    fn query(&self, params: &Params, side: Side, given: &Tensor, relations: &[u32]) -> Tensor {
        let mut out = given.clone();
        let width = self.width;
        let table = params.get(self.relation);
        for (row, &relation) in out.data_mut().chunks_exact_mut(width).zip(relations) {
            let relation = &table[relation as usize * width..][..width];
            row.iter_mut().zip(relation).for_each(|(v, r)| *v += Self::sign(side) * r);
        }
        out
    }

    fn query_backward(
        &self,
        params: &Params,
        side: Side,
        _: &Tensor,
        relations: &[u32],
        query_grad: &Tensor,
        grads: &mut [f32],
    ) -> Tensor {
        let grads = &mut grads[params.spec(self.relation).range()];
        for (row, &relation) in query_grad.data().chunks_exact(self.width).zip(relations) {
            let own = &mut grads[relation as usize * self.width..][..self.width];
            own.iter_mut().zip(row).for_each(|(sum, g)| *sum += Self::sign(side) * g);
        }
        query_grad.clone()
    }

    fn relation_rows(&self) -> Option<ParamId> {
        Some(self.relation)
    }
}
