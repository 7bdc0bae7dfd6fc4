//! Evaluation and inference.

use bytesize::ByteSize;
use gnarl_common::{Error, Result};
use serde::{Deserialize, Serialize};

/// A split that scores are computed of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScoredSplit {
    /// Validation, which selects the best weights.
    Valid,
    /// Test.
    Test,
}

/// `[evaluate]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EvaluateSection {
    /// Memory of layer-wise inference, such as `"2GiB"`: rows beyond it go to files. By default a quarter of the memory
    /// that is free when the run begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<ByteSize>,
    /// The splits that are evaluated during training. Without `valid` the latest weights count as the best; none at all
    /// means that the run is never evaluated.
    pub splits: Vec<ScoredSplit>,
    /// Neighbors sampled per node, the seeds' hop first, instead of all of them; -1 takes all. Drawn alike in every
    /// evaluation.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fanouts: Vec<i64>,
    /// Link prediction with an encoder: nodes that a true endpoint is ranked among, drawn for each edge and side; 0 ranks it
    /// among all nodes.
    pub candidates: usize,
}

impl Default for EvaluateSection {
    fn default() -> Self {
        Self { memory: None, splits: ScoredSplit::ALL.to_vec(), fanouts: Vec::new(), candidates: 0 }
    }
}

impl ScoredSplit {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Valid, Self::Test];
}

impl EvaluateSection {
    /// Returns whether validation and whether test examples are scored during training.
    pub fn scored(&self) -> [bool; 2] {
        ScoredSplit::ALL.map(|split| self.splits.contains(&split))
    }

    /// Returns whether the run is never evaluated.
    pub fn is_never(&self) -> bool {
        self.splits.is_empty()
    }

    /// Rejects fan-outs that are not one for each of so many `hops`, which the key `of` sets.
    pub(super) fn check(&self, (hops, of): (usize, &str)) -> Result<()> {
        let found = self.fanouts.len();
        if found == 0 {
            return Ok(());
        }
        if let Some(wrong) = self.fanouts.iter().find(|&&fanout| fanout == 0 || fanout < -1) {
            let message = format!("invalid evaluate.fanouts: {wrong} neighbors");
            return Err(Error::usage(message).hint("give a number above 0, or -1 for all"));
        }
        if found != hops {
            return Err(Error::usage(format!(
                "invalid evaluate.fanouts: expected {hops} entries ({of}), found {found}"
            ))
            .hint("give one fan-out per layer, the seeds' hop first; leave it out to read all neighbors"));
        }
        Ok(())
    }
}
