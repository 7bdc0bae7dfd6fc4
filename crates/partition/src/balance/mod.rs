//! Balance between parts: what is balanced, bounds for streaming partitioners, and repair by single moves.

pub mod constraint;
pub mod level;
pub mod quota;
