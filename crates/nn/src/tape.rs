//! The tape: values computed so far, and the backward operations over them.

use std::sync::Arc;

use gnarl_common::rng::Key;
use gnarl_common::{Error, Result};

use crate::kernel::elementwise;
use crate::kernel::precision::Precision;
use crate::{ParamId, Params, SparseRows, Tensor};

/// Evaluation or training.
#[derive(Debug, Clone, Copy)]
pub enum Mode {
    /// Forward only: nothing is recorded, dropout does nothing.
    Eval,
    /// Forward and backward. Dropout masks are drawn from `key` (of the seed and the step), the
    /// number of the operation, the node's dataset id and the column.
    Train {
        /// Key of this step.
        key: Key,
        /// Precision of products, forward and backward.
        precision: Precision,
    },
}

impl Mode {
    /// Training with products of f32.
    pub fn train(key: Key) -> Self {
        Self::Train { key, precision: Precision::F32 }
    }

    /// The key of random operation `number` of a step, counted from 1, or `None` outside training.
    pub fn key(self, number: u64) -> Option<Key> {
        let Self::Train { key, .. } = self else { return None };
        Some(key.with(number))
    }

    /// Precision of products: in evaluation f32.
    fn precision(self) -> Precision {
        match self {
            Self::Eval => Precision::F32,
            Self::Train { precision, .. } => precision,
        }
    }
}

/// A value on a [`Tape`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Var(usize);

enum Value {
    Dense(Tensor),
    /// The first `usize` rows of sparse input.
    Sparse(Arc<SparseRows>, usize),
    /// A constant of this shape that is never read.
    Absent(usize, usize),
    Released,
}

/// Propagates the gradient of an operation's result back to its inputs.
type Backward<'b> = Box<dyn FnOnce(&mut Gradients<'_>, Tensor) + Send + 'b>;

struct Node<'b> {
    value: Value,
    needs_grad: bool,
    is_leaf: bool,
    backward: Option<Backward<'b>>,
}

/// A tape of operations. Borrows the parameters and the blocks for `'b`.
pub struct Tape<'b> {
    params: &'b Params,
    mode: Mode,
    nodes: Vec<Node<'b>>,
    leaf_grads: Vec<Option<Tensor>>,
    draws: u64,
}

impl<'b> Tape<'b> {
    /// An empty tape.
    pub fn new(params: &'b Params, mode: Mode) -> Self {
        Self { params, mode, nodes: Vec::new(), leaf_grads: Vec::new(), draws: 0 }
    }

    /// Precision of products.
    pub(crate) fn precision(&self) -> Precision {
        self.mode.precision()
    }

    /// An empty tape that draws as if `draws` keys had been drawn before, see [`Tape::draws`].
    pub fn after(params: &'b Params, mode: Mode, draws: u64) -> Self {
        Self { draws, ..Self::new(params, mode) }
    }

    /// Number of random keys drawn: operations after it, on a tape of their own, drop the values
    /// that they would have dropped on this one.
    pub fn draws(&self) -> u64 {
        self.draws
    }

    /// Skips as many random keys as operations that are not on this tape would draw.
    pub(crate) fn skip_draws(&mut self, draws: u64) {
        if self.is_training() {
            self.draws += draws;
        }
    }

    /// Columns of all values so far that have as many rows as `var`, shared or not.
    pub fn columns(&self, var: Var) -> usize {
        let rows = self.shape(var).0;
        let columns = self.nodes.iter().map(|node| match &node.value {
            Value::Dense(tensor) if tensor.rows() == rows => tensor.cols(),
            _ => 0,
        });
        columns.sum()
    }

    /// Returns whether the value depends on a parameter or a leaf, so that a gradient may reach it.
    pub fn learns(&self, var: Var) -> bool {
        self.needs_grad(var)
    }

    /// The parameters the tape reads.
    pub fn params(&self) -> &'b Params {
        self.params
    }

    /// Returns whether operations are recorded for [`Tape::backward`].
    pub fn is_training(&self) -> bool {
        matches!(self.mode, Mode::Train { .. })
    }

    /// A constant input: no gradient is computed for it.
    pub fn dense(&mut self, tensor: Tensor) -> Var {
        self.push_node(Value::Dense(tensor), false, None)
    }

    /// An input with a gradient, such as embeddings: see [`Tape::grad`].
    pub fn leaf(&mut self, tensor: Tensor) -> Var {
        let var = self.push_node(Value::Dense(tensor), self.is_training(), None);
        self.nodes[var.0].is_leaf = true;
        var
    }

    /// A constant sparse input. Allowed in [`Tape::linear`], [`Tape::dropout`],
    /// [`Tape::head_rows`] and [`Tape::densify`].
    pub fn sparse(&mut self, rows: Arc<SparseRows>) -> Var {
        let count = rows.rows();
        self.push_node(Value::Sparse(rows, count), false, None)
    }

    /// A constant of which only the shape is known: operations that read it panic.
    pub fn absent(&mut self, rows: usize, cols: usize) -> Var {
        self.push_node(Value::Absent(rows, cols), false, None)
    }

    /// A parameter as a value of its own.
    pub fn param(&mut self, id: ParamId) -> Var {
        let (rows, cols) = self.params.shape(id);
        let mut value = Tensor::scratch(rows, cols);
        value.data_mut().copy_from_slice(self.params.get(id));
        self.push(value, true, move |grads, grad| {
            elementwise::add_assign(grads.param(id), grad.data());
        })
    }

    /// A value computed so far.
    ///
    /// # Panics
    /// If the value is sparse or was released.
    pub fn value(&self, var: Var) -> &Tensor {
        match &self.nodes[var.0].value {
            Value::Dense(tensor) => tensor,
            Value::Sparse(..) => panic!("sparse input has no dense value; use densify"),
            Value::Absent(..) => panic!("the value is not here"),
            Value::Released => panic!("the value was released"),
        }
    }

    /// Rows and columns of a value.
    pub fn shape(&self, var: Var) -> (usize, usize) {
        match &self.nodes[var.0].value {
            Value::Sparse(sparse, rows) => (*rows, sparse.cols()),
            Value::Absent(rows, cols) => (*rows, *cols),
            _ => self.value(var).shape(),
        }
    }

    /// Returns whether the value is sparse input.
    pub fn is_sparse(&self, var: Var) -> bool {
        matches!(self.nodes[var.0].value, Value::Sparse(..))
    }

    /// Frees a value that is not read again; inference over a whole graph does so to keep one layer
    /// at a time. Values saved for the backward pass stay.
    pub fn release(&mut self, var: Var) {
        self.nodes[var.0].value = Value::Released;
    }

    /// Takes a value out of the tape without copying it, releasing it.
    ///
    /// # Panics
    /// If the value is sparse or was released.
    pub fn take(&mut self, var: Var) -> Tensor {
        let tensor = self.value(var).clone();
        self.release(var);
        tensor
    }

    /// Adds the gradient of `loss` to `grads`, laid out like [`Params::flat`], and keeps the
    /// gradients of leaves. Frees intermediate values as it goes; the tape is spent afterwards.
    ///
    /// # Errors
    /// If the tape is in [`Mode::Eval`], `loss` is not 1 × 1, or `grads` has another length than
    /// the parameters; if an exchange with other ranks fails.
    pub fn backward(&mut self, loss: Var, grads: &mut [f32]) -> Result<()> {
        if !self.is_training() {
            return Err(Error::usage("backward on a tape in evaluation mode")
                .hint("create the tape with Mode::Train"));
        }
        if self.shape(loss) != (1, 1) || grads.len() != self.params.len() {
            return Err(Error::usage(format!(
                "backward from a value of shape {:?} into {} gradients for {} parameters",
                self.shape(loss),
                grads.len(),
                self.params.len()
            ))
            .hint("the loss is one number, and every parameter value has one gradient"));
        }
        self.backward_from([(loss, Tensor::from_vec(1, 1, vec![1.0]))], grads)
    }

    /// As [`Tape::backward`], from values with given gradients.
    ///
    /// # Errors
    /// If an exchange with other ranks fails.
    ///
    /// # Panics
    /// If the tape is in [`Mode::Eval`].
    pub fn backward_from(
        &mut self,
        seeds: impl IntoIterator<Item = (Var, Tensor)>,
        grads: &mut [f32],
    ) -> Result<()> {
        assert!(self.is_training(), "backward on a tape in evaluation mode");
        let mut gradients = Gradients {
            params: self.params,
            flat: grads,
            vars: self.nodes.iter().map(|_| None).collect(),
            failure: None,
            needed: self.nodes.iter().map(|n| n.needs_grad).collect(),
        };
        self.leaf_grads = self.nodes.iter().map(|_| None).collect();
        let mut first = vec![false; self.nodes.len()];
        for (var, grad) in seeds {
            first[var.0] = true;
            gradients.add(var, grad);
        }
        for i in (0..self.nodes.len()).rev() {
            let node = &mut self.nodes[i];
            let Some(grad) = gradients.vars[i].take() else { continue };
            if node.is_leaf {
                self.leaf_grads[i] = Some(grad);
            } else if let Some(backward) = node.backward.take() {
                if !first[i] {
                    node.value = Value::Released;
                }
                backward(&mut gradients, grad);
                gradients.failure.take().map_or(Ok(()), Err)?;
            }
        }
        Ok(())
    }

    /// The gradient of a [`Tape::leaf`] after [`Tape::backward`]; `None` if the loss does not
    /// depend on it.
    pub fn grad(&self, leaf: Var) -> Option<&Tensor> {
        self.leaf_grads.get(leaf.0)?.as_ref()
    }

    /// Records a result. `backward` is kept only if the tape trains and an input needs it.
    pub(crate) fn push(
        &mut self,
        value: Tensor,
        needs_grad: bool,
        backward: impl FnOnce(&mut Gradients<'_>, Tensor) + Send + 'b,
    ) -> Var {
        let needs_grad = needs_grad && self.is_training();
        let backward = needs_grad.then(|| Box::new(backward) as Backward<'b>);
        self.push_node(Value::Dense(value), needs_grad, backward)
    }

    /// Records sparse input derived from other sparse input.
    pub(crate) fn push_sparse(&mut self, sparse: Arc<SparseRows>, rows: usize) -> Var {
        self.push_node(Value::Sparse(sparse, rows), false, None)
    }

    /// The sparse input behind `var`, and how many of its rows count.
    pub(crate) fn sparse_value(&self, var: Var) -> Option<(Arc<SparseRows>, usize)> {
        match &self.nodes[var.0].value {
            Value::Sparse(sparse, rows) => Some((sparse.clone(), *rows)),
            _ => None,
        }
    }

    /// Returns whether a gradient must reach `var`.
    pub(crate) fn needs_grad(&self, var: Var) -> bool {
        self.nodes[var.0].needs_grad
    }

    /// The key of the next random operation, or `None` outside training.
    pub(crate) fn next_key(&mut self) -> Option<Key> {
        self.skip_draws(1);
        self.mode.key(self.draws)
    }

    fn push_node(&mut self, value: Value, needs_grad: bool, backward: Option<Backward<'b>>) -> Var {
        self.nodes.push(Node { value, needs_grad, is_leaf: false, backward });
        Var(self.nodes.len() - 1)
    }
}

/// The gradients of a backward pass.
pub(crate) struct Gradients<'g> {
    params: &'g Params,
    flat: &'g mut [f32],
    vars: Vec<Option<Tensor>>,
    needed: Vec<bool>,
    failure: Option<Error>,
}

impl Gradients<'_> {
    /// Returns whether any operation uses the gradient of `var`.
    pub(crate) fn wants(&self, var: Var) -> bool {
        self.needed[var.0]
    }

    /// Aborts the backward pass with `error`.
    pub(crate) fn fail(&mut self, error: Error) {
        self.failure = Some(error);
    }

    /// Adds `grad` to the gradient of `var`.
    pub(crate) fn add(&mut self, var: Var, grad: Tensor) {
        if !self.wants(var) {
            return;
        }
        match &mut self.vars[var.0] {
            Some(sum) => elementwise::add_assign(sum.data_mut(), grad.data()),
            slot => *slot = Some(grad),
        }
    }

    /// Adds `grad` to the first rows of the gradient of `var`, which has `rows` rows.
    pub(crate) fn add_head(&mut self, var: Var, grad: Tensor, rows: usize) {
        if !self.wants(var) {
            return;
        }
        if let Some(sum) = &mut self.vars[var.0] {
            let head = grad.data().len();
            elementwise::add_assign(&mut sum.data_mut()[..head], grad.data());
        } else if grad.rows() == rows {
            self.vars[var.0] = Some(grad);
        } else {
            let mut full = Tensor::scratch(rows, grad.cols());
            let (head, tail) = full.data_mut().split_at_mut(grad.data().len());
            head.copy_from_slice(grad.data());
            tail.fill(0.0);
            self.vars[var.0] = Some(full);
        }
    }

    /// Adds `grad` to the rows from `first` on of the gradient of `var`, which has `rows` rows.
    pub(crate) fn add_rows(&mut self, var: Var, grad: &Tensor, first: usize, rows: usize) {
        if !self.wants(var) {
            return;
        }
        let cols = grad.cols();
        let sum = self.vars[var.0].get_or_insert_with(|| Tensor::zeros(rows, cols));
        let part = &mut sum.data_mut()[first * cols..(first + grad.rows()) * cols];
        elementwise::add_assign(part, grad.data());
    }

    /// The gradients of all parameters, to add to.
    pub(crate) fn flat(&mut self) -> &mut [f32] {
        self.flat
    }

    /// The gradient of a parameter, to add to.
    pub(crate) fn param(&mut self, id: ParamId) -> &mut [f32] {
        &mut self.flat[self.params.spec(id).range()]
    }
}
