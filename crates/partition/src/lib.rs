//! gnarl-partition.
