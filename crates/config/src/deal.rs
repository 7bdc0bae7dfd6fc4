//! The parts in memory of a run, by its task.

use super::disaggregated::Deal;
use super::sections::RunConfig;

impl RunConfig {
    /// The order in which parts come into memory under strategy `disaggregated`: by default in pairs where edges are
    /// predicted.
    pub fn deal(&self) -> Deal {
        let of_nodes = self.task.kind.is_of_nodes();
        self.disaggregated.deal.unwrap_or(if of_nodes { Deal::Nodes } else { Deal::Pairs })
    }

    /// Parts of each slot in memory at a time under strategy `disaggregated`, where there are `parts` in all: by default a
    /// quarter of them, and two at least for pairs.
    pub fn resident_of(&self, parts: usize) -> usize {
        let least = if self.deal() == Deal::Nodes { 1 } else { 2 };
        self.disaggregated.resident_of(parts, least)
    }
}
