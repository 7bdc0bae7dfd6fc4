//! Measured figures of an inference.

use std::cmp::Reverse;

use gnarl_common::Result;

use crate::peers::Peers;
use crate::rows::ChunkReads;

/// Hubs that are noted.
const HUBS: usize = 10;

/// Measured figures of an inference.
#[derive(Debug, Clone, Default)]
pub struct Figures {
    /// Of each layer, the first one first.
    pub layers: Vec<LayerFigures>,
}

/// A node with many inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hub {
    /// Its inputs.
    pub inputs: u64,
    /// Its type.
    pub node_type: usize,
    /// Its number.
    pub node: u32,
}

/// Measured figures of a layer.
#[derive(Debug, Clone, Default)]
pub struct LayerFigures {
    /// Nodes it was computed for, of all types.
    pub nodes: u64,
    /// Inputs of all of them: rows that were gathered, repeated ones included.
    pub inputs: u64,
    /// Ranges that it was computed in.
    pub ranges: u64,
    /// Seconds, those of the fill included.
    pub seconds: f64,
    /// Bytes of its rows that went to a file.
    pub spilled: u64,
    /// Sweeps over rows of the layer before that made its sums.
    pub sweeps: u64,
    /// Bytes of files that they read.
    pub swept: u64,
    /// Chunks of rows of the layer before that it read, where they are read by chunks.
    pub chunks: ChunkReads,
    /// Bytes of its rows that came from other ranks, before the next layer.
    pub fetched: u64,
    /// Seconds in which they came.
    pub fill_seconds: f64,
    /// The nodes with the most inputs, the largest first.
    pub hubs: Vec<Hub>,
}

impl Figures {
    /// Those of all ranks: counts together, and the longest times.
    ///
    /// # Errors
    /// If a rank fails.
    pub(crate) fn together(mut self, peers: &Peers<'_>) -> Result<Self> {
        for layer in &mut self.layers {
            layer.set_counts(peers.sums(layer.counts())?);
            let times = peers.largest([layer.seconds, layer.fill_seconds])?;
            [layer.seconds, layer.fill_seconds] = times;
            let hubs = std::mem::take(&mut layer.hubs);
            let numbers = hubs.iter().flat_map(|h| [h.inputs, h.node_type as u64, h.node.into()]);
            for numbers in peers.all_of(&numbers.collect::<Vec<_>>())?.chunks_exact(3) {
                let (node_type, node) = (numbers[1] as usize, numbers[2] as u32);
                layer.add_hub(Hub { inputs: numbers[0], node_type, node });
            }
        }
        Ok(self)
    }
}

impl LayerFigures {
    /// Notes a node if it is among those with the most inputs; of equal ones the first.
    pub(crate) fn add_hub(&mut self, hub: Hub) {
        let order = |hub: &Hub| (Reverse(hub.inputs), hub.node_type, hub.node);
        if self.hubs.len() == HUBS && self.hubs.last().is_some_and(|last| order(last) < order(&hub))
        {
            return;
        }
        let place = self.hubs.partition_point(|other| order(other) < order(&hub));
        self.hubs.insert(place, hub);
        self.hubs.truncate(HUBS);
    }

    fn counts(&self) -> [u64; 9] {
        let ChunkReads { hits, misses } = self.chunks;
        [
            self.nodes,
            self.inputs,
            self.ranges,
            self.spilled,
            self.fetched,
            hits,
            misses,
            self.sweeps,
            self.swept,
        ]
    }

    fn set_counts(&mut self, counts: [u64; 9]) {
        let [nodes, inputs, ranges, spilled, fetched, hits, misses, sweeps, swept] = counts;
        [self.nodes, self.inputs, self.ranges] = [nodes, inputs, ranges];
        [self.spilled, self.fetched] = [spilled, fetched];
        [self.sweeps, self.swept] = [sweeps, swept];
        self.chunks = ChunkReads { hits, misses };
    }
}
