//! Predictions for `disaggregated`: batches of the parts in memory, which change during an epoch.

use gnarl_common::Result;
use gnarl_config::{RowStore, RunConfig, Strategy};
use gnarl_partition::{PartLayout, Within};

use super::facts::{Cut, Facts, opened_parts};
use super::predict::Predict;
use super::sampled;
use super::work::{PER_WEIGHT, Work};

/// Bytes of a node of a part beside its features: its id.
const NODE: f64 = 8.0;
/// Bytes of a list of a part: its node's degree.
const LIST: f64 = 4.0;
/// Bytes of an edge in a bucket.
const EDGE: f64 = 8.0;
/// Bytes moved for an edge that is merged into a list: the cache line of its source's id.
const MERGED: f64 = 64.0;

/// Synchronous SGD on parts that are brought into memory in turns (Armada §3).
pub(super) struct Disaggregated;

/// The parts in memory, and how often they change.
struct Residence {
    /// Share of the nodes that is in memory.
    nodes: f64,
    /// Share of a node's neighbors that is in memory with it.
    neighbors: f64,
    /// Share of the edges that is read in an epoch.
    read: f64,
}

impl Residence {
    /// `resident` of the parts of `cut`, of which `slots` are replaced at a time.
    fn of(cut: &Cut, resident: usize, slots: usize) -> Self {
        let (parts, resident) = (cut.parts as f64, resident.min(cut.parts) as f64);
        let others = (parts - 1.0).max(1.0);
        let met = (resident - 1.0) / others;
        // Of other parts, those that a part meets in memory: the first ones each other, every later one those that stay.
        let stay = (resident - slots as f64).max(0.0);
        let pairs = resident * (resident - 1.0) + (parts - resident) * 2.0 * stay;
        let read = (pairs / (parts * others)).min(1.0);
        let inside = 1.0 - cut.edge_cut;
        Self {
            nodes: resident / parts,
            neighbors: inside + cut.edge_cut * met,
            read: inside + cut.edge_cut * read,
        }
    }
}

impl Predict for Disaggregated {
    fn strategy(&self) -> Strategy {
        Strategy::Disaggregated
    }

    fn check(&self, _: &Facts<'_>, config: &RunConfig) -> Result<()> {
        sampled::check(config)?;
        match &config.partition.path {
            Some(path) => opened_parts(path)?.check_layout(PartLayout::Storage),
            None => Ok(()),
        }
    }

    /// Every rank samples its share of a step's seeds among the nodes in memory. Each part is read once, and the edges
    /// between parts that are in memory together; every rank reads for itself if it has a host of its own. Where all lists
    /// are made anew their edges are merged, and those that stay are copied.
    fn work(&self, facts: &Facts<'_>, config: &RunConfig) -> Result<Work> {
        let (ranks, cut) = (config.train.workers, facts.cut(config)?);
        let slots = config.disaggregated.slots.min(cut.parts);
        let resident = slots * config.resident_of(cut.parts);
        let there = Residence::of(&cut, resident, slots);
        let within = Within { nodes: there.nodes, neighbors: there.neighbors };
        let eras = 1 + cut.parts.saturating_sub(resident).div_ceil(slots);
        let config = &by_eras(config, facts.counts.train, eras as u64);
        let batches = facts.graph.batches(config, facts.counts.train, ranks, within)?;
        let mut work = sampled::work(facts, config, &batches)?;
        let steps = work.steps as f64;
        work.sent_bytes = steps * sampled::summed(facts.parameters(config)? + 2.0, ranks);
        work.messages = 2.0 * steps * (ranks - 1) as f64;
        sampled::exchange(facts, (config, ranks), &batches, &mut work);
        let (nodes, edges) = (facts.counts.nodes as f64, facts.counts.edges as f64);
        let of_nodes = nodes * (facts.counts.row_bytes + NODE) + LIST * facts.graph.lists();
        work.read_bytes = of_nodes + EDGE * there.read * edges;
        let lists = there.nodes * there.neighbors * edges;
        work.merged_bytes = MERGED * there.read * edges + 2.0 * EDGE * eras as f64 * lists;
        let in_memory = (resident + slots).min(cut.parts) as f64 / cut.parts as f64;
        // In place of the graph's lists, those of two eras, with ids beside them where others follow.
        let of_edge = if resident < cut.parts { 2.0 * EDGE } else { EDGE };
        work.memory_bytes += in_memory * of_nodes + of_edge * lists - 4.0 * edges;
        if config.embedding.store == RowStore::File {
            let values = facts.graph.embedding_values(&facts.model(config));
            work.memory_bytes -= 4.0 * PER_WEIGHT * (1.0 - there.nodes) * values;
        }
        Ok(work)
    }
}

/// A run whose batches are as large as those of `eras`, of which each begins a batch of its own.
fn by_eras(config: &RunConfig, train: u64, eras: u64) -> RunConfig {
    let of_era = train.div_ceil(eras).max(1);
    let steps = match config.sample.batch_size as u64 {
        0 => eras,
        batch => eras * of_era.div_ceil(batch),
    };
    let mut config = config.clone();
    config.sample.batch_size = train.div_ceil(steps).max(1) as usize;
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(parts: usize, edge_cut: f64) -> Cut {
        Cut { parts, edge_cut, replication: 1.0 }
    }

    #[test]
    fn all_parts_in_memory_are_the_graph() {
        for slots in [1, 2] {
            let all = Residence::of(&cut(8, 0.4), 8, slots);
            assert_eq!((all.nodes, all.neighbors, all.read), (1.0, 1.0, 1.0));
        }
    }

    #[test]
    fn every_era_begins_a_batch_of_its_own() {
        let mut config = RunConfig::default();
        for (batch, expected) in [(0, 100), (1000, 100), (64, 50), (30, 25)] {
            config.sample.batch_size = batch;
            assert_eq!(by_eras(&config, 1000, 10).sample.batch_size, expected, "{batch}");
        }
    }

    #[test]
    fn neighbors_of_other_parts_are_there_as_often_as_parts() {
        let some = Residence::of(&cut(9, 0.5), 3, 1);
        assert!((some.neighbors - (0.5 + 0.5 * 0.25)).abs() < 1e-12);
        // 6 pairs in both directions at first, and 4 with each of 6 later parts, of 72.
        assert!((some.read - (0.5 + 0.5 * 30.0 / 72.0)).abs() < 1e-12);
    }
}
