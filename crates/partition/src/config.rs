//! The configuration of a partitioning.

use gnarl_common::error::Result;
use gnarl_graph::Dataset;
use serde_json::json;

use crate::auto::{Parts, data_size};
use crate::balance::constraint::Constraint;
use crate::edge_cut::partitioner::PartitionOptions;
use crate::part_layout::PartLayout;
use crate::read::chunk::Chunk;

/// How a dataset is partitioned.
#[derive(Debug, Clone)]
pub struct PartitionConfig {
    /// Name of the partitioner.
    pub algorithm: String,
    /// Number of parts.
    pub parts: Parts,
    /// Neighbours kept: with `k ≥ 1`, nodes within distance `k − 1` of a part's core have their
    /// full in-neighbour lists there, sources outside being HALO nodes. With 0 every cut edge
    /// stays on one side only.
    pub hops: u32,
    /// Seed of every random choice.
    pub seed: u64,
    /// How much larger than the mean a part may be.
    pub balance: f64,
    /// SPRING's τ_vol, see [`PartitionOptions::tau_vol`].
    pub tau_vol: Option<u64>,
    /// Edges GREM looks at together.
    pub chunk: Chunk,
    /// GREM: passes at each level, see [`PartitionOptions::passes`].
    pub passes: u32,
    /// GREM: leaves nodes where they were first put.
    pub freeze: bool,
    /// What is balanced, see [`PartitionOptions::constraints`].
    pub constraints: Option<Vec<Constraint>>,
    /// What a part holds. A vertex cut takes the name of a partitioner of edges.
    pub layout: PartLayout,
    /// Also group the edges by the parts of their ends, see [`EdgeBuckets`](crate::EdgeBuckets).
    pub buckets: bool,
    /// Bytes that may be held.
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
    /// What the partitioner is told, as `partition.json` keeps it.
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

/// What the partitioner is told of `dataset`.
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
