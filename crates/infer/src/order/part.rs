//! PS: nodes by part.

use super::sort::{About, Sort};

pub(super) struct Part;

impl Sort for Part {
    fn key(&self, about: About) -> u64 {
        about.part.into()
    }
}
