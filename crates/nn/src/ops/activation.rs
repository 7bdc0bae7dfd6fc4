//! Activation functions. Their derivatives are taken from their results, so that one buffer
//! serves forward and backward.

use serde::{Deserialize, Serialize};

use crate::kernel::{elementwise, math, multiversion};
use crate::{Tape, Var};

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
        let mut y = self.value(x).clone();
        y.data_mut();
        elementwise::each(y.data_mut(), |chunk| forward(chunk, activation));
        let saved = y.clone();
        self.push(y, self.needs_grad(x), move |grads, mut grad| {
            elementwise::zip(grad.data_mut(), saved.data(), |g, y| backward(g, y, activation));
            grads.add(x, grad);
        })
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
