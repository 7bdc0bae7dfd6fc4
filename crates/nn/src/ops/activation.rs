//! Activation functions. Their derivatives are taken from their results, so that one buffer
//! serves forward and backward.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::kernel::spans::over_values;
use crate::kernel::{elementwise, math, multiversion};
use crate::{Tape, Tensor, Var};

/// A function applied to every value.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Activation {
    /// The value itself.
    #[default]
    None,
    /// max(x, 0).
    Relu,
    /// x above 0, eˣ - 1 below.
    Elu,
    /// x above 0, a positive multiple of x below.
    LeakyRelu(f32),
    /// Hyperbolic tangent.
    Tanh,
    /// 1 / (1 + e⁻ˣ).
    Sigmoid,
}

impl Tape<'_> {
    /// Applies an activation function.
    pub fn activation(&mut self, x: Var, activation: Activation) -> Var {
        if activation == Activation::None {
            return x;
        }
        let y = self.value(x).clone();
        self.activated(x, y, activation)
    }

    /// As [`Tape::activation`] for the last use of `x`: reuses its buffer unless it is shared. `x`
    /// is released.
    pub(crate) fn activation_last(&mut self, x: Var, activation: Activation) -> Var {
        if activation == Activation::None {
            return x;
        }
        let y = self.take(x);
        self.activated(x, y, activation)
    }

    /// Applies an activation function to `y`, the value of `x`.
    fn activated(&mut self, x: Var, mut y: Tensor, activation: Activation) -> Var {
        let span = over_values("activation", y.data().len());
        elementwise::each(y.data_mut(), |chunk| forward(chunk, activation));
        let saved = Saved::new(&y, activation, self.is_training() && self.needs_grad(x));
        drop(span);
        self.push(y, self.needs_grad(x), move |grads, mut grad| {
            saved.backward(&mut grad);
            grads.add(x, grad);
        })
    }
}

/// The saved values for the backward pass of an activation function.
pub(crate) enum Saved {
    /// Nothing: the derivative is 1, or there is no backward pass.
    Nothing,
    /// A bit for each value above 0, so that the buffer of the result is free for others.
    Positive(Vec<u32>),
    /// The results.
    Results(Tensor, Activation),
}

impl Saved {
    /// The saved values of the results `y` of `activation`, if `wanted`.
    pub(crate) fn new(y: &Tensor, activation: Activation, wanted: bool) -> Self {
        match activation {
            _ if !wanted => Self::Nothing,
            Activation::None => Self::Nothing,
            Activation::Relu => {
                let mut bits = vec![0; y.data().len().div_ceil(BITS)];
                let chunks = bits.par_chunks_mut(WORDS).zip(y.data().par_chunks(WORDS * BITS));
                chunks.for_each(|(bits, y)| positive(bits, y));
                Self::Positive(bits)
            }
            _ => Self::Results(y.clone(), activation),
        }
    }

    /// Converts the gradient of the result into that of the argument, in place.
    pub(crate) fn backward(&self, grad: &mut Tensor) {
        let over = || over_values("activation (gradient)", grad.data().len());
        let _span = (!matches!(self, Self::Nothing)).then(over);
        match self {
            Self::Nothing => {}
            Self::Positive(bits) => {
                let grad = grad.data_mut().par_chunks_mut(WORDS * BITS);
                grad.zip(bits.par_chunks(WORDS)).for_each(|(grad, bits)| keep_positive(grad, bits));
            }
            Self::Results(y, activation) => {
                elementwise::zip(grad.data_mut(), y.data(), |g, y| backward(g, y, *activation));
            }
        }
    }
}

const BITS: usize = u32::BITS as usize;
/// Words of bits per task.
const WORDS: usize = 512;

multiversion! {
    /// Sets the bits of the values above 0.
    fn positive(bits: &mut [u32], y: &[f32]) {
        for (word, y) in bits.iter_mut().zip(y.chunks(BITS)) {
            *word = y.iter().enumerate().map(|(i, &y)| u32::from(y > 0.0) << i).sum();
        }
    }
}

multiversion! {
    /// Sets gradients to 0 whose bit is not set.
    fn keep_positive(grad: &mut [f32], bits: &[u32]) {
        for (grad, word) in grad.chunks_mut(BITS).zip(bits) {
            for (i, g) in grad.iter_mut().enumerate() {
                *g = if word >> i & 1 == 1 { *g } else { 0.0 };
            }
        }
    }
}

multiversion! {
    /// Applies `activation` in place.
    pub(crate) fn forward(values: &mut [f32], activation: Activation) {
        match activation {
            Activation::None => {}
            Activation::Relu => values.iter_mut().for_each(|v| *v = v.max(0.0)),
            Activation::Elu => {
                values.iter_mut().for_each(|v| *v = if *v > 0.0 { *v } else { math::exp(*v) - 1.0 });
            }
            Activation::LeakyRelu(s) => {
                values.iter_mut().for_each(|v| *v *= if *v > 0.0 { 1.0 } else { s });
            }
            Activation::Tanh => values.iter_mut().for_each(|v| *v = math::tanh(*v)),
            Activation::Sigmoid => values.iter_mut().for_each(|v| *v = math::sigmoid(*v)),
        }
    }
}

multiversion! {
    /// Multiplies gradients by the derivative, given the results `y` of [`forward`].
    pub(crate) fn backward(grad: &mut [f32], y: &[f32], activation: Activation) {
        let pairs = grad.iter_mut().zip(y);
        match activation {
            Activation::None => {}
            Activation::Relu => pairs.for_each(|(g, y)| *g = if *y > 0.0 { *g } else { 0.0 }),
            Activation::Elu => pairs.for_each(|(g, y)| *g *= if *y > 0.0 { 1.0 } else { y + 1.0 }),
            Activation::LeakyRelu(s) => {
                pairs.for_each(|(g, y)| *g *= if *y > 0.0 { 1.0 } else { s });
            }
            Activation::Tanh => pairs.for_each(|(g, y)| *g *= 1.0 - y * y),
            Activation::Sigmoid => pairs.for_each(|(g, y)| *g *= y * (1.0 - y)),
        }
    }
}
