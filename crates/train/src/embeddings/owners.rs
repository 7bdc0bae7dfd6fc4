//! Owners of embeddings.

use std::sync::Arc;

use gnarl_common::{Error, Result};
use gnarl_partition::PartitionedDataset;
use gnarl_store::embedding::Ids;
use gnarl_store::placement::{ByRange, Even, Place, Placement};

/// The owners of a table's rows, as seen by one of the ranks.
#[derive(Clone)]
pub struct Owners {
    placement: Arc<dyn Placement>,
    rank: usize,
    ranks: usize,
}

impl Owners {
    /// The owners of rows that `placement` puts into parts, as seen by rank `rank` of `ranks`.
    /// Numbers of parts per rank differ by at most one, in their order.
    pub fn new(placement: Arc<dyn Placement>, rank: usize, ranks: usize) -> Self {
        Self { placement, rank, ranks }
    }

    /// The owners of `rows` rows without parts, split evenly in the order of ids.
    pub fn even(rows: u64, rank: usize, ranks: usize) -> Self {
        Self::new(Arc::new(Even::new(rows, ranks)), rank, ranks)
    }

    /// The rank that owns the row of `id`.
    pub fn of(&self, id: u64) -> usize {
        match self.placement.place(id) {
            Place::Part(part) => part * self.ranks / self.placement.parts(),
            Place::Everywhere => 0,
        }
    }

    /// This rank.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Number of ranks.
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// Number of rows of all ranks.
    pub fn rows(&self) -> u64 {
        self.placement.rows()
    }

    /// Ids of this rank's rows, one part after the other.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] if no parts of the graph decide on owners.
    pub fn own_in_parts(&self) -> Result<Ids> {
        let Some(map) = self.placement.id_map() else {
            return Err(Error::usage(format!(
                "embedding.store = 'file' has rows in memory with their parts, and there are fewer parts than {} ranks",
                self.ranks
            ))
            .hint("have as many parts as workers at least, or leave out embedding.store"));
        };
        // The parts of a rank are consecutive, as their numbers times the ranks ascend.
        let first = |rank: usize| (rank * map.parts()).div_ceil(self.ranks);
        Ok(Ids::in_parts(map.clone(), first(self.rank)..first(self.rank + 1)))
    }

    /// Ids of this rank's rows, ascending.
    pub fn own(&self) -> Ids {
        Ids::ascending(self.rows(), |id| self.of(id) == self.rank)
    }
}

/// The placement of a node type's rows, with the parts that own the nodes.
///
/// # Errors
/// If the partition has no such type or is damaged.
pub(crate) fn by_parts(cut: &PartitionedDataset, ntype: &str) -> Result<Arc<dyn Placement>> {
    Ok(Arc::new(ByRange::new(cut.id_map(ntype)?)))
}

#[cfg(test)]
mod tests {
    use gnarl_common::IdMap;

    use super::*;

    #[test]
    fn each_row_has_one_owner() {
        let ids = IdMap::new(4, &[3, 0, 3, 1, 2, 1]).unwrap();
        let parts = Arc::new(ByRange::new(ids.into()));
        for ranks in 1..=5 {
            let owners = |rank| Owners::new(parts.clone(), rank, ranks);
            let own = |rank| owners(rank).own().iter().collect::<Vec<_>>();
            let mut all: Vec<u64> = (0..ranks).flat_map(own).collect();
            all.sort_unstable();
            assert_eq!(all, [0, 1, 2, 3, 4, 5], "{ranks} ranks");
            for rank in 0..ranks {
                assert!(own(rank).iter().all(|&id| owners(0).of(id) == rank));
            }
        }
        // Two ranks: the first two of four parts, and the others.
        assert_eq!(Owners::new(parts, 0, 2).own().iter().collect::<Vec<_>>(), [1, 3, 5]);
    }
}
