//! How parts that train alone are brought together.

use gnarl_common::{Error, Result};
use serde::{Deserialize, Serialize};

/// How the average of the parts' weights moves the weights they go on from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outer {
    /// The average as it is (CATGNN §3.3).
    #[default]
    Plain,
    /// Heavy-ball momentum over the averaged change (SlowMo, ICLR 2020).
    SlowMo,
    /// Nesterov momentum over the averaged change (DiLoCo, 2023).
    Nesterov,
    /// A custom optimizer, which a program registers under `average.name`.
    Custom,
}

impl Outer {
    /// True if it steps with a rate and a momentum.
    pub fn has_momentum(self) -> bool {
        self != Self::Plain
    }
}

/// The step whose seeds `sample.batch_size` counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Batch {
    /// One step of all parts together: parts make as many steps an epoch as one model of the whole graph.
    #[default]
    Global,
    /// One step of each part: parts make their share of the steps.
    Local,
}

/// `[average]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AverageSection {
    /// The step whose seeds `sample.batch_size` counts.
    pub batch: Batch,
    /// Steps of a part over which its learning rate grows to that of the schedule; a tenth of the run's at most.
    pub warmup: usize,
    /// True if the moments of the optimizer are averaged with the weights, in the same message.
    pub moments: bool,
    /// How the average of the parts' weights moves the weights they go on from.
    pub outer: Outer,
    /// `custom`: the name under which a program adds the outer optimizer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Rate of the outer optimizer, on the averaged change; if absent, that of its paper.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outer_lr: Option<f32>,
    /// Momentum of the outer optimizer; if absent, that of its paper.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outer_momentum: Option<f32>,
}

impl Default for AverageSection {
    fn default() -> Self {
        Self { batch: Batch::Global, warmup: 20, ..Self::none() }
    }
}

impl AverageSection {
    /// The average as it is, and nothing else: training of a single part.
    pub fn none() -> Self {
        Self {
            batch: Batch::Local,
            warmup: 0,
            moments: false,
            outer: Outer::Plain,
            name: None,
            outer_lr: None,
            outer_momentum: None,
        }
    }

    /// The factor on the learning rate in a part's step, counted from 0, of `total` in the run. The warm-up takes a
    /// tenth of them at most, so that short runs are not all warm-up.
    pub fn warmup_factor(&self, step: usize, total: usize) -> f32 {
        match self.warmup.min(total / 10) {
            0 => 1.0,
            steps => ((step + 1) as f32 / steps as f32).min(1.0),
        }
    }

    /// Rate of the outer optimizer: 1 for SlowMo (§5), 0.7 for DiLoCo (§3), unless set.
    pub fn outer_lr(&self) -> f32 {
        let paper = if self.outer == Outer::Nesterov { 0.7 } else { 1.0 };
        self.outer_lr.unwrap_or(paper)
    }

    /// Momentum of the outer optimizer: 0.5 for SlowMo (§5), 0.9 for DiLoCo (§3), unless set.
    pub fn outer_momentum(&self) -> f32 {
        let paper = if self.outer == Outer::Nesterov { 0.9 } else { 0.5 };
        self.outer_momentum.unwrap_or(paper)
    }

    /// Refuses constants outside their range.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] with the key and its range.
    pub fn check(&self) -> Result<()> {
        if self.outer == Outer::Custom && self.name.is_none() {
            return Err(Error::usage("average.outer = 'custom' and no average.name").hint(
                "set average.name to the name under which the program adds its outer optimizer",
            ));
        }
        let lr = self.outer_lr();
        if !(lr > 0.0 && lr.is_finite()) {
            return Err(Error::usage(format!("average.outer_lr is {lr}, not above 0")));
        }
        let momentum = self.outer_momentum();
        if !(0.0..1.0).contains(&momentum) {
            let message = format!("average.outer_momentum is {momentum}, not in [0, 1)");
            return Err(Error::usage(message));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warm_up_is_linear_and_a_tenth_of_the_run_at_most() {
        let section = AverageSection { warmup: 20, ..AverageSection::default() };
        assert_eq!(section.warmup_factor(0, 1000), 0.05);
        assert_eq!(section.warmup_factor(9, 1000), 0.5);
        assert_eq!(section.warmup_factor(19, 1000), 1.0);
        assert_eq!(section.warmup_factor(500, 1000), 1.0);
        assert_eq!(section.warmup_factor(0, 40), 0.25);
        assert_eq!(section.warmup_factor(0, 9), 1.0);
        assert_eq!(AverageSection::none().warmup_factor(0, 1000), 1.0);
    }

    #[test]
    fn constants_outside_their_range_are_refused() {
        let refused = |lr, momentum| {
            let section = AverageSection {
                outer: Outer::SlowMo,
                outer_lr: lr,
                outer_momentum: momentum,
                ..AverageSection::default()
            };
            section.check().unwrap_err().to_string()
        };
        assert!(refused(Some(0.0), None).contains("average.outer_lr is 0, not above 0"));
        assert!(refused(None, Some(1.0)).contains("average.outer_momentum is 1, not in [0, 1)"));
    }
}
