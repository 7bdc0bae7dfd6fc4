//! `file`: negatives from a file.

use gnarl_common::rng::Key;
use gnarl_common::{Error, Result};
use gnarl_graph::triples::Side;

use super::{Drawn, NegativeSampler, Positives};

/// Fixed negatives per edge in every epoch, from a table with one row per edge.
pub struct FromFile {
    /// Negatives for heads and for tails.
    tables: [Vec<u32>; 2],
    count: usize,
}

impl FromFile {
    /// Takes candidates from two tables, `edges × count`, for heads and for tails.
    ///
    /// # Errors
    /// If a table is of another size, or has a node that is not below `nodes`, naming its row.
    pub fn new(tables: [Vec<u32>; 2], edges: usize, count: usize, nodes: u32) -> Result<Self> {
        for (table, what) in tables.iter().zip(["heads", "tails"]) {
            if table.len() != edges * count {
                return Err(Error::invalid(format!(
                    "candidates for {what}: expected {count} for each of {edges} edges, found {}",
                    table.len()
                )));
            }
            if let Some(at) = table.iter().position(|&node| node >= nodes) {
                return Err(Error::invalid(format!(
                    "row {}: candidate {} does not exist: there are {nodes} nodes",
                    at / count,
                    table[at]
                )));
            }
        }
        Ok(Self { tables, count })
    }
}

impl NegativeSampler for FromFile {
    fn name(&self) -> &'static str {
        "file"
    }

    fn choose(&self, batch: &Positives<'_>, side: Side, _: Key) -> Drawn {
        let table = &self.tables[side as usize];
        let row = |&place: &u32| &table[place as usize * self.count..][..self.count];
        let ids = batch.places[batch.share.clone()].iter().flat_map(row).copied().collect();
        let groups = (0..batch.share.len() as u32).collect();
        Drawn { ids, count: self.count, groups, masked: Vec::new() }
    }
}
