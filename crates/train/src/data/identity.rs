//! The identity of a run's batches.

use gnarl_config::{BatchSource, RunConfig, TaskKind};
use gnarl_partition::PartitionedDataset;
use toml::{Table, Value};

/// The graph that batches are drawn from.
#[derive(Debug, Clone)]
pub(crate) struct MessageGraph {
    /// Fingerprint of the dataset.
    pub dataset: String,
    /// The form of the message graph, where the model decides on it.
    pub form: String,
}

/// Everything that batches of a run depend on, as lines of text: settings, the graph, and its parts if it has some.
pub(crate) fn identity(
    config: &RunConfig,
    MessageGraph { dataset, form }: &MessageGraph,
    parts: Option<&PartitionedDataset>,
) -> String {
    let mut decisive = RunConfig::default();
    decisive.dataset.split.clone_from(&config.dataset.split);
    decisive.dataset.normalize = config.dataset.normalize;
    decisive.task = config.task.clone();
    decisive.sample = config.sample.clone();
    (decisive.sample.source, decisive.sample.batches) = (BatchSource::Graph, None);
    // Memory of evaluation.
    decisive.task.rank_memory = RunConfig::default().task.rank_memory;
    if config.task.kind == TaskKind::LinkPrediction {
        decisive.negatives = config.negatives.clone();
    }
    decisive.disaggregated = config.disaggregated.of_batches();
    decisive.train.seed = config.train.seed;
    decisive.train.strategy = config.train.strategy;
    let mut lines = String::new();
    list(&decisive.to_table().unwrap_or_default(), "", &mut lines);
    // The choices that follow from the model.
    let follows = [
        ("model.edge_features", config.model.edge_features.to_string()),
        ("layers", config.model.blocks().to_string()),
        ("model.name: the message graph", form.clone()),
        ("times of edges", config.samples_by_time().to_string()),
        ("held-out edges by", format!("{:?}", config.split_by()).to_lowercase()),
    ];
    for (key, value) in follows {
        lines.push_str(&format!("{key} = {value}\n"));
    }
    let made = parts.map(|parts| serde_json::to_vec(parts.manifest()).unwrap_or_default());
    let parts =
        made.map_or_else(|| "none".into(), |made| format!("{:08x}", crc32fast::hash(&made)));
    format!("gnarl = {}\ndataset = {dataset}\nparts = {parts}\n{lines}", env!("CARGO_PKG_VERSION"))
}

/// Adds a line for each key of a table, with the sections it is in after `prefix`.
fn list(table: &Table, prefix: &str, out: &mut String) {
    for (key, value) in table {
        match value {
            Value::Table(section) => list(section, &format!("{prefix}{key}."), out),
            value => out.push_str(&format!("{prefix}{key} = {value}\n")),
        }
    }
}

/// A short form of an identity.
#[cfg(feature = "serve")]
pub(crate) fn digest(identity: &str) -> u32 {
    crc32fast::hash(identity.as_bytes())
}
