//! Partitioners by name.

use gnarl_common::did_you_mean::unknown;
use gnarl_common::error::Result;

use crate::edge_cut::fennel::Fennel;
use crate::edge_cut::grem::Grem;
use crate::edge_cut::knot::Knot;
use crate::edge_cut::ldg::Ldg;
use crate::edge_cut::metis::Metis;
use crate::edge_cut::partitioner::VertexPartitioner;
use crate::edge_cut::random::Random;
use crate::edge_cut::range::Range;
use crate::edge_cut::spring::Spring;
use crate::vertex_cut::{self, Owner};

/// All vertex partitioners, and all edge partitioners adapted by [`Owner`].
pub fn registry() -> Vec<Box<dyn VertexPartitioner>> {
    let mut all: Vec<Box<dyn VertexPartitioner>> = vec![
        Box::new(Knot),
        Box::new(Spring),
        Box::new(Grem),
        Box::new(Metis),
        Box::new(Ldg),
        Box::new(Fennel),
        Box::new(Random),
        Box::new(Range),
    ];
    all.extend(vertex_cut::registry().into_iter().map(|p| Box::new(Owner(p)) as _));
    all
}

/// Names of all partitioners.
pub fn names() -> Vec<&'static str> {
    registry().iter().map(|p| p.name()).collect()
}

/// The vertex partitioner `name`.
///
/// # Errors
/// [`Kind::Usage`](gnarl_common::Kind::Usage) with the nearest name if there is none.
pub fn by_name(name: &str) -> Result<Box<dyn VertexPartitioner>> {
    let found = registry().into_iter().find(|p| p.name() == name);
    found.ok_or_else(|| unknown("partitioner", name, &names()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_names_meet_the_nearest() {
        assert_eq!(by_name("metis").unwrap().name(), "metis");
        assert_eq!(by_name("hdrf").unwrap().name(), "hdrf");
        let error = by_name("spirng").err().unwrap();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains("did you mean 'spring'"), "{error}");
    }
}
