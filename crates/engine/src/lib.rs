//! gnarl-engine.
