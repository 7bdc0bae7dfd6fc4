//! Huber's loss: squared near the target, absolute far from it (Huber, Ann. Math. Statist. 1964, eq. 3.5).

use super::ValueLoss;

pub(super) struct Huber {
    /// Deviation at which the loss turns from squared to absolute.
    pub delta: f32,
}

impl ValueLoss for Huber {
    fn name(&self) -> &'static str {
        "huber"
    }

    fn of(&self, deviation: f32) -> (f32, f32) {
        let distance = deviation.abs();
        if distance <= self.delta {
            (0.5 * deviation * deviation, deviation)
        } else {
            (self.delta * (distance - 0.5 * self.delta), self.delta * deviation.signum())
        }
    }
}
