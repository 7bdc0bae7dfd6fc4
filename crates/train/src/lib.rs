//! gnarl-train.
