//! gnarl-store.
