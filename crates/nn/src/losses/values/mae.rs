//! Absolute error.

use super::ValueLoss;

/// |d|, with derivative 0 at 0.
pub(super) struct Mae;

impl ValueLoss for Mae {
    fn name(&self) -> &'static str {
        "mae"
    }

    fn of(&self, deviation: f32) -> (f32, f32) {
        let slope = if deviation == 0.0 { 0.0 } else { deviation.signum() };
        (deviation.abs(), slope)
    }
}
