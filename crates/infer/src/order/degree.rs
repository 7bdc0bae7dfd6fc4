//! DS: nodes by degree, the largest first.

use super::sort::{About, Sort};

pub(super) struct Degree;

impl Sort for Degree {
    fn key(&self, about: About) -> u64 {
        u64::from(!about.degree)
    }
}
