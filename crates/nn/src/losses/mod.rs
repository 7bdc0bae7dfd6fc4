//! Link-prediction losses.
//!
//! In: the score of a positive, and the scores of its negatives; −∞ for those left out. Out: a loss
//! and its gradients, row by row. One file per loss:
//!
//! | name | loss of a positive `p` against negatives `nᵢ` | source |
//! |---|---|---|
//! | `cross-entropy` | −log of the share of eᵖ in eᵖ + Σ eⁿⁱ | Kadlec et al., RepL4NLP 2017 |
//! | `infonce` | cross-entropy of scores over a temperature | van den Oord et al., 2018 |
//! | `bce` | −log σ(p) − mean of log σ(−nᵢ) | Trouillon et al., ICML 2016 |
//! | `margin` | mean of max(0, γ − p + nᵢ) | Bordes et al., NIPS 2013 |
//! | `self-adversarial` | −log σ(γ + p) − Σ wᵢ log σ(−γ − nᵢ) | Sun et al., ICLR 2019, eq. 5 |

mod bce;
mod cross_entropy;
mod infonce;
mod loss;
mod margin;
mod self_adversarial;
mod softmax;
pub mod values;

#[cfg(test)]
mod tests;

pub use loss::{Loss, apply};

use gnarl_common::did_you_mean::unknown;
use gnarl_common::{Error, Result};
use serde::{Deserialize, Serialize};

/// The loss and its constants. Fields that a loss does not use are ignored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LossConfig {
    /// One of [`names`], or for regression of [`values::names`]; empty for the default of the task:
    /// `cross-entropy`, or `mse`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// `margin`, `self-adversarial`: γ.
    pub margin: f32,
    /// `infonce`: divisor of the scores. `self-adversarial`: factor of the negative scores in the
    /// weights of negatives (α).
    pub temperature: f32,
    /// `huber`: δ, the deviation at which the loss turns from squared to absolute.
    pub delta: f32,
}

impl Default for LossConfig {
    fn default() -> Self {
        Self { name: String::new(), margin: 1.0, temperature: 1.0, delta: 1.0 }
    }
}

impl LossConfig {
    /// Rejects a loss name for edge classification, which always uses cross-entropy.
    ///
    /// # Errors
    /// A usage error.
    pub fn none(&self) -> Result<()> {
        match self.name.as_str() {
            "" | "cross-entropy" => Ok(()),
            name => Err(Error::usage(format!(
                "edge classification always uses cross-entropy; found loss.name = '{name}'"
            ))
            .hint("leave out loss.name")),
        }
    }

    /// The regression loss that this configuration describes.
    ///
    /// # Errors
    /// A usage error if the name is unknown or δ is not above 0.
    pub fn of_values(&self) -> Result<Box<dyn values::ValueLoss>> {
        if !(self.delta > 0.0 && self.delta.is_finite()) {
            return Err(Error::usage(format!(
                "invalid loss.delta '{}': expected a number above 0",
                self.delta
            )));
        }
        values::build(if self.name.is_empty() { "mse" } else { &self.name }, self.delta)
    }

    /// The link-prediction loss that this configuration describes.
    ///
    /// # Errors
    /// A usage error if the name is unknown (the nearest known one is the hint) or a value is out of
    /// range.
    pub fn build(&self) -> Result<Box<dyn Loss>> {
        let temperature = self.temperature;
        if !(temperature > 0.0 && temperature.is_finite()) {
            return Err(Error::usage(format!(
                "invalid loss.temperature '{temperature}': expected a number above 0"
            )));
        }
        if !(self.margin >= 0.0 && self.margin.is_finite()) {
            return Err(Error::usage(format!(
                "invalid loss.margin '{}': expected a number of at least 0",
                self.margin
            )));
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

/// The loss names that [`LossConfig::build`] accepts.
pub fn names() -> &'static [&'static str] {
    &["cross-entropy", "infonce", "bce", "margin", "self-adversarial"]
}
