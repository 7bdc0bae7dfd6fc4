//! SGC (Wu et al., ICML 2019).

use gnarl_common::error::Result;
use gnarl_graph::blocks::Block;

use super::stack::{check_input, check_rows};
use super::stages::{Incoming, Linear, Outgoing, Pass, Stages};
use super::{Model, ModelConfig};
use crate::ops::pass::Operator;
use crate::{Activation, Init, ParamId, ParamsBuilder, Tape, Var};

/// `S^K X W + b`, eq. 8: as many propagations as layers and one linear map. The map is applied
/// before the first propagation if it narrows the rows, after the last one otherwise; the result
/// is the same. Has no dropout.
pub(super) struct Sgc {
    config: ModelConfig,
    weight: ParamId,
    bias: ParamId,
}

impl Sgc {
    pub(super) fn new(config: &ModelConfig, params: &mut ParamsBuilder) -> Self {
        let (input, output) = (config.in_dim, config.out_dim);
        let weight = params.add("weight", input, output, Init::XavierUniform);
        let bias = params.add("bias", 1, output, Init::Zeros);
        Self { config: config.clone(), weight, bias }
    }
}

impl Model for Sgc {
    fn name(&self) -> &str {
        "sgc"
    }

    fn num_layers(&self) -> usize {
        self.config.layers
    }

    fn layer<'b>(
        &self,
        tape: &mut Tape<'b>,
        index: usize,
        block: &'b Block,
        x: Var,
    ) -> Result<Var> {
        let (input, output) = (self.config.in_dim, self.config.out_dim);
        let narrow_first = input > output;
        let width = if narrow_first && index > 0 { output } else { input };
        check_input("sgc", tape, index, block, x, width)?;
        let mut x = x;
        if narrow_first && index == 0 {
            x = tape.linear(x, self.weight, None, Activation::None);
        } else if tape.is_sparse(x) {
            x = tape.densify(x);
        }
        let mixed = tape.gcn_norm(block, x);
        if index + 1 < self.config.layers {
            Ok(mixed)
        } else if narrow_first {
            let bias = tape.param(self.bias);
            Ok(tape.add_row(mixed, bias))
        } else {
            Ok(tape.linear(mixed, self.weight, Some(self.bias), Activation::None))
        }
    }

    fn stages(&self, sparse: bool) -> Option<Box<dyn Stages + '_>> {
        Some(Box::new(SgcStages { model: self, sparse }))
    }
}

/// One pass, before the linear map or after it.
struct SgcStages<'m> {
    model: &'m Sgc,
    sparse: bool,
}

impl Stages for SgcStages<'_> {
    fn passes(&self) -> usize {
        1
    }

    fn stage<'b>(
        &self,
        tape: &mut Tape<'b>,
        index: usize,
        ids: &'b [u64],
        rows: Incoming,
    ) -> Result<Outgoing> {
        let Sgc { config, weight, bias } = self.model;
        let narrow = self.sparse || config.out_dim < config.in_dim;
        let x = rows.passed;
        if index == 0 {
            check_rows("sgc", tape, 0, ids.len(), x, config.in_dim)?;
        }
        let sent = match (index, narrow) {
            (0, true) => tape.linear(x, *weight, None, Activation::None),
            (0, false) => x,
            (_, true) => {
                let bias = tape.param(*bias);
                tape.add_row_last(x, bias)
            }
            (_, false) => tape.linear(x, *weight, Some(*bias), Activation::None),
        };
        Ok(Outgoing { sent, kept: None })
    }

    fn pass(&self, _: usize) -> Pass {
        let times = self.model.config.layers;
        Pass::Linear(Linear { operator: Operator::Gcn, times, teleport: 0.0 })
    }
}
