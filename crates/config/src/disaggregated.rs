//! Training on some parts at a time.

use gnarl_common::{Error, Result};
use serde::{Deserialize, Serialize};

/// `[disaggregated]`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DisaggregatedSection {
    /// Slots that parts are dealt to: so many parts are replaced at a time.
    pub slots: usize,
    /// Parts of each slot in memory at a time; 0 takes a quarter of those that it is dealt.
    pub resident: usize,
}

impl Default for DisaggregatedSection {
    fn default() -> Self {
        Self { slots: 1, resident: 0 }
    }
}

impl DisaggregatedSection {
    /// Parts of each slot in memory at a time, where there are `parts` in all.
    pub fn resident_of(&self, parts: usize) -> usize {
        let dealt = parts.div_ceil(self.slots.max(1)).max(1);
        match self.resident {
            0 => dealt.div_ceil(4),
            resident => resident.min(dealt),
        }
    }

    /// Refuses no slots.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] with the key.
    pub fn check(&self) -> Result<()> {
        match self.slots {
            0 => Err(Error::usage("invalid disaggregated.slots '0': expected a positive number")),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_is_in_memory_unless_it_is_said() {
        let section = |slots, resident| DisaggregatedSection { slots, resident };
        assert_eq!(section(1, 0).resident_of(16), 4);
        assert_eq!(section(2, 0).resident_of(16), 2);
        assert_eq!(section(1, 0).resident_of(3), 1);
        assert_eq!(section(1, 99).resident_of(16), 16);
        assert_eq!(section(3, 5).resident_of(16), 5);
        assert!(section(0, 1).check().is_err());
    }
}
