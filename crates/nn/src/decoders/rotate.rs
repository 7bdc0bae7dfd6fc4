//! RotatE (Sun et al., ICLR 2019).

use super::turn::{multiply, multiply_backward, sign};
use super::{Decoder, Side, Similarity};
use crate::{Init, ParamId, Params, ParamsBuilder, Tensor};

/// `−Σ |h r − t|` with `r = e^{iθ}`. An embedding has the real parts of its `dim` numbers first,
/// then the imaginary ones; a relation has `dim` angles.
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

    /// Cosines, then sines, of the angles of the relations present; empty for the others.
    fn turns(&self, params: &Params, relations: &[u32]) -> Vec<Vec<f32>> {
        let mut turns = vec![Vec::new(); self.relations];
        for &relation in relations {
            let turn = &mut turns[relation as usize];
            if turn.is_empty() {
                let angles = &params.get(self.angle)[relation as usize * self.dim..][..self.dim];
                turn.extend(angles.iter().map(|angle| angle.cos()));
                turn.extend(angles.iter().map(|angle| angle.sin()));
            }
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
        let (width, turns) = (2 * self.dim, self.turns(params, relations));
        let mut out = Tensor::scratch(given.rows(), width);
        let rows = out.data_mut().chunks_exact_mut(width).zip(given.data().chunks_exact(width));
        for ((out, x), &relation) in rows.zip(relations) {
            multiply(out, x, &turns[relation as usize], sign(side));
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
        let dim = self.dim;
        let width = 2 * self.dim;
        let turns = self.turns(params, relations);
        let mut to_turns: Vec<Vec<f32>> = turns.iter().map(|turn| vec![0.0; turn.len()]).collect();
        let mut out = Tensor::scratch(given.rows(), width);
        let inputs = given.data().chunks_exact(width).zip(query_grad.data().chunks_exact(width));
        let rows = out.data_mut().chunks_exact_mut(width).zip(inputs);
        for ((out, (x, g)), &relation) in rows.zip(relations) {
            let (turn, to_turn) = (&turns[relation as usize], &mut to_turns[relation as usize]);
            multiply_backward((out, to_turn), (x, turn, g), sign(side));
        }
        let grads = &mut grads[params.spec(self.angle).range()];
        let met = turns.iter().zip(&to_turns).zip(grads.chunks_exact_mut(dim));
        for ((turn, to_turn), own) in met.filter(|((turn, _), _)| !turn.is_empty()) {
            let ((cos, sin), (to_cos, to_sin)) = (turn.split_at(dim), to_turn.split_at(dim));
            for k in 0..dim {
                own[k] += to_sin[k] * cos[k] - to_cos[k] * sin[k];
            }
        }
        out
    }

    fn is_complex(&self) -> bool {
        true
    }
}
