//! Plausible mistakes of new users: none is silent, none is told misleadingly.

mod values;
