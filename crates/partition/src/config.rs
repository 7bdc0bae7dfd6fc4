//! The partitioning configuration.

use gnarl_common::error::Result;
use gnarl_graph::Dataset;
use serde_json::json;

use crate::auto::{Parts, data_size};
use crate::balance::constraint::Constraint;
use crate::edge_cut::partitioner::PartitionOptions;
use crate::part_layout::PartLayout;
use crate::read::chunk::Chunk;

/// Configuration of [`partition_dataset`](crate::partition_dataset).
#[derive(Debug, Clone)]
pub struct PartitionConfig {
    /// Name of the partitioner.
    pub algorithm: String,
    /// Number of parts.
    pub parts: Parts,
    /// Hops of halo nodes: with `k ≥ 1`, nodes within distance `k − 1` of a part's core have their
    /// full in-neighbor lists there, sources outside being HALO nodes. With 0 every cut edge
    /// stays on one side only.
    pub hops: u32,
    /// Seed of every random choice.
    pub seed: u64,
    /// Maximum size of a part over the mean.
    pub balance: f64,
    /// SPRING's τ_vol, see [`PartitionOptions::tau_vol`].
    pub tau_vol: Option<u64>,
    /// GREM: edges per chunk.
    pub chunk: Chunk,
    /// GREM: passes at each level, see [`PartitionOptions::passes`].
    pub passes: u32,
    /// GREM: keeps nodes where they were first placed.
    pub freeze: bool,
    /// Balanced quantities, see [`PartitionOptions::constraints`].
    pub constraints: Option<Vec<Constraint>>,
    /// Layout of the parts. A vertex cut requires the name of an edge partitioner.
    pub layout: PartLayout,
    /// Also group the edges by the parts of their endpoints, see
    /// [`EdgeBuckets`](crate::EdgeBuckets).
    pub buckets: bool,
    /// Memory limit in bytes.
    pub memory: u64,
}

impl Default for PartitionConfig {
    fn default() -> Self {
        let options = PartitionOptions::default();
        Self {
            algorithm: "knot".into(),
            parts: Parts::Count(options.parts),
            hops: 1,
            seed: options.seed,
            balance: options.balance,
            tau_vol: options.tau_vol,
            chunk: options.chunk,
            passes: options.passes,
            freeze: options.freeze,
            constraints: options.constraints,
            layout: PartLayout::EdgeCut,
            buckets: false,
            memory: options.memory,
        }
    }
}

impl PartitionConfig {
    /// The partitioner's parameters, as stored in `partition.json`.
    pub fn parameters(&self) -> serde_json::Value {
        json!({
            "balance": self.balance,
            "tau_vol": self.tau_vol,
            "levels": self.parts.levels(),
            "chunk": self.chunk.to_string(),
            "passes": self.passes,
            "freeze": self.freeze,
            "constraints": self.constraints,
        })
    }
}

/// The partitioner's options for `dataset`.
pub(crate) fn options(dataset: &Dataset, config: &PartitionConfig) -> Result<PartitionOptions> {
    let manifest = dataset.manifest();
    let [mut train, mut valid, mut test] = [const { Vec::new() }; 3];
    let mut types = Vec::new();
    let mut first = 0;
    for t in &manifest.node_types {
        for (name, nodes) in [("train", &mut train), ("valid", &mut valid), ("test", &mut test)] {
            let ids = dataset.split(&t.name, name)?.unwrap_or_default();
            nodes.extend(ids.iter().map(|&v| first + v));
        }
        types.push(first..first + t.count);
        first += t.count;
    }
    Ok(PartitionOptions {
        parts: config.parts.resolve(data_size(manifest))?,
        seed: config.seed,
        balance: config.balance,
        tau_vol: config.tau_vol,
        chunk: config.chunk,
        passes: config.passes,
        freeze: config.freeze,
        constraints: config.constraints.clone(),
        train,
        valid,
        test,
        types,
        memory: config.memory,
    })
}
