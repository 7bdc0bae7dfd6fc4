//! The trait of regression losses.

/// A regression loss: a function of the deviation from the target.
pub trait ValueLoss: Send + Sync {
    /// The name the configuration uses.
    fn name(&self) -> &'static str;

    /// The loss of a deviation, and its derivative.
    fn of(&self, deviation: f32) -> (f32, f32);
}
