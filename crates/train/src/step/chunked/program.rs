//! A model's step over chunks: stages over row blocks, passes over column blocks. Where memory is
//! limited, the backward pass recomputes the activations of a stage from its inputs, so that
//! only the rows between stages are saved (NeutronTP, section 4.2.1).

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use gnarl_common::{Error, Result};
use gnarl_graph::blocks::Block;
use gnarl_nn::models::Stages;
use gnarl_nn::models::stages::{Incoming, Linear, Outgoing, Pass};
use gnarl_nn::ops::pass::{Operator, Passing};
use gnarl_nn::{Mode, Params, Tape, Tensor, Var};
use gnarl_store::FeatureStore;

use super::held::{Held, Kept, Next};
use super::layout::Layout;
use super::matrix::{Matrix, Place};
use super::messages::{Direction, Messages};
use super::sweep::{Sweep, Wire, own_rows};
use crate::data::batch::gather;

/// A model on a graph, with its chunk layout.
pub(super) struct Program<'a> {
    model: &'a dyn Stages,
    block: &'a Block,
    features: &'a dyn FeatureStore,
    layout: Layout,
    place: &'a Place,
    passes: Vec<(Arc<Passing<'a>>, Linear)>,
    /// True if memory is limited.
    frugal: bool,
    /// Inputs of the second stage, where they are the same in every step.
    first: OnceLock<Held>,
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
    held: Vec<Held>,
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
    held: &'p Held,
}

/// A consumer of the last stage's logits of a row block, which may return their gradient.
type End<'e> = dyn FnMut(&mut Tape<'_>, &Piece<'_>, Incoming, Var) -> Result<Option<Tensor>> + 'e;

/// The loss of a row block's logits, of the nodes in a range.
pub(super) type Loss<'l> = dyn FnMut(&mut Tape<'_>, &Range<usize>, Var) -> Var + 'l;

impl<'a> Program<'a> {
    /// `model` on `block`.
    ///
    /// # Errors
    /// A usage error if messages of the model are not plain sums.
    pub fn new(
        model: &'a dyn Stages,
        block: &'a Block,
        features: &'a dyn FeatureStore,
        layout: Layout,
        place: &'a Place,
        frugal: bool,
    ) -> Result<Self> {
        let mut made: Vec<(Operator, Arc<Passing<'_>>)> = Vec::new();
        let mut passing = |operator| {
            if let Some((_, passing)) = made.iter().find(|(other, _)| *other == operator) {
                return passing.clone();
            }
            let passing = Arc::new(Passing::new(operator, block));
            made.push((operator, passing.clone()));
            passing
        };
        let pass = |index| match model.pass(index) {
            Pass::Linear(linear) => Ok((passing(linear.operator), linear)),
            Pass::Max => Err(Error::usage("max aggregation does not support chunks")
                .hint("leave out tensor.memory and tensor.chunks, or use another aggregator")),
        };
        let passes = (0..model.passes()).map(pass).collect::<Result<_>>()?;
        let first = OnceLock::new();
        Ok(Self { model, block, features, layout, place, passes, frugal, first })
    }

    /// Total number of propagations.
    pub fn propagations(&self) -> usize {
        self.passes.iter().map(|(_, linear)| linear.times).sum()
    }

    /// Adds the gradient of the sum of `loss` over all pieces to `grads`.
    ///
    /// # Errors
    /// Those of files and of other ranks.
    pub fn train(
        &self,
        step: Step<'_>,
        sweep: &mut Sweep<'_>,
        grads: &mut [f32],
        loss: &mut Loss<'_>,
    ) -> Result<()> {
        let mut to_kept = None;
        let trace = self.forward(step, sweep, &mut |tape, piece, incoming, logits| {
            let loss = loss(tape, &piece.rows, logits);
            tape.release(logits);
            tape.backward(loss, grads)?;
            self.to_incoming(tape, piece, incoming, &mut to_kept)
        })?;
        sweep.makes = Direction::Backward;
        self.backward(step, sweep, trace, to_kept, grads)
    }

    /// Calls `visit` with the logits of the nodes of each piece, in order.
    ///
    /// # Errors
    /// Those of files and of other ranks.
    pub fn evaluate(
        &self,
        params: &Params,
        sweep: &mut Sweep<'_>,
        visit: &mut dyn FnMut(&Range<usize>, &Tensor),
    ) -> Result<()> {
        let step = Step { params, mode: Mode::Eval };
        let done = self.forward(step, sweep, &mut |tape, piece, _, logits| {
            visit(&piece.rows, tape.value(logits));
            Ok(None)
        });
        done.map(drop)
    }

    /// All stages and passes; `end` consumes the logits.
    fn forward<'t>(
        &'t self,
        step: Step<'t>,
        sweep: &mut Sweep<'_>,
        end: &mut End<'_>,
    ) -> Result<Trace<'t>> {
        let training = matches!(step.mode, Mode::Train { .. });
        let mut held = vec![Held::input()];
        held.extend(self.first.get().filter(|_| training).map(Held::again));
        let first = held.len() - 1;
        let (mut next, mut ran) = (Next::default(), HashMap::new());
        self.aim(sweep, first, training);
        let mut wire = sweep.begin(&mut |piece, _| {
            let given = &held[first];
            let rows = self.layout.piece(self.layout.rank, piece);
            let piece = Piece { index: first, rows, passed: given.passed.as_deref(), held: given };
            self.forward_piece(step, &piece, (&mut next, &mut ran), end)
        })?;
        for index in first + 1..=self.passes.len() {
            let from = wire.take().ok_or_else(|| Error::invalid("a stage sent no messages"))?;
            let same = training && next.only_input;
            let mut given = next.held();
            next = Next::default();
            self.aim(sweep, index, training);
            let messages = self.messages(index - 1, Direction::Forward);
            let (rows, made) = sweep.pass(from, &messages, &mut |piece, passed| {
                let rows = self.layout.piece(self.layout.rank, piece);
                let piece = Piece { index, rows, passed, held: &given };
                self.forward_piece(step, &piece, (&mut next, &mut ran), end)
            })?;
            (wire, given.passed) = (made, Some(Arc::new(rows)));
            if same && index == 1 {
                self.first.get_or_init(|| given.again());
            }
            if !training {
                held.clear();
            }
            held.push(given);
        }
        Ok(Trace { held, ran, wire })
    }

    /// Sets which pass the rows of a stage belong to: those of the last one are gradients.
    fn aim(&self, sweep: &mut Sweep<'_>, index: usize, training: bool) {
        let back = training && index == self.passes.len();
        sweep.makes = if back { Direction::Backward } else { Direction::Forward };
    }

    fn messages(&self, index: usize, direction: Direction) -> Messages<'_, 'a> {
        let (passing, linear) = &self.passes[index];
        Messages { passing, linear: *linear, direction }
    }

    /// Runs a stage on a row block; returns its messages.
    fn forward_piece<'t>(
        &'t self,
        step: Step<'t>,
        piece: &Piece<'_>,
        (next, ran): (&mut Next, &mut HashMap<(usize, Range<usize>), Ran<'t>>),
        end: &mut End<'_>,
    ) -> Result<Option<Tensor>> {
        let mut tape = Tape::after(step.params, step.mode, piece.held.draws);
        let (incoming, made) = self.stage(&mut tape, piece)?;
        if piece.index == self.passes.len() {
            return end(&mut tape, piece, incoming, made.sent);
        }
        let is_input = |var: Var| piece.index == 0 && var == incoming.passed;
        next.draws = tape.draws();
        next.learns = tape.learns(made.sent) || made.kept.is_some_and(|kept| tape.learns(kept));
        next.only_input = is_input(made.sent) && made.kept.is_none_or(is_input);
        match made.kept {
            Some(kept) if is_input(kept) => next.keeps_input = true,
            Some(kept) => {
                let values = tape.value(kept);
                self.rows(&mut next.kept, values.cols())?.write_piece(piece.rows.start, values)?;
            }
            None => {}
        }
        let sent = tape.take(made.sent);
        if !self.frugal && tape.is_training() {
            ran.insert((piece.index, piece.rows.clone()), Ran { tape, incoming, made });
        }
        Ok(Some(sent))
    }

    /// A matrix of own rows, created on first use.
    fn rows<'m>(&self, matrix: &'m mut Option<Matrix>, cols: usize) -> Result<&'m mut Matrix> {
        Ok(match matrix {
            Some(matrix) => matrix,
            None => matrix.insert(own_rows(&self.layout, self.place, cols)?),
        })
    }

    /// Puts the inputs of a row block on the tape, and runs the stage.
    fn stage<'t>(&'t self, tape: &mut Tape<'t>, piece: &Piece<'_>) -> Result<(Incoming, Outgoing)> {
        let passed = self.put(tape, piece.passed, piece)?;
        let kept = match &piece.held.kept {
            Kept::Nothing => None,
            Kept::Input => Some(self.put(tape, None, piece)?),
            Kept::Rows(rows) => Some(self.put(tape, Some(rows), piece)?),
        };
        let incoming = Incoming { passed, kept };
        let ids = &self.block.ids()[piece.rows.clone()];
        Ok((incoming, self.model.stage(tape, piece.index, ids, incoming)?))
    }

    /// Rows of a matrix, or of the features.
    fn put(&self, tape: &mut Tape<'_>, from: Option<&Matrix>, piece: &Piece<'_>) -> Result<Var> {
        let range = piece.rows.clone();
        let Some(matrix) = from else {
            let nodes: Vec<u32> = (range.start as u32..range.end as u32).collect();
            let input = gather(self.features, &nodes)?;
            if self.frugal {
                self.features.forget(range);
            }
            return Ok(input.on(tape));
        };
        let values = matrix.piece(range)?;
        Ok(if piece.held.learns { tape.leaf(values) } else { tape.dense(values) })
    }

    /// The gradient of aggregated messages, if anything was learned before them; that of kept
    /// values goes to `to_kept`.
    fn to_incoming(
        &self,
        tape: &Tape<'_>,
        piece: &Piece<'_>,
        incoming: Incoming,
        to_kept: &mut Option<Matrix>,
    ) -> Result<Option<Tensor>> {
        if !piece.held.learns || piece.index == 0 {
            return Ok(None);
        }
        let of = |var: Var, cols: usize| {
            tape.grad(var).cloned().unwrap_or_else(|| Tensor::zeros(piece.rows.len(), cols))
        };
        if let (Some(kept), Kept::Rows(rows)) = (incoming.kept, &piece.held.kept) {
            let grad = of(kept, rows.cols());
            self.rows(to_kept, grad.cols())?.write_piece(piece.rows.start, &grad)?;
        }
        let cols = piece.passed.map_or(0, Matrix::cols);
        Ok(Some(of(incoming.passed, cols)))
    }

    /// All passes and stages backward.
    fn backward<'t>(
        &'t self,
        step: Step<'t>,
        sweep: &mut Sweep<'_>,
        Trace { held, mut ran, mut wire }: Trace<'t>,
        mut to_kept: Option<Matrix>,
        grads: &mut [f32],
    ) -> Result<()> {
        for (index, given) in held.iter().enumerate().rev().skip(1) {
            let Some(from) = wire.take() else { break };
            let (after, mut before) = (to_kept.take(), None);
            let messages = self.messages(index, Direction::Backward);
            let (_, made) = sweep.pass(from, &messages, &mut |piece, to_sent| {
                let rows = self.layout.piece(self.layout.rank, piece);
                let piece = Piece { index, rows, passed: given.passed.as_deref(), held: given };
                let ran = match ran.remove(&(index, piece.rows.clone())) {
                    Some(ran) => ran,
                    None => self.again(step, &piece)?,
                };
                let gradients = [to_sent, after.as_ref()];
                self.backward_piece(ran, &piece, gradients, &mut before, grads)
            })?;
            (wire, to_kept) = (made, before);
        }
        Ok(())
    }

    /// Recomputes a stage on a row block.
    fn again<'t>(&'t self, step: Step<'t>, piece: &Piece<'_>) -> Result<Ran<'t>> {
        let mut tape = Tape::after(step.params, step.mode, piece.held.draws);
        let (incoming, made) = self.stage(&mut tape, piece)?;
        Ok(Ran { tape, incoming, made })
    }

    /// Backpropagates the gradients of a row block's messages and kept values through its stage.
    fn backward_piece(
        &self,
        Ran { mut tape, incoming, made }: Ran<'_>,
        piece: &Piece<'_>,
        gradients: [Option<&Matrix>; 2],
        to_kept: &mut Option<Matrix>,
        grads: &mut [f32],
    ) -> Result<Option<Tensor>> {
        let mut seeds = Vec::new();
        for (var, matrix) in [Some(made.sent), made.kept].into_iter().zip(gradients) {
            if let (Some(var), Some(matrix)) = (var, matrix) {
                seeds.push((var, matrix.piece(piece.rows.clone())?));
            }
        }
        tape.backward_from(seeds, grads)?;
        self.to_incoming(&tape, piece, incoming, to_kept)
    }
}
