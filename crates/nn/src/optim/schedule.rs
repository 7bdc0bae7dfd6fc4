//! Learning-rate schedules: a factor on the base rate as a pure function of the step.

use gnarl_common::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// The shape of a schedule after its warm-up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScheduleKind {
    /// The base rate throughout.
    #[default]
    Constant,
    /// Times `gamma` every `every` steps.
    Step,
    /// Half a cosine from 1 down to `floor` (Loshchilov & Hutter, ICLR 2017, without restarts).
    Cosine,
    /// A straight line from 1 down to `floor`.
    Linear,
}

/// A schedule with its constants; steps are whatever unit the caller counts in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Schedule {
    /// Shape after the warm-up.
    pub kind: ScheduleKind,
    /// Steps over which the rate grows linearly to its base value.
    pub warmup: u64,
    /// Steps between two decays of `step`.
    pub every: u64,
    /// Factor of one decay of `step`.
    pub gamma: f32,
    /// Final factor of `cosine` and `linear`.
    pub floor: f32,
}

impl Default for Schedule {
    fn default() -> Self {
        Self { kind: ScheduleKind::Constant, warmup: 0, every: 100, gamma: 0.5, floor: 0.0 }
    }
}

impl Schedule {
    /// Returns a usage error if a constant is out of range.
    pub fn check(&self) -> Result<()> {
        if self.every == 0 {
            return Err(Error::usage("invalid schedule.every '0': expected 1 or more steps"));
        }
        for (key, value) in [("gamma", self.gamma), ("floor", self.floor)] {
            if !(0.0..=1.0).contains(&value) {
                return Err(Error::usage(format!(
                    "invalid schedule.{key} '{value}': expected a number in [0, 1]"
                )));
            }
        }
        Ok(())
    }

    /// Returns whether the factor depends on the length of the whole run.
    pub fn spans_epochs(&self) -> bool {
        matches!(self.kind, ScheduleKind::Cosine | ScheduleKind::Linear)
    }

    /// The factor on the base rate at `step` (from 0) of a run of `total` steps.
    pub fn factor(&self, step: u64, total: u64) -> f32 {
        if step < self.warmup {
            return (step + 1) as f32 / self.warmup as f32;
        }
        let after = step - self.warmup;
        let span = total.saturating_sub(self.warmup).max(1);
        let progress = (after as f64 / span as f64).min(1.0);
        let floor = f64::from(self.floor);
        let factor = match self.kind {
            ScheduleKind::Constant => 1.0,
            ScheduleKind::Step => f64::from(self.gamma).powf((after / self.every) as f64),
            ScheduleKind::Cosine => {
                floor + (1.0 - floor) * 0.5 * (1.0 + (std::f64::consts::PI * progress).cos())
            }
            ScheduleKind::Linear => floor + (1.0 - floor) * (1.0 - progress),
        };
        factor as f32
    }
}
