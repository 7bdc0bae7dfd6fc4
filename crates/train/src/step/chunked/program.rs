//! A model's step over chunks: stages over row blocks, passes over column blocks. Where memory is
//! limited, the backward pass recomputes the activations of a stage from its inputs, so that
//! only the rows between stages are saved (NeutronTP, section 4.2.1).

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use gnarl_common::{Error, Result};
use gnarl_graph::blocks::Block;
use gnarl_nn::models::Stages;
use gnarl_nn::models::stages::{Incoming, Outgoing};
use gnarl_nn::{Mode, Params, Tape, Tensor, Var};
use gnarl_store::FeatureStore;

use super::layout::{Columns, Layout, Scores};
use super::matrix::{Matrix, Place};
use super::messages::Messages;
use super::passes::{self, ColumnPass, Direction, Random};
use super::saved::{Activations, Next, Saved};
use super::schedule::{Schedule, own_rows};
use super::wire::Wire;
use crate::data::batch::gather;

/// A model on a graph, with its chunk layout.
pub(super) struct Program<'a> {
    model: &'a dyn Stages,
    block: &'a Block,
    features: &'a dyn FeatureStore,
    layout: Layout,
    place: &'a Place,
    passes: Vec<Box<dyn ColumnPass + 'a>>,
    /// True if memory is limited.
    frugal: bool,
    /// Inputs of the second stage, where they are the same in every step.
    first: OnceLock<Saved>,
}

/// Parameters, and the mode of a step's tapes.
#[derive(Clone, Copy)]
pub(super) struct Step<'p> {
    pub params: &'p Params,
    pub mode: Mode,
}

/// A stage as computed on a row block.
struct Ran<'t> {
    tape: Tape<'t>,
    incoming: Incoming,
    made: Outgoing,
}

/// The saved activations of a forward pass.
struct Trace<'t> {
    /// Inputs of each stage.
    saved: Vec<Saved>,
    /// The rows that were sent in each pass, where its backward pass reads them.
    sent: Vec<Option<Wire>>,
    /// Stages whose tapes were kept, by their number and the block's rows.
    ran: HashMap<(usize, Range<usize>), Ran<'t>>,
    /// Columns of the last aggregate.
    wire: Option<Wire>,
}

/// A row block of a stage, with the stage's inputs.
struct Piece<'p> {
    index: usize,
    rows: Range<usize>,
    passed: Option<&'p Matrix>,
    saved: &'p Saved,
}

/// A consumer of the last stage's logits of a row block, which may return their gradient.
type End<'e> = dyn FnMut(&mut Tape<'_>, &Piece<'_>, Incoming, Var) -> Result<Option<Tensor>> + 'e;

/// The loss of a row block's logits, of the nodes in a range.
pub(super) type Loss<'l> = dyn FnMut(&mut Tape<'_>, &Range<usize>, Var) -> Var + 'l;

impl<'a> Program<'a> {
    /// `model` on `block`.
    pub fn new(
        model: &'a dyn Stages,
        block: &'a Block,
        features: &'a dyn FeatureStore,
        layout: Layout,
        place: &'a Place,
        frugal: bool,
    ) -> Self {
        let passes = passes::of(model, block);
        let first = OnceLock::new();
        Self { model, block, features, layout, place, passes, frugal, first }
    }

    /// Total number of propagations.
    pub fn propagations(&self) -> usize {
        self.passes.iter().map(|pass| pass.propagations()).sum()
    }

    /// Adds the gradient of the sum of `loss` over all row_blocks to `grads`.
    ///
    /// # Errors
    /// Those of files and of other ranks.
    pub fn train(
        &self,
        step: Step<'_>,
        schedule: &mut Schedule<'_>,
        grads: &mut [f32],
        loss: &mut Loss<'_>,
    ) -> Result<()> {
        let mut to_kept = None;
        let trace = self.forward(step, schedule, &mut |tape, row_block, incoming, logits| {
            let loss = loss(tape, &row_block.rows, logits);
            tape.release(logits);
            tape.backward(loss, grads)?;
            self.to_incoming(tape, row_block, incoming, &mut to_kept)
        })?;
        self.backward(step, schedule, trace, to_kept, grads)
    }

    /// Calls `visit` with the logits of the nodes of each row_block, in order.
    ///
    /// # Errors
    /// Those of files and of other ranks.
    pub fn evaluate(
        &self,
        params: &Params,
        schedule: &mut Schedule<'_>,
        visit: &mut dyn FnMut(&Range<usize>, &Tensor),
    ) -> Result<()> {
        let step = Step { params, mode: Mode::Eval };
        let done = self.forward(step, schedule, &mut |tape, row_block, _, logits| {
            visit(&row_block.rows, tape.value(logits));
            Ok(None)
        });
        done.map(drop)
    }

    /// All stages and passes; `end` consumes the logits.
    fn forward<'t>(
        &'t self,
        step: Step<'t>,
        schedule: &mut Schedule<'_>,
        end: &mut End<'_>,
    ) -> Result<Trace<'t>> {
        let training = matches!(step.mode, Mode::Train { .. });
        let mut saved = vec![Saved::input()];
        saved.extend(self.first.get().filter(|_| training).map(Saved::again));
        let first = saved.len() - 1;
        let mut sent: Vec<Option<Wire>> = (0..first).map(|_| None).collect();
        let (mut next, mut ran) = (Next::default(), HashMap::new());
        self.aim(schedule, first, training);
        let mut wire = schedule.begin(&mut |row_block, _| {
            let given = &saved[first];
            let rows = self.layout.row_block(self.layout.rank, row_block);
            let row_block =
                Piece { index: first, rows, passed: given.passed.as_deref(), saved: given };
            self.forward_piece(step, &row_block, (&mut next, &mut ran), end)
        })?;
        for index in first + 1..=self.passes.len() {
            let from = wire.take().ok_or_else(|| Error::invalid("a stage sent no messages"))?;
            let pass = self.passes[index - 1].as_ref();
            let same = training && next.only_input && pass.draws() == 0;
            let mut given = next.saved();
            next = Next::default();
            self.aim(schedule, index, training);
            let random = Random { mode: step.mode, draws: given.draws };
            given.draws += pass.draws();
            let messages = Messages { pass, direction: Direction::Forward, random, sent: None };
            let (rows, made) = schedule.pass(&from, &messages, &mut |row_block, passed| {
                let rows = self.layout.row_block(self.layout.rank, row_block);
                let row_block = Piece { index, rows, passed, saved: &given };
                self.forward_piece(step, &row_block, (&mut next, &mut ran), end)
            })?;
            sent.push(Some(from).filter(|_| training && pass.reads_sent()));
            (wire, given.passed) = (made, Some(Arc::new(rows)));
            if same && index == 1 {
                self.first.get_or_init(|| given.again());
            }
            if !training {
                saved.clear();
            }
            saved.push(given);
        }
        Ok(Trace { saved, sent, ran, wire })
    }

    /// Sets what the rows of a stage are: messages of the next pass, or gradients of those of the last one.
    fn aim(&self, schedule: &mut Schedule<'_>, index: usize, training: bool) {
        schedule.makes = match self.passes.get(index) {
            Some(pass) => (Direction::Forward, pass.scores()),
            None if training => (Direction::Backward, Scores::None),
            None => (Direction::Forward, Scores::None),
        };
    }

    /// Runs a stage on a row block; returns its messages.
    fn forward_piece<'t>(
        &'t self,
        step: Step<'t>,
        row_block: &Piece<'_>,
        (next, ran): (&mut Next, &mut HashMap<(usize, Range<usize>), Ran<'t>>),
        end: &mut End<'_>,
    ) -> Result<Option<Tensor>> {
        let mut tape = Tape::after(step.params, step.mode, row_block.saved.draws);
        let (incoming, made) = self.stage(&mut tape, row_block)?;
        if row_block.index == self.passes.len() {
            return end(&mut tape, row_block, incoming, made.sent);
        }
        let is_input = |var: Var| row_block.index == 0 && var == incoming.passed;
        next.draws = tape.draws();
        next.learns = tape.learns(made.sent) || made.kept.is_some_and(|kept| tape.learns(kept));
        next.only_input = is_input(made.sent) && made.kept.is_none_or(is_input);
        match made.kept {
            Some(kept) if is_input(kept) => next.keeps_input = true,
            Some(kept) => {
                let values = tape.value(kept);
                self.rows(&mut next.kept, values.cols())?
                    .write_piece(row_block.rows.start, values)?;
            }
            None => {}
        }
        let sent = tape.take(made.sent);
        if !self.frugal && tape.is_training() {
            ran.insert((row_block.index, row_block.rows.clone()), Ran { tape, incoming, made });
        }
        Ok(Some(sent))
    }

    /// A matrix of own rows, created on first use.
    fn rows<'m>(&self, matrix: &'m mut Option<Matrix>, cols: usize) -> Result<&'m mut Matrix> {
        Ok(match matrix {
            Some(matrix) => matrix,
            None => matrix.insert(own_rows(&self.layout, self.place, Columns::plain(cols))?),
        })
    }

    /// Puts the inputs of a row block on the tape, and runs the stage.
    fn stage<'t>(
        &'t self,
        tape: &mut Tape<'t>,
        row_block: &Piece<'_>,
    ) -> Result<(Incoming, Outgoing)> {
        let passed = self.put(tape, row_block.passed, row_block)?;
        let kept = match &row_block.saved.kept {
            Activations::Nothing => None,
            Activations::Input => Some(self.put(tape, None, row_block)?),
            Activations::Rows(rows) => Some(self.put(tape, Some(rows), row_block)?),
        };
        let incoming = Incoming { passed, kept };
        let ids = &self.block.ids()[row_block.rows.clone()];
        Ok((incoming, self.model.stage(tape, row_block.index, ids, incoming)?))
    }

    /// Rows of a matrix, or of the features.
    fn put(
        &self,
        tape: &mut Tape<'_>,
        from: Option<&Matrix>,
        row_block: &Piece<'_>,
    ) -> Result<Var> {
        let range = row_block.rows.clone();
        let Some(matrix) = from else {
            let nodes: Vec<u32> = (range.start as u32..range.end as u32).collect();
            let input = gather(self.features, &nodes)?;
            if self.frugal {
                self.features.forget(range);
            }
            return Ok(input.on(tape));
        };
        let values = matrix.row_block(range)?;
        Ok(if row_block.saved.learns { tape.leaf(values) } else { tape.dense(values) })
    }

    /// The gradient of aggregated messages, if anything was learned before them; that of kept
    /// values goes to `to_kept`.
    fn to_incoming(
        &self,
        tape: &Tape<'_>,
        row_block: &Piece<'_>,
        incoming: Incoming,
        to_kept: &mut Option<Matrix>,
    ) -> Result<Option<Tensor>> {
        if !row_block.saved.learns || row_block.index == 0 {
            return Ok(None);
        }
        let of = |var: Var, cols: usize| {
            tape.grad(var).cloned().unwrap_or_else(|| Tensor::zeros(row_block.rows.len(), cols))
        };
        if let (Some(kept), Activations::Rows(rows)) = (incoming.kept, &row_block.saved.kept) {
            let grad = of(kept, rows.cols());
            self.rows(to_kept, grad.cols())?.write_piece(row_block.rows.start, &grad)?;
        }
        let cols = row_block.passed.map_or(0, Matrix::cols);
        Ok(Some(of(incoming.passed, cols)))
    }

    /// All passes and stages backward.
    fn backward<'t>(
        &'t self,
        step: Step<'t>,
        schedule: &mut Schedule<'_>,
        Trace { saved, mut sent, mut ran, mut wire }: Trace<'t>,
        mut to_kept: Option<Matrix>,
        grads: &mut [f32],
    ) -> Result<()> {
        schedule.makes = (Direction::Backward, Scores::None);
        for (index, given) in saved.iter().enumerate().rev().skip(1) {
            let Some(from) = wire.take() else { break };
            let sent = sent.pop().flatten();
            let (after, mut before) = (to_kept.take(), None);
            let pass = self.passes[index].as_ref();
            let draws = saved[index + 1].draws - pass.draws();
            let random = Random { mode: step.mode, draws };
            let sent = sent.as_ref();
            let messages = Messages { pass, direction: Direction::Backward, random, sent };
            let (_, made) = schedule.pass(&from, &messages, &mut |row_block, to_sent| {
                let rows = self.layout.row_block(self.layout.rank, row_block);
                let row_block =
                    Piece { index, rows, passed: given.passed.as_deref(), saved: given };
                let ran = match ran.remove(&(index, row_block.rows.clone())) {
                    Some(ran) => ran,
                    None => self.again(step, &row_block)?,
                };
                let gradients = [to_sent, after.as_ref()];
                self.backward_piece(ran, &row_block, gradients, &mut before, grads)
            })?;
            (wire, to_kept) = (made, before);
        }
        Ok(())
    }

    /// Recomputes a stage on a row block.
    fn again<'t>(&'t self, step: Step<'t>, row_block: &Piece<'_>) -> Result<Ran<'t>> {
        let mut tape = Tape::after(step.params, step.mode, row_block.saved.draws);
        let (incoming, made) = self.stage(&mut tape, row_block)?;
        Ok(Ran { tape, incoming, made })
    }

    /// Backpropagates the gradients of a row block's messages and kept values through its stage.
    fn backward_piece(
        &self,
        Ran { mut tape, incoming, made }: Ran<'_>,
        row_block: &Piece<'_>,
        gradients: [Option<&Matrix>; 2],
        to_kept: &mut Option<Matrix>,
        grads: &mut [f32],
    ) -> Result<Option<Tensor>> {
        let mut seeds = Vec::new();
        for (var, matrix) in [Some(made.sent), made.kept].into_iter().zip(gradients) {
            if let (Some(var), Some(matrix)) = (var, matrix) {
                seeds.push((var, matrix.row_block(row_block.rows.clone())?));
            }
        }
        tape.backward_from(seeds, grads)?;
        self.to_incoming(&tape, row_block, incoming, to_kept)
    }
}
