//! gnarl-nn.
