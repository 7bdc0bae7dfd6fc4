//! Optimizers over the flat parameter buffer, learning-rate schedules and gradient clipping.
//!
//! In: parameters and gradients of the same length, a learning rate. Out: updated parameters.
//! Every element is updated on its own, so the result does not depend on the number of threads.

mod adam;
mod adamw;
mod clip;
mod moments;
mod optimizer;
mod schedule;
mod sgd;

pub use adam::Adam;
pub use adamw::AdamW;
pub use clip::{clip_by_global_norm, global_norm};
pub use optimizer::Optimizer;
pub use schedule::{Schedule, ScheduleKind};
pub use sgd::Sgd;

use gnarl_common::did_you_mean::unknown;
use gnarl_common::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// The optimizer and its constants. Fields that an optimizer does not use are ignored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OptimizerConfig {
    /// `adam`, `adamw` or `sgd`.
    pub name: String,
    /// Decay of the first moment.
    pub beta1: f32,
    /// Decay of the second moment.
    pub beta2: f32,
    /// Added to the root of the second moment.
    pub eps: f32,
    /// L2 penalty added to the gradient (`adam`, `sgd`) or decoupled shrinkage (`adamw`).
    pub weight_decay: f32,
    /// Momentum of `sgd`.
    pub momentum: f32,
    /// Nesterov's look-ahead for `sgd` with momentum.
    pub nesterov: bool,
}

impl Default for OptimizerConfig {
    fn default() -> Self {
        Self {
            name: "adam".into(),
            beta1: 0.9,
            beta2: 0.999,
            eps: 1e-8,
            weight_decay: 0.0,
            momentum: 0.0,
            nesterov: false,
        }
    }
}

impl OptimizerConfig {
    /// The optimizer that this configuration describes. A usage error if the name is unknown or a
    /// constant is out of range.
    pub fn build(&self) -> Result<Box<dyn Optimizer>> {
        self.check()?;
        match self.name.as_str() {
            "adam" => Ok(Box::new(Adam::new(self.beta1, self.beta2, self.eps, self.weight_decay))),
            "adamw" => {
                Ok(Box::new(AdamW::new(self.beta1, self.beta2, self.eps, self.weight_decay)))
            }
            "sgd" => Ok(Box::new(Sgd::new(self.momentum, self.nesterov, self.weight_decay))),
            other => Err(unknown("optimizer", other, names())),
        }
    }

    fn check(&self) -> Result<()> {
        let unit = 0.0..1.0;
        for (key, value) in
            [("beta1", self.beta1), ("beta2", self.beta2), ("momentum", self.momentum)]
        {
            if !unit.contains(&value) {
                return Err(Error::usage(format!(
                    "invalid optimizer.{key} '{value}': expected a number in [0, 1)"
                )));
            }
        }
        for (key, value) in [("eps", self.eps), ("weight_decay", self.weight_decay)] {
            if !(value >= 0.0 && value.is_finite()) {
                return Err(Error::usage(format!(
                    "invalid optimizer.{key} '{value}': expected a number of at least 0"
                )));
            }
        }
        if self.nesterov && self.momentum == 0.0 {
            return Err(Error::usage("optimizer.nesterov requires optimizer.momentum above 0")
                .hint("set optimizer.momentum, for instance to 0.9"));
        }
        Ok(())
    }
}

/// The optimizer names that [`OptimizerConfig::build`] accepts.
pub fn names() -> &'static [&'static str] {
    &["adam", "adamw", "sgd"]
}

#[cfg(test)]
mod tests;
