//! Regression losses, functions of the deviation of a prediction from its target.
//!
//! | name | loss of a deviation `d` |
//! |---|---|
//! | `mse` | d² |
//! | `mae` | \|d\| |
//! | `huber` | d² / 2 up to δ, beyond it δ (\|d\| − δ / 2) |

mod huber;
mod loss;
mod mae;
mod mse;

pub use loss::ValueLoss;

use gnarl_common::Result;
use gnarl_common::did_you_mean::unknown;

/// A regression loss by name, with the δ of `huber`; a usage error names the nearest known one.
pub fn build(name: &str, delta: f32) -> Result<Box<dyn ValueLoss>> {
    match name {
        "mse" => Ok(Box::new(mse::Mse)),
        "mae" => Ok(Box::new(mae::Mae)),
        "huber" => Ok(Box::new(huber::Huber { delta })),
        other => Err(unknown("loss of a regression", other, names())),
    }
}

/// The loss names that [`build`] accepts.
pub fn names() -> &'static [&'static str] {
    &["mse", "mae", "huber"]
}
