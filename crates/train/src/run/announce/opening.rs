//! The first line of a run.

use gnarl_config::{Engine, RunConfig};
use gnarl_graph::Manifest;

use crate::run::handshake::host;
use crate::run::setup::Source;
use crate::task::Sizes;

/// Version, host, ranks, seed, the dataset and its sizes.
pub(crate) fn line(config: &RunConfig, source: &Source, sizes: &Sizes, hosts: usize) -> String {
    let train = &config.train;
    let ranks = match (train.workers, train.engine) {
        (1, _) => "1 worker".to_string(),
        (ranks, Engine::Local) => format!("{ranks} workers"),
        (ranks, Engine::Mpi) => format!("{ranks} processes on {hosts} host{}", plural(hosts)),
    };
    format!(
        "gnarl {} on {}, {ranks} ({}), seed {}: {}{}",
        env!("CARGO_PKG_VERSION"),
        host(),
        train.strategy,
        train.seed,
        graph(config, source),
        splits(sizes),
    )
}

/// The dataset with its counts.
fn graph(config: &RunConfig, source: &Source) -> String {
    let path = config.dataset.path.display();
    match source {
        Source::Whole(dataset) => {
            let manifest = dataset.manifest();
            let (nodes, edges) = (grouped(manifest.num_nodes()), grouped(manifest.num_edges()));
            format!("{path}: {nodes} nodes, {edges} edges{}", features(manifest))
        }
        Source::Parts(cut) => {
            let made = cut.manifest();
            let nodes = made.node_types.iter().map(|node| node.count).sum();
            let edges = made.cut.iter().flatten().sum();
            let place = cut.dir().display();
            let nodes = grouped(nodes);
            let edges = grouped(edges);
            format!("{place}: {nodes} nodes, {edges} edges in {} parts", made.parts)
        }
    }
}

/// Widths of the features of all node types.
fn features(manifest: &Manifest) -> String {
    let width = |node: &gnarl_graph::NodeType| {
        let dense = node.columns.iter().find(|column| column.name == "features");
        let dense = dense.map(|column| column.shape.get(1).copied().unwrap_or(1));
        dense.or(node.csr_width)
    };
    match &manifest.node_types[..] {
        [node] => width(node).map_or(", no features".into(), |w| format!(", {w} features")),
        types => {
            let named = types.iter().map(|node| match width(node) {
                Some(width) => format!("{} {width}", node.name),
                None => format!("{} none", node.name),
            });
            format!(", features: {}", named.collect::<Vec<_>>().join(", "))
        }
    }
}

/// Outputs, and sizes of the splits.
fn splits(sizes: &Sizes) -> String {
    let classes = match sizes.outputs {
        0 => String::new(),
        outputs => format!(", {outputs} output{}", plural(outputs)),
    };
    let [train, valid, test] = sizes.splits.map(|count| grouped(count as u64));
    format!("{classes}; {train}, {valid} and {test} {} to train, validate and test on", sizes.of)
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// A count with commas between thousands.
pub(crate) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let first = digits.len() % 3;
    let comma = |(i, digit): (usize, char)| {
        let comma = i > 0 && i % 3 == first;
        comma.then_some(',').into_iter().chain([digit])
    };
    digits.chars().enumerate().flat_map(comma).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_have_commas() {
        let cases = [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")];
        for (count, text) in cases {
            assert_eq!(grouped(count), text);
        }
    }
}
