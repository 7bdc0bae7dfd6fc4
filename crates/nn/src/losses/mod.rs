//! Losses of link prediction: what a triple costs, from its score and those of what it is told from.
//!
//! In: the score of a positive, and the scores of its negatives; −∞ for those that do not count. Out: a
//! loss and its gradients, row by row. One file for each loss:
//!
//! | name | loss of a positive `p` against negatives `nᵢ` | source |
//! |---|---|---|
//! | `cross-entropy` | −log of the share of eᵖ in eᵖ + Σ eⁿⁱ | Kadlec et al., RepL4NLP 2017 |
//! | `infonce` | the same of scores over a temperature | van den Oord et al., 2018 |
//! | `bce` | −log σ(p) − mean of log σ(−nᵢ) | Trouillon et al., ICML 2016 |
//! | `margin` | mean of max(0, γ − p + nᵢ) | Bordes et al., NIPS 2013 |
//! | `self-adversarial` | −log σ(γ + p) − Σ wᵢ log σ(−γ − nᵢ) | Sun et al., ICLR 2019, eq. 5 |

mod bce;
mod cross_entropy;
mod infonce;
mod margin;
mod self_adversarial;
mod softmax;
pub mod values;

#[cfg(test)]
mod tests;

use gnarl_graph::names::unknown;
use gnarl_graph::{Error, Result};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::Tensor;

/// What one positive costs.
pub trait Loss: Send + Sync {
    /// The name the configuration uses.
    fn name(&self) -> &'static str;

    /// The loss of a positive against its negatives, and the derivative by its score; those by the
    /// negatives' scores go to `grads`. Negatives of score −∞ do not count: their derivative is 0.
    fn row(&self, positive: f32, negatives: &[f32], grads: &mut [f32]) -> (f32, f32);
}

/// Which loss, with its constants. Fields a loss has no use for are ignored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LossConfig {
    /// One of [`names`], or of [`values::names`] where numbers are learnt; empty for the task's own:
    /// `cross-entropy`, or `mse`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// `margin`, `self-adversarial`: γ.
    pub margin: f32,
    /// `infonce`: what scores are divided by. `self-adversarial`: what the scores of negatives are
    /// multiplied by to weigh them (α).
    pub temperature: f32,
}

impl Default for LossConfig {
    fn default() -> Self {
        Self { name: String::new(), margin: 1.0, temperature: 1.0 }
    }
}

impl LossConfig {
    /// Refuses a name where there is nothing to choose: labels cost cross-entropy.
    ///
    /// # Errors
    /// A usage error.
    pub fn none(&self) -> Result<()> {
        match self.name.as_str() {
            "" | "cross-entropy" => Ok(()),
            name => Err(Error::usage(format!("loss.name is '{name}', classes cost cross-entropy"))
                .hint("leave out loss.name")),
        }
    }

    /// The loss of numbers this configuration describes.
    ///
    /// # Errors
    /// A usage error if the name is unknown.
    pub fn of_values(&self) -> Result<Box<dyn values::ValueLoss>> {
        values::build(if self.name.is_empty() { "mse" } else { &self.name })
    }

    /// The loss this configuration describes.
    ///
    /// # Errors
    /// A usage error if the name is unknown (the nearest known one is the hint) or a value is out of
    /// range.
    pub fn build(&self) -> Result<Box<dyn Loss>> {
        let temperature = self.temperature;
        if !(temperature > 0.0 && temperature.is_finite()) {
            return Err(Error::usage(format!("loss.temperature is {temperature}, not above 0")));
        }
        if !(self.margin >= 0.0 && self.margin.is_finite()) {
            return Err(Error::usage(format!("loss.margin is {}, not at least 0", self.margin)));
        }
        Ok(match self.name.as_str() {
            "" | "cross-entropy" => Box::new(cross_entropy::CrossEntropy),
            "infonce" => Box::new(infonce::InfoNce { temperature }),
            "bce" => Box::new(bce::Bce),
            "margin" => Box::new(margin::Margin { margin: self.margin }),
            "self-adversarial" => {
                Box::new(self_adversarial::SelfAdversarial { margin: self.margin, temperature })
            }
            other => return Err(unknown("loss", other, names())),
        })
    }
}

/// The names [`LossConfig::build`] knows.
pub fn names() -> &'static [&'static str] {
    &["cross-entropy", "infonce", "bce", "margin", "self-adversarial"]
}

/// Positives that one task works on.
const ROWS: usize = 64;

/// The summed loss of positives `n × 1` against their negatives `n × count`, and its gradients.
pub fn apply(loss: &dyn Loss, positive: &Tensor, negative: &Tensor) -> (f64, Tensor, Tensor) {
    let count = negative.cols();
    let mut to_positive = Tensor::scratch(positive.rows(), 1);
    let mut to_negative = Tensor::scratch(negative.rows(), count);
    let rows = to_positive.data_mut().par_chunks_mut(ROWS);
    let sums: Vec<f64> = rows
        .zip(to_negative.data_mut().par_chunks_mut(ROWS * count.max(1)))
        .enumerate()
        .map(|(i, (to_positive, to_negative))| {
            let mut sum = 0.0;
            for (j, to) in to_positive.iter_mut().enumerate() {
                let row = i * ROWS + j;
                let grads = &mut to_negative[j * count..(j + 1) * count];
                let (value, grad) = loss.row(positive.data()[row], negative.row(row), grads);
                sum += f64::from(value);
                *to = grad;
            }
            sum
        })
        .collect();
    (sums.iter().sum(), to_positive, to_negative)
}

/// `log(1 + eˣ)`.
fn softplus(x: f32) -> f32 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

/// Negatives that count.
fn counted(negatives: &[f32]) -> usize {
    negatives.iter().filter(|score| score.is_finite()).count()
}
