//! The trait of losses of numbers.

/// What a deviation from a target costs.
pub trait ValueLoss: Send + Sync {
    /// The name the configuration uses.
    fn name(&self) -> &'static str;

    /// The loss of a deviation, and its derivative.
    fn of(&self, deviation: f32) -> (f32, f32);
}
