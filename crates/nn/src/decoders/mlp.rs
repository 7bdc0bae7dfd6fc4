//! A network with one hidden layer over head and tail.

use super::{Decoder, Side, Similarity};
use crate::kernel::gemm::{Heads, View};
use crate::kernel::precision::Precision;
use crate::kernel::products::{a_b, a_bt, add_at_b};
use crate::{Init, ParamId, Params, ParamsBuilder, Tensor};

/// `w · relu(h A + t B + r + b) + c`: the first layer is a sum over endpoints and relation, so that
/// each entity is mapped once, however many others it is compared with.
pub(super) struct Mlp {
    width: usize,
    hidden: usize,
    relations: usize,
    head: ParamId,
    tail: ParamId,
    relation: ParamId,
    bias: ParamId,
    /// The weights of the second layer, and its bias.
    out: ParamId,
}

impl Mlp {
    pub fn new(width: usize, relations: usize, hidden: usize, params: &mut ParamsBuilder) -> Self {
        Self {
            width,
            hidden,
            relations,
            head: params.add("decoder.head", width, hidden, Init::KaimingUniform),
            tail: params.add("decoder.tail", width, hidden, Init::KaimingUniform),
            relation: params.add("relation", relations, hidden, Init::Zeros),
            bias: params.add("decoder.bias", 1, hidden, Init::Zeros),
            out: params.add(
                "decoder.out",
                1,
                hidden + 1,
                Init::Uniform((hidden as f32).powf(-0.5)),
            ),
        }
    }

    /// The map of the endpoints of a side.
    fn map(&self, side: Side) -> ParamId {
        match side {
            Side::Head => self.head,
            Side::Tail => self.tail,
        }
    }

    fn heads(&self) -> Heads {
        Heads { heads: 1, k: self.width, n: self.hidden }
    }

    fn mapped(&self, params: &Params, map: ParamId, rows: &Tensor) -> Tensor {
        let mut out = Tensor::scratch(rows.rows(), self.hidden);
        let (a, b) =
            (View::rows(rows.data(), self.width), View::rows(params.get(map), self.hidden));
        a_b(Precision::F32, out.data_mut(), self.heads(), a, b, |_| ());
        out
    }

    fn mapped_backward(
        &self,
        params: &Params,
        map: ParamId,
        rows: &Tensor,
        grad: &Tensor,
        grads: &mut [f32],
    ) -> Tensor {
        let (a, g) = (View::rows(rows.data(), self.width), View::rows(grad.data(), self.hidden));
        add_at_b(
            Precision::F32,
            &mut grads[params.spec(map).range()],
            self.heads(),
            rows.rows(),
            a,
            g,
        );
        let mut out = Tensor::scratch(rows.rows(), self.width);
        a_bt(
            Precision::F32,
            out.data_mut(),
            self.heads(),
            g,
            View::rows(params.get(map), self.hidden),
        );
        out
    }
}

impl Decoder for Mlp {
    fn name(&self) -> &'static str {
        "mlp"
    }

    fn width(&self) -> usize {
        self.width
    }

    fn relations(&self) -> Option<usize> {
        Some(self.relations)
    }

    fn similarity<'a>(&self, params: &'a Params) -> Similarity<'a> {
        Similarity::Rectified(params.get(self.out))
    }

    fn compared_by(&self) -> Option<ParamId> {
        Some(self.out)
    }

    fn query(&self, params: &Params, side: Side, given: &Tensor, relations: &[u32]) -> Tensor {
        let mut out = self.mapped(params, self.map(side.other()), given);
        let (table, bias) = (params.get(self.relation), params.get(self.bias));
        for (row, &relation) in out.data_mut().chunks_exact_mut(self.hidden).zip(relations) {
            let relation = &table[relation as usize * self.hidden..][..self.hidden];
            row.iter_mut().zip(relation).zip(bias).for_each(|((v, r), b)| *v += r + b);
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
        let (bias, table) = (params.spec(self.bias).offset, params.spec(self.relation).offset);
        for (row, &relation) in query_grad.data().chunks_exact(self.hidden).zip(relations) {
            for at in [bias, table + relation as usize * self.hidden] {
                let own = &mut grads[at..at + self.hidden];
                own.iter_mut().zip(row).for_each(|(sum, g)| *sum += g);
            }
        }
        self.mapped_backward(params, self.map(side.other()), given, query_grad, grads)
    }

    fn candidate(&self, params: &Params, side: Side, rows: &Tensor) -> Tensor {
        self.mapped(params, self.map(side), rows)
    }

    fn candidate_backward(
        &self,
        params: &Params,
        side: Side,
        rows: &Tensor,
        grad: Tensor,
        grads: &mut [f32],
    ) -> Tensor {
        self.mapped_backward(params, self.map(side), rows, &grad, grads)
    }
}
