//! gnarl.
