//! Parts read into memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use gnarl_common::{Context, Error, Result};
use gnarl_config::RunConfig;
use gnarl_partition::{BucketFiles, LoadedBucket, PartLayout, PartitionedDataset};
use gnarl_sample::{Buckets, PartNodes};
use gnarl_store::{MappedFeatures, Normalize};

use super::rooms::Room;

/// The files of parts of layout `storage`, of a graph without types.
#[derive(Debug)]
pub(crate) struct StoredParts {
    partition: PartitionedDataset,
    node_type: String,
    normalize: Normalize,
    buckets: BucketFiles,
    /// Bytes read since they were last asked for.
    read: AtomicU64,
    /// Most nodes of a part.
    largest: usize,
}

/// A part in memory.
#[derive(Debug)]
pub(crate) struct LoadedPart {
    pub nodes: Arc<PartNodes>,
    pub features: Arc<MappedFeatures>,
    _room: Room,
}

impl StoredParts {
    /// The parts of `partition`.
    ///
    /// # Errors
    /// If they are of another layout, have several types, or edges have weights.
    pub fn open(config: &RunConfig, partition: &PartitionedDataset) -> Result<Self> {
        partition
            .check_layout(PartLayout::Storage)
            .while_doing(|| "train.strategy = 'disaggregated' has parts in memory")?;
        let manifest = partition.manifest();
        let ([node], [edge]) = (&manifest.node_types[..], &manifest.edge_types[..]) else {
            return Err(Error::usage(
                "train.strategy = 'disaggregated' trains on graphs without types",
            ));
        };
        if edge.is_weighted() {
            return Err(Error::usage(
                "train.strategy = 'disaggregated' has no weights of edges, and these edges have some",
            )
            .hint("set train.strategy to 'gradient', or import the graph without weights"));
        }
        if let Some(part) = (0..partition.num_parts()).find(|&part| !partition.has_part(part)) {
            let dir = partition.dir().display();
            return Err(Error::usage(format!("{dir}: the files of part {part} are not here"))
                .hint(
                    "train.strategy = 'disaggregated' reads all parts in turns: copy them here",
                ));
        }
        let buckets = partition.bucket_files(&edge.triple)?;
        let largest = manifest.part_counts.iter().map(|part| part.core[0] as usize).max();
        Ok(Self {
            partition: partition.clone(),
            node_type: node.name.clone(),
            normalize: config.dataset.normalize,
            buckets,
            read: AtomicU64::new(0),
            largest: largest.unwrap_or(0),
        })
    }

    /// Most nodes of a part.
    pub fn largest(&self) -> usize {
        self.largest
    }

    /// Bytes read since this was last asked.
    pub fn take_read_bytes(&self) -> u64 {
        self.read.swap(0, Ordering::Relaxed)
    }

    /// Reads part `part` into memory, where it takes up `room`.
    ///
    /// # Errors
    /// If a file is missing, truncated or damaged, naming it.
    pub fn load(&self, part: usize, room: Room) -> Result<LoadedPart> {
        let load = || {
            let dataset = self.partition.part_in_memory(part)?;
            let column = |name: &str| {
                let column = dataset.node_column(&self.node_type, name)?;
                column.ok_or_else(|| Error::invalid(format!("column {name} is missing")))
            };
            let nodes = PartNodes {
                part,
                ids: column("orig_id")?.values()?,
                degrees: column("degree")?.values()?,
            };
            let features = dataset.features(&self.node_type)?;
            let features = features.ok_or_else(|| Error::invalid("nodes have no features"))?;
            let features = MappedFeatures::new(features, self.normalize)?;
            let of_nodes = 12 * nodes.ids.len() as u64;
            self.read.fetch_add(of_nodes + features.num_bytes(), Ordering::Relaxed);
            Ok(LoadedPart { nodes: Arc::new(nodes), features: Arc::new(features), _room: room })
        };
        load().while_doing(|| format!("reading part {part} into memory"))
    }
}

/// Edges by the parts of their endpoints.
impl Buckets for StoredParts {
    fn len(&self, i: usize, j: usize) -> usize {
        self.buckets.len(i, j)
    }

    fn read(&self, wanted: &[(usize, usize)]) -> Result<Vec<LoadedBucket>> {
        let buckets = self.buckets.read(wanted)?;
        let bytes = buckets.iter().map(LoadedBucket::num_bytes).sum();
        self.read.fetch_add(bytes, Ordering::Relaxed);
        Ok(buckets)
    }
}
