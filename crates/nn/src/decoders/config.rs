//! The description of a decoder, as run files hold it.

use gnarl_common::did_you_mean::unknown;
use gnarl_common::{Error, Result};
use serde::{Deserialize, Serialize};

/// Which decoder, with its constants. Fields a decoder has no use for are ignored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DecoderConfig {
    /// One of [`names`](super::names), or of [`heads::names`](crate::heads::names) where labels of edges
    /// are learnt; empty for the task's own: `distmult`, or `mlp`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// TransE: 1 takes the sum of absolute differences, 2 the Euclidean distance.
    pub degree: usize,
    /// MLP: width of the hidden layers.
    pub hidden: usize,
    /// Labels of edges, MLP: layers, the last of which puts out the classes.
    pub layers: usize,
    /// Weight of the sum of |x|³ over the rows of a batch's triples (Lacroix, Usunier & Obozinski, ICML
    /// 2018, the N3 norm).
    pub n3: f32,
}

impl Default for DecoderConfig {
    fn default() -> Self {
        Self { name: String::new(), degree: 1, hidden: 200, layers: 2, n3: 0.0 }
    }
}

impl DecoderConfig {
    /// The name of a decoder of links.
    pub fn of_links(&self) -> &str {
        if self.name.is_empty() { "distmult" } else { &self.name }
    }

    /// The name of a decoder of labels of edges.
    pub fn of_labels(&self) -> &str {
        if self.name.is_empty() { "mlp" } else { &self.name }
    }

    /// A usage error if the name is not one of `known` (the nearest known one is the hint) or a value out
    /// of range.
    pub fn check(&self, known: &[&'static str]) -> Result<()> {
        if !self.name.is_empty() && !known.contains(&self.name.as_str()) {
            return Err(unknown("decoder", &self.name, known));
        }
        if !(1..=2).contains(&self.degree) {
            return Err(Error::usage(format!("decoder.degree is {}, not 1 or 2", self.degree)));
        }
        if self.hidden == 0 {
            return Err(Error::usage("decoder.hidden is 0").hint("it must be positive"));
        }
        if self.layers == 0 {
            return Err(Error::usage("decoder.layers is 0").hint("it must be positive"));
        }
        if !(self.n3 >= 0.0 && self.n3.is_finite()) {
            return Err(Error::usage(format!("decoder.n3 is {}, not at least 0", self.n3)));
        }
        Ok(())
    }
}
