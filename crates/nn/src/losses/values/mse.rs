//! Squared error.

use super::ValueLoss;

pub(super) struct Mse;

impl ValueLoss for Mse {
    fn name(&self) -> &'static str {
        "mse"
    }

    fn of(&self, deviation: f32) -> (f32, f32) {
        (deviation * deviation, 2.0 * deviation)
    }
}
