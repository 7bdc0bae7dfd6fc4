//! Models whose dense layers all come before messages pass (NeutronTP, Ai et al., PVLDB 2024, section
//! 4.1; APPNP, Gasteiger et al., ICLR 2019).
//!
//! A perceptron maps each node's own features to the width of the output. Then `model.propagations`
//! times `H' = (1 - α) P H + α H⁰`, where `H⁰` is the perceptron's output, α is `model.teleport`,
//! and P has one file per weighting: GCN or GAT.

mod gat;
mod gcn;
mod propagation;

use gnarl_common::{Error, Result};
use gnarl_graph::blocks::Block;
use propagation::Propagation;

use super::mlp::Mlp;
use super::model::{Model, no_slices};
use super::slices::Slices;
use super::stack::{Stack, check_input};
use super::stages::{self, Incoming, Linear, Outgoing, Pass, Stages};
use super::teleport::mix;
use super::{ModelConfig, mlp};
use crate::{ParamsBuilder, Tape, Var};

struct Decoupled<P> {
    dense: Stack<Mlp>,
    propagation: P,
    propagations: usize,
    teleport: f32,
    /// Width of the output.
    width: usize,
}

/// Builds the decoupled form of the model that `config` names.
///
/// # Errors
/// A usage error if it has none.
pub(super) fn build(config: &ModelConfig, params: &mut ParamsBuilder) -> Result<Box<dyn Model>> {
    match config.name.as_str() {
        "gcn" => Ok(Box::new(Decoupled::new(config, params, |_| gcn::Gcn))),
        "gat" => Ok(Box::new(Decoupled::new(config, params, |p| gat::Gat::new(config, p)))),
        other => Err(Error::usage(format!("model '{other}' has no decoupled form"))
            .hint("model.decoupled supports gcn and gat, and on heterogeneous graphs rgcn")),
    }
}

impl<P: Propagation> Decoupled<P> {
    fn new(
        config: &ModelConfig,
        params: &mut ParamsBuilder,
        propagation: impl FnOnce(&mut ParamsBuilder) -> P,
    ) -> Self {
        // As in the coupled forms, both drop values of the input.
        let dense = ModelConfig {
            activation: config.activation.or(Some(P::ACTIVATION)),
            input_dropout: config.input_dropout.or(Some(config.dropout)),
            ..config.clone()
        };
        Self {
            dense: mlp::build(&dense, params),
            propagation: propagation(params),
            propagations: config.blocks(),
            teleport: config.teleport,
            width: config.out_dim,
        }
    }

    /// Returns whether `H⁰` is carried along with the previous hop's output.
    fn carries_first(&self) -> bool {
        P::READS_ROWS || self.teleport > 0.0
    }
}

impl<P: Propagation> Model for Decoupled<P> {
    fn name(&self) -> &str {
        P::NAME
    }

    fn num_layers(&self) -> usize {
        self.propagations
    }

    /// The first layer includes the dense ones. All but the last output `H` and, where a later one
    /// needs it, `H⁰` beside it.
    fn layer<'b>(
        &self,
        tape: &mut Tape<'b>,
        index: usize,
        block: &'b Block,
        x: Var,
    ) -> Result<Var> {
        let carries = self.carries_first();
        let (x, first) = if index == 0 {
            let rows = self.dense.rows(tape, block.ids(), x)?;
            (rows, rows)
        } else if carries {
            check_input(P::NAME, tape, index, block, x, 2 * self.width)?;
            let half = |tape: &mut Tape<'b>, at| tape.slice_cols(x, at, self.width);
            (half(tape, 0), half(tape, self.width))
        } else {
            check_input(P::NAME, tape, index, block, x, self.width)?;
            (x, x)
        };
        let weights = self.propagation.weigh(tape, block, first);
        let passed = self.propagation.pass(tape, block, &weights, x);
        let first = tape.head_rows(first, block.num_dst());
        let y = mix(tape, passed, first, self.teleport);
        let last = index + 1 == self.propagations;
        Ok(if carries && !last { tape.concat_cols(&[y, first]) } else { y })
    }

    fn stages(&self, _: bool) -> Option<Box<dyn Stages + '_>> {
        P::LINEAR.map(|operator| {
            let Decoupled { propagations: times, teleport, .. } = *self;
            let pass = Pass::Linear(Linear { operator, times, teleport });
            Box::new(DecoupledStages { model: self, pass }) as _
        })
    }

    fn chunk_stages(&self, sparse: bool) -> Option<Box<dyn Stages + '_>> {
        match self.propagation.with_scores(self.propagations, self.teleport) {
            Some(pass) => Some(Box::new(DecoupledStages { model: self, pass })),
            None => self.stages(sparse),
        }
    }

    /// Two exchanges whatever the number of propagations, and those of
    /// [`Propagation::weigh_sliced`].
    fn forward_sliced<'b>(&self, tape: &mut Tape<'b>, slices: &Slices<'b>, x: Var) -> Result<Var> {
        if let Some(model) = self.stages(tape.is_sparse(x)) {
            return stages::forward(model.as_ref(), tape, slices, x);
        }
        let rows = self.dense.rows(tape, slices.ids, x)?;
        let weights = self.propagation.weigh_sliced(tape, slices, rows);
        let weights = weights.ok_or_else(|| no_slices(P::NAME))??;
        slices.pass(tape, 0, rows, |tape, block, first| {
            (0..self.propagations).fold(first, |x, _| {
                let passed = self.propagation.pass(tape, block, &weights, x);
                if x != first {
                    tape.release(x);
                }
                mix(tape, passed, first, self.teleport)
            })
        })
    }
}

/// Two stages: all dense layers, then all propagations as one pass.
struct DecoupledStages<'m, P> {
    model: &'m Decoupled<P>,
    pass: Pass,
}

impl<P: Propagation> Stages for DecoupledStages<'_, P> {
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
        let sent = match index {
            0 => {
                let own = self.model.dense.rows(tape, ids, rows.passed)?;
                match self.pass {
                    Pass::Propagation(_) => self.model.propagation.scored(tape, own),
                    _ => own,
                }
            }
            _ => rows.passed,
        };
        Ok(Outgoing { sent, kept: None })
    }

    fn pass(&self, _: usize) -> Pass {
        self.pass
    }
}
