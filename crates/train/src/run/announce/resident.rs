//! The line on parts in memory.

use gnarl_config::{RunConfig, Strategy};
use gnarl_graph::Dataset;
use gnarl_partition::PartitionManifest;

/// Bytes of a node beside its features: ids and degrees, of the part and of the graph in memory, and the offset of its list.
const NODE: f64 = 12.0 + 12.0 + 8.0;

/// How many parts are in memory, what they take, and which share of a node's neighbors is among them; none for other
/// strategies.
pub(super) fn line(
    config: &RunConfig,
    dataset: Option<&Dataset>,
    made: Option<&PartitionManifest>,
) -> Option<String> {
    let (Strategy::Disaggregated, Some(made)) = (config.train.strategy, made) else { return None };
    let slots = config.disaggregated.slots.min(made.parts);
    let resident = (slots * config.disaggregated.resident_of(made.parts)).min(made.parts);
    let edges: u64 = made.cut.iter().flatten().sum();
    let nodes: u64 = made.node_types.iter().map(|node| node.count).sum();
    let features: u64 = dataset.iter().flat_map(|data| features(data)).sum();
    let near = among(made, resident);
    let of_nodes = features as f64 + NODE * nodes as f64;
    let parts = (resident + slots).min(made.parts.max(resident)) as f64 / made.parts as f64;
    // Lists of two eras, of the edges among the parts.
    let lists = 2.0 * 4.0 * near * edges as f64 * resident as f64 / made.parts as f64;
    Some(format!(
        "{resident} of {} parts in memory at a time, {slots} of them replaced at a time: about {:.0} MB beside batches; \
         {:.0} % of a node's neighbors are in memory with it",
        made.parts,
        (parts * of_nodes + lists) / 1e6,
        100.0 * near
    ))
}

/// Bytes of the feature columns of all node types.
fn features(dataset: &Dataset) -> Vec<u64> {
    let types = dataset.manifest().node_types.iter();
    let columns = types.flat_map(|node| &node.columns);
    let features = columns.filter(|column| column.name.split('.').next() == Some("features"));
    features.map(|column| column.num_bytes()).collect()
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
