//! The memory of parts in memory, and the neighbors among them.

use gnarl_common::memory::{Available, gib};
use gnarl_config::{RowStore, RunConfig, Strategy};
use gnarl_graph::{ColumnSpec, Dataset, NodeType};
use gnarl_partition::{PartitionManifest, PartitionedType};

/// Bytes of a node in a part: its id, and a degree for each edge type that ends in its type.
const OF_PART: [f64; 2] = [8.0, 4.0];
/// Bytes of a node of the graph in memory: its id, and for each edge type its degree and where its list ends, in two eras.
const OF_GRAPH: [f64; 2] = [8.0, 16.0];

/// Share of the memory left that parts may take, beside batches and evaluation.
const SHARE: f64 = 0.75;

/// The parts in memory of a run, with the memory they take.
pub(super) struct InMemory {
    parts: usize,
    resident: usize,
    slots: usize,
    /// Expected bytes of parts and lists.
    bytes: f64,
    /// Expected share of a node's neighbors that are in memory with it.
    near: f64,
}

impl InMemory {
    /// Of a run on the parts `made`; none for other strategies.
    pub fn of(
        config: &RunConfig,
        dataset: Option<&Dataset>,
        made: Option<&PartitionManifest>,
    ) -> Option<Self> {
        let (Strategy::Disaggregated, Some(made)) = (config.train.strategy, made) else {
            return None;
        };
        let slots = config.disaggregated.slots.min(made.parts);
        let resident = (slots * config.resident_of(made.parts)).min(made.parts);
        let edges: u64 = made.cut.iter().flatten().sum();
        let features: u64 = dataset.iter().flat_map(|data| features(data)).sum();
        let near = among(made, resident);
        let held = (resident + slots).min(made.parts) as f64 / made.parts as f64;
        let of_nodes = held * features as f64 + nodes(made, held, resident);
        // Lists of two eras, of the edges among the parts, with ids beside them where others follow.
        let of_edge = if resident < made.parts { 8.0 } else { 4.0 };
        let lists = 2.0 * of_edge * near * edges as f64 * resident as f64 / made.parts as f64;
        // Rows are read when those before are written.
        let rows: f64 = dataset.iter().map(|data| embeddings(config, data)).sum();
        let rows = rows * resident as f64 / made.parts as f64;
        let bytes = of_nodes + lists + rows;
        Some(Self { parts: made.parts, resident, slots, bytes, near })
    }

    /// The line on them.
    pub fn line(&self) -> String {
        format!(
            "{} of {} parts in memory at a time, {} of them replaced at a time: about {:.0} MB beside batches; {:.0} % of a \
             node's neighbors are in memory with it",
            self.resident,
            self.parts,
            self.slots,
            self.bytes / 1e6,
            100.0 * self.near
        )
    }

    /// A warning if they take more than is left with batches and evaluation beside them.
    pub fn warning(&self, memory: Available) -> Option<String> {
        if self.bytes <= SHARE * memory.left as f64 {
            return None;
        }
        let place = if memory.grouped { "in this control group" } else { "on this host" };
        Some(format!(
            "parts in memory take about {}, and {} are left {place}, batches and evaluation included: have fewer of them \
             (disaggregated.resident, disaggregated.slots), or more and smaller ones",
            gib(self.bytes),
            gib(memory.left as f64)
        ))
    }
}

/// Bytes of the nodes beside their features: of the share `held` of them in parts, and of a graph with room for the
/// largest part of each type in each of `resident` places.
fn nodes(made: &PartitionManifest, held: f64, resident: usize) -> f64 {
    let of_type = |(number, node): (usize, &PartitionedType)| {
        let into = made.edge_types.iter().filter(|edge| edge.triple.dst == node.name).count();
        let lists = if made.edge_types.is_empty() { 1.0 } else { into as f64 };
        let largest = made.part_counts.iter().filter_map(|part| part.core.get(number)).max();
        let bytes = |[id, list]: [f64; 2]| id + list * lists;
        let places = resident as f64 * largest.copied().unwrap_or(0) as f64;
        held * node.count as f64 * bytes(OF_PART) + places * bytes(OF_GRAPH)
    };
    made.node_types.iter().enumerate().map(of_type).sum()
}

/// Bytes of the feature columns of all node types.
fn features(dataset: &Dataset) -> Vec<u64> {
    let types = dataset.manifest().node_types.iter();
    types.flat_map(feature_columns).map(ColumnSpec::num_bytes).collect()
}

fn feature_columns(node: &NodeType) -> impl Iterator<Item = &ColumnSpec> {
    node.columns.iter().filter(|column| column.name.split('.').next() == Some("features"))
}

/// Bytes of embeddings in files of the nodes without features, and of the state of their optimizer.
fn embeddings(config: &RunConfig, dataset: &Dataset) -> f64 {
    if config.embedding.store != RowStore::File {
        return 0.0;
    }
    let bare = |node: &&NodeType| feature_columns(node).next().is_none();
    let bare = dataset.manifest().node_types.iter().filter(bare);
    let nodes: u64 = bare.map(|node| node.count).sum();
    let width = config.model.input_width();
    let optimizer = config.embedding.optimizer(&config.optimizer);
    let state = optimizer.map_or(0, |optimizer| optimizer.state_len(width));
    4.0 * (width + state + 1) as f64 * nodes as f64
}

/// Expected share of a node's in-neighbors that are in memory with it: those of its own part, and of the others as many as
/// parts.
fn among(made: &PartitionManifest, resident: usize) -> f64 {
    let edges: u64 = made.cut.iter().flatten().sum();
    let inside: u64 = (0..made.parts).map(|part| made.cut[part][part]).sum();
    let own = inside as f64 / edges.max(1) as f64;
    let others = (resident.max(1) - 1) as f64 / (made.parts.max(2) - 1) as f64;
    own + (1.0 - own) * others
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_beyond_the_memory_are_warned_of() {
        let parts = InMemory { parts: 32, resident: 8, slots: 1, bytes: 3e9, near: 0.25 };
        assert!(parts.line().contains("8 of 32 parts") && parts.line().contains("25 %"));
        let memory = |left| Available { limit: 8 << 30, left, grouped: true };
        assert_eq!(parts.warning(memory(6 << 30)), None);
        let text = parts.warning(memory(3 << 30)).unwrap();
        assert!(text.contains("this control group") && text.contains("resident"), "{text}");
    }
}
