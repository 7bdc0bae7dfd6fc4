//! Edge partitioners by name.

use gnarl_common::did_you_mean::unknown;
use gnarl_common::error::Result;

use super::{AdaDne, Dbh, Dne, EdgePartitioner, Greedy, Hash1d, Hash2d, Hdrf, TwoPhase};

/// All edge partitioners.
pub fn registry() -> Vec<Box<dyn EdgePartitioner>> {
    vec![
        Box::new(Hash1d),
        Box::new(Hash2d),
        Box::new(Dbh),
        Box::new(Greedy),
        Box::new(Hdrf::default()),
        Box::new(TwoPhase),
        Box::new(Dne::default()),
        Box::new(AdaDne::default()),
    ]
}

/// Names of all edge partitioners.
pub fn names() -> Vec<&'static str> {
    registry().iter().map(|p| p.name()).collect()
}

/// The edge partitioner `name`.
///
/// # Errors
/// [`Kind::Usage`](gnarl_common::Kind::Usage) with the nearest name if there is none.
pub fn by_name(name: &str) -> Result<Box<dyn EdgePartitioner>> {
    let found = registry().into_iter().find(|p| p.name() == name);
    found.ok_or_else(|| unknown("edge partitioner", name, &names()))
}
