//! Placement of rows on parts: one policy per node or edge type (DistDGLv2, section 5.4).
//!
//! In: an id of the type. Out: the part that has its row, or all parts. Policies differ by type:
//! large types follow the partition of the graph ([`ByRange`]), or are split evenly where there is
//! none ([`Even`]); small ones are replicated on every part ([`Replicated`]).
//!
//! ```
//! use gnarl_common::IdMap;
//! use gnarl_store::placement::{ByRange, Place, Placement};
//!
//! // Part 0 owns nodes 1 and 2, part 1 node 0.
//! let users = ByRange::new(IdMap::new(2, &[1, 0, 0])?.into());
//! assert_eq!(users.place(0), Place::Part(1));
//! assert_eq!(users.place(2), Place::Part(0));
//! # Ok::<(), gnarl_common::Error>(())
//! ```

use std::sync::Arc;

use gnarl_common::IdMap;

mod even;
mod range;
mod replicated;

pub use even::Even;
pub use range::ByRange;
pub use replicated::Replicated;

/// The location of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// One part.
    Part(usize),
    /// Every part.
    Everywhere,
}

/// A placement policy for the rows of one type. All machines must agree on it.
pub trait Placement: Send + Sync {
    /// The name in configurations.
    fn name(&self) -> &'static str;

    /// Number of rows, above all ids.
    fn rows(&self) -> u64;

    /// Number of parts.
    fn parts(&self) -> usize;

    /// The part of each row and its position there, where rows follow a partition.
    fn id_map(&self) -> Option<&Arc<IdMap>> {
        None
    }

    /// The location of the row of `id`.
    ///
    /// # Panics
    /// May panic if there is no such row.
    fn place(&self, id: u64) -> Place;
}

#[cfg(test)]
mod tests {
    use gnarl_common::IdMap;
    use gnarl_common::rng::Key;

    use super::*;

    /// All policies, for 1000 rows in 7 parts.
    fn all() -> Vec<Box<dyn Placement>> {
        let parts: Vec<u32> = (0..1000).map(|id| Key::new(1).below(id, 7) as u32).collect();
        vec![
            Box::new(ByRange::new(IdMap::new(7, &parts).unwrap().into())),
            Box::new(Even::new(1000, 7)),
            Box::new(Replicated::new(1000, 7)),
        ]
    }

    #[test]
    fn every_row_is_somewhere_and_stays_there() {
        for (policy, again) in all().iter().zip(all()) {
            let name = policy.name();
            assert_eq!((policy.rows(), policy.parts()), (1000, 7), "{name}");
            for id in 0..1000 {
                let place = policy.place(id);
                assert_eq!(place, again.place(id), "{name}");
                assert!(!matches!(place, Place::Part(part) if part >= 7), "{name}");
            }
        }
    }

    #[test]
    fn names_differ() {
        let mut names: Vec<_> = all().iter().map(|policy| policy.name()).collect();
        names.dedup();
        assert_eq!(names, ["range", "even", "replicated"]);
    }
}
