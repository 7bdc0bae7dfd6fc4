//! PDS: nodes by part, and by degree in a part, the largest first.

use super::sort::{About, Sort};

pub(super) struct PartDegree;

impl Sort for PartDegree {
    fn key(&self, about: About) -> u64 {
        u64::from(about.part) << 32 | u64::from(!about.degree)
    }
}
