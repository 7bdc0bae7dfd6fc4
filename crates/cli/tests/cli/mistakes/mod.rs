//! Plausible mistakes of new users: none is silent, and none misleads.

mod runs;
mod values;
