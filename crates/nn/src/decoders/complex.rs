//! ComplEx (Trouillon et al., ICML 2016).

use super::{Decoder, Side, Similarity};
use crate::{Init, ParamId, Params, ParamsBuilder, Tensor};

/// `Re Σ h r t̄`. A row has the real parts of its `dim` numbers, then the imaginary ones.
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

    /// The sign of the relation's imaginary part: as `Re Σ h r t̄ = Re Σ h̄ (r̄ t)`, heads are looked for
    /// with the conjugate of the relation.
    fn sign(side: Side) -> f32 {
        match side {
            Side::Tail => 1.0,
            Side::Head => -1.0,
        }
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
        let (dim, sign, table) = (self.dim, Self::sign(side), params.get(self.relation));
        let mut out = Tensor::scratch(given.rows(), 2 * dim);
        let rows = out.data_mut().chunks_exact_mut(2 * dim).zip(given.data().chunks_exact(2 * dim));
        for ((out, x), &relation) in rows.zip(relations) {
            let r = &table[relation as usize * 2 * dim..][..2 * dim];
            let ((out, out_i), (x, x_i), (r, r_i)) =
                (out.split_at_mut(dim), x.split_at(dim), r.split_at(dim));
            for k in 0..dim {
                out[k] = x[k] * r[k] - sign * x_i[k] * r_i[k];
                out_i[k] = sign * x[k] * r_i[k] + x_i[k] * r[k];
            }
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
        let (dim, sign, table) = (self.dim, Self::sign(side), params.get(self.relation));
        let grads = &mut grads[params.spec(self.relation).range()];
        let mut out = Tensor::scratch(given.rows(), 2 * dim);
        let inputs =
            given.data().chunks_exact(2 * dim).zip(query_grad.data().chunks_exact(2 * dim));
        let rows = out.data_mut().chunks_exact_mut(2 * dim).zip(inputs);
        for ((out, (x, g)), &relation) in rows.zip(relations) {
            let range = relation as usize * 2 * dim..(relation as usize + 1) * 2 * dim;
            let ((out, out_i), (x, x_i), (g, g_i), (r, r_i), (d, d_i)) = (
                out.split_at_mut(dim),
                x.split_at(dim),
                g.split_at(dim),
                table[range.clone()].split_at(dim),
                grads[range].split_at_mut(dim),
            );
            for k in 0..dim {
                out[k] = g[k] * r[k] + sign * g_i[k] * r_i[k];
                out_i[k] = g_i[k] * r[k] - sign * g[k] * r_i[k];
                d[k] += g[k] * x[k] + g_i[k] * x_i[k];
                d_i[k] += sign * (g_i[k] * x[k] - g[k] * x_i[k]);
            }
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
