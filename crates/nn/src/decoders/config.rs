//! The configuration of a decoder, as stored in run files.

use gnarl_common::did_you_mean::unknown;
use gnarl_common::{Error, Result};
use serde::{Deserialize, Serialize};

/// The decoder and its constants. Fields that a decoder does not use are ignored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DecoderConfig {
    /// One of [`names`](super::names), or for edge labels of [`heads::names`](crate::heads::names);
    /// empty for the default of the task: `distmult`, or `mlp`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// TransE: 1 for the sum of absolute differences, 2 for the Euclidean distance.
    pub degree: usize,
    /// MLP: width of the hidden layers.
    pub hidden: usize,
    /// MLP for edge labels: number of layers; the last one outputs the classes.
    pub layers: usize,
    /// Weight of the sum of |x|³ over the embeddings of a batch's triples (N3 norm; Lacroix,
    /// Usunier & Obozinski, ICML 2018).
    pub n3: f32,
}

impl Default for DecoderConfig {
    fn default() -> Self {
        Self { name: String::new(), degree: 1, hidden: 200, layers: 2, n3: 0.0 }
    }
}

impl DecoderConfig {
    /// Name of a decoder for link prediction.
    pub fn of_links(&self) -> &str {
        if self.name.is_empty() { "distmult" } else { &self.name }
    }

    /// Name of a decoder for edge labels.
    pub fn of_labels(&self) -> &str {
        if self.name.is_empty() { "mlp" } else { &self.name }
    }

    /// Returns a usage error if the name is not one of `known` (with the nearest known one as hint)
    /// or a value is out of range.
    pub fn check(&self, known: &[&'static str]) -> Result<()> {
        if !self.name.is_empty() && !known.contains(&self.name.as_str()) {
            return Err(unknown("decoder", &self.name, known));
        }
        if !(1..=2).contains(&self.degree) {
            return Err(Error::usage(format!(
                "invalid decoder.degree '{}': expected 1 or 2",
                self.degree
            )));
        }
        if self.hidden == 0 {
            return Err(Error::usage("invalid decoder.hidden '0': expected a positive number"));
        }
        if self.layers == 0 {
            return Err(Error::usage("invalid decoder.layers '0': expected a positive number"));
        }
        if !(self.n3 >= 0.0 && self.n3.is_finite()) {
            return Err(Error::usage(format!(
                "invalid decoder.n3 '{}': expected a number of at least 0",
                self.n3
            )));
        }
        Ok(())
    }
}
