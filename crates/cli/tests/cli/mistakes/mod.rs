//! Mistakes that people make: none is silent, and none misleads.

mod runs;
