//! Losses of numbers: what a prediction costs, from how far it is from its target.
//!
//! | name | loss of a deviation `d` |
//! |---|---|
//! | `mse` | d² |
//! | `mae` | \|d\| |

mod mae;
mod mse;

use gnarl_graph::Result;
use gnarl_graph::names::unknown;

/// What a deviation from a target costs.
pub trait ValueLoss: Send + Sync {
    /// The name the configuration uses.
    fn name(&self) -> &'static str;

    /// The loss of a deviation, and its derivative.
    fn of(&self, deviation: f32) -> (f32, f32);
}

/// A loss of numbers by name; a usage error names the nearest known one.
pub fn build(name: &str) -> Result<Box<dyn ValueLoss>> {
    match name {
        "mse" => Ok(Box::new(mse::Mse)),
        "mae" => Ok(Box::new(mae::Mae)),
        other => Err(unknown("loss of a regression", other, names())),
    }
}

/// The names [`build`] knows.
pub fn names() -> &'static [&'static str] {
    &["mse", "mae"]
}
