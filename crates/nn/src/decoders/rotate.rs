//! RotatE (Sun et al., ICLR 2019).

use super::{Decoder, Side, Similarity};
use crate::{Init, ParamId, Params, ParamsBuilder, Tensor};

/// `−Σ |h r − t|` with `r = e^{iθ}`. A row has the real parts of its `dim` numbers, then the imaginary
/// ones; a relation has `dim` angles.
pub(super) struct RotatE {
    dim: usize,
    relations: usize,
    angle: ParamId,
}

impl RotatE {
    pub fn new(dim: usize, relations: usize, params: &mut ParamsBuilder) -> Self {
        let all = Init::Uniform(std::f32::consts::PI);
        Self { dim, relations, angle: params.add("relation.angle", relations, dim, all) }
    }

    /// As rotations keep moduli, `|h r − t| = |h − r̄ t|`: heads are looked for by turning back.
    fn sign(side: Side) -> f32 {
        match side {
            Side::Tail => 1.0,
            Side::Head => -1.0,
        }
    }

    /// Cosines and sines of the angles of those relations that are there.
    fn turns(&self, params: &Params, relations: &[u32]) -> Vec<Option<Vec<[f32; 2]>>> {
        let mut turns = vec![None; self.relations];
        for &relation in relations {
            let angles = &params.get(self.angle)[relation as usize * self.dim..][..self.dim];
            turns[relation as usize]
                .get_or_insert_with(|| angles.iter().map(|a| [a.cos(), a.sin()]).collect());
        }
        turns
    }
}

impl Decoder for RotatE {
    fn name(&self) -> &'static str {
        "rotate"
    }

    fn width(&self) -> usize {
        2 * self.dim
    }

    fn relations(&self) -> Option<usize> {
        Some(self.relations)
    }

    fn similarity<'a>(&self, _: &'a Params) -> Similarity<'a> {
        Similarity::Moduli
    }

    fn query(&self, params: &Params, side: Side, given: &Tensor, relations: &[u32]) -> Tensor {
        let (dim, sign, turns) = (self.dim, Self::sign(side), self.turns(params, relations));
        let mut out = Tensor::scratch(given.rows(), 2 * dim);
        let rows = out.data_mut().chunks_exact_mut(2 * dim).zip(given.data().chunks_exact(2 * dim));
        for ((out, x), &relation) in rows.zip(relations) {
            let turns = turns[relation as usize].iter().flatten();
            let ((out, out_i), (x, x_i)) = (out.split_at_mut(dim), x.split_at(dim));
            for (k, &[cos, sin]) in turns.enumerate() {
                out[k] = x[k] * cos - sign * x_i[k] * sin;
                out_i[k] = sign * x[k] * sin + x_i[k] * cos;
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
        let (dim, sign, turns) = (self.dim, Self::sign(side), self.turns(params, relations));
        let grads = &mut grads[params.spec(self.angle).range()];
        let mut out = Tensor::scratch(given.rows(), 2 * dim);
        let inputs =
            given.data().chunks_exact(2 * dim).zip(query_grad.data().chunks_exact(2 * dim));
        let rows = out.data_mut().chunks_exact_mut(2 * dim).zip(inputs);
        for ((out, (x, g)), &relation) in rows.zip(relations) {
            let angle_grads = &mut grads[relation as usize * dim..][..dim];
            let turns = turns[relation as usize].iter().flatten();
            let ((out, out_i), (x, x_i), (g, g_i)) =
                (out.split_at_mut(dim), x.split_at(dim), g.split_at(dim));
            for (k, &[cos, sin]) in turns.enumerate() {
                out[k] = g[k] * cos + sign * g_i[k] * sin;
                out_i[k] = g_i[k] * cos - sign * g[k] * sin;
                // The derivative of a turned number by the angle is that number turned by 90°.
                let (turned, turned_i) =
                    (x[k] * cos - sign * x_i[k] * sin, sign * x[k] * sin + x_i[k] * cos);
                angle_grads[k] += sign * (g_i[k] * turned - g[k] * turned_i);
            }
        }
        out
    }

    fn is_complex(&self) -> bool {
        true
    }
}
