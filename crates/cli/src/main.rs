//! The gnarl binary.
fn main() {}
