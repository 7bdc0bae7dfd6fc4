//! Parts read into memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use gnarl_common::memory::{SparePages, available, gib};
use gnarl_common::{Buf, Context, Element, Error, Result};
use gnarl_config::RunConfig;
use gnarl_graph::blocks::Schema;
use gnarl_graph::{ColumnSpec, Dataset};
use gnarl_partition::{BucketFiles, LoadedBucket, PartLayout, PartitionedDataset, degree_column};
use gnarl_sample::{Buckets, PartNodes};
use gnarl_store::{MappedFeatures, Normalize};
use rayon::prelude::*;

use super::rooms::Room;

/// The files of parts of layout `storage`.
#[derive(Debug)]
pub(crate) struct StoredParts {
    partition: PartitionedDataset,
    /// True if files are read through the system's cache, or are in none.
    cached: bool,
    schema: Arc<Schema>,
    normalize: Normalize,
    /// Those of each edge type.
    buckets: Vec<BucketFiles>,
    /// Bytes read since they were last asked for.
    read: AtomicU64,
    /// Most nodes of each type in a part.
    largest: Vec<usize>,
    /// Memory of parts that have left, for those that come.
    spare: Arc<SparePages>,
}

/// A part in memory.
#[derive(Debug)]
pub(crate) struct LoadedPart {
    pub nodes: Arc<PartNodes>,
    /// Features of each node type that has any.
    pub features: Vec<Option<Arc<MappedFeatures>>>,
    _room: Room,
}

impl LoadedPart {
    /// Nodes and features of a part that takes up `room`.
    pub fn new(nodes: PartNodes, features: Vec<Option<Arc<MappedFeatures>>>, room: Room) -> Self {
        Self { nodes: Arc::new(nodes), features, _room: room }
    }
}

impl StoredParts {
    /// The parts of `partition`.
    ///
    /// # Errors
    /// If they are of another layout, or edges have weights.
    pub fn open(config: &RunConfig, partition: &PartitionedDataset) -> Result<Self> {
        partition
            .check_layout(PartLayout::Storage)
            .while_doing(|| "train.strategy = 'disaggregated' has parts in memory")?;
        let manifest = partition.manifest();
        if let Some(edge) = manifest.edge_types.iter().find(|edge| edge.is_weighted()) {
            let triple = &edge.triple;
            return Err(Error::usage(format!(
                "train.strategy = 'disaggregated' has no weights of edges, and edges of type '{triple}' have some"
            ))
            .hint("set train.strategy to 'gradient', or import the graph without weights"));
        }
        if let Some(part) = (0..partition.num_parts()).find(|&part| !partition.has_part(part)) {
            let dir = partition.dir().display();
            return Err(Error::usage(format!("{dir}: the files of part {part} are not here"))
                .hint(
                    "train.strategy = 'disaggregated' reads all parts in turns: copy them here",
                ));
        }
        let schema = partition.schema()?;
        let buckets = partition.bucket_files(schema.edge_types())?;
        let types = schema.node_types().len();
        if manifest.part_counts.iter().any(|part| part.core.len() != types) {
            let place = partition.dir().display();
            let message = format!("{place}: partition.json has counts of other node types");
            return Err(Error::invalid(message).hint("partition the graph again"));
        }
        let resident = config.disaggregated.slots * (config.resident_of(partition.num_parts()) + 1);
        let uncached = uncached(partition, resident)?;
        let most = |of: usize| manifest.part_counts.iter().map(|part| part.core[of]).max();
        Ok(Self {
            cached: uncached.is_none(),
            largest: (0..types).map(|of| most(of).unwrap_or(0) as usize).collect(),
            schema: Arc::new(schema),
            normalize: config.dataset.normalize,
            buckets,
            read: AtomicU64::new(0),
            spare: Arc::default(),
            partition: uncached.unwrap_or_else(|| partition.clone()),
        })
    }

    /// The node and edge types.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// Most nodes of each type in a part.
    pub fn largest(&self) -> &[usize] {
        &self.largest
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
            let dataset = self.partition.part_in_memory(part, &self.spare)?;
            let schema = &self.schema;
            let types = schema.node_types();
            let ids = types.par_iter().map(|name| column(&dataset, name, "orig_id"));
            let ids: Vec<Buf<u64>> = ids.collect::<Result<_>>()?;
            self.check_counts(part, &ids)?;
            let degrees = schema.edge_types().par_iter().map(|triple| {
                let name = degree_column(schema.edge_types().len(), triple);
                column(&dataset, &triple.dst, &name)
            });
            let degrees: Vec<Buf<u32>> = degrees.collect::<Result<_>>()?;
            let features = types.par_iter().map(|name| {
                let features = dataset.features(name)?;
                let features = features.map(|found| MappedFeatures::new(found, self.normalize));
                Ok(features.transpose()?.map(Arc::new))
            });
            let features: Vec<Option<Arc<MappedFeatures>>> = features.collect::<Result<_>>()?;
            let of_nodes: usize = ids.iter().map(|ids| 8 * ids.len()).sum();
            let of_edges: usize = degrees.iter().map(|degrees| 4 * degrees.len()).sum();
            let rows: u64 = features.iter().flatten().map(|features| features.num_bytes()).sum();
            self.read.fetch_add((of_nodes + of_edges) as u64 + rows, Ordering::Relaxed);
            Ok(LoadedPart::new(PartNodes { part, ids, degrees }, features, room))
        };
        load().while_doing(|| format!("reading part {part} into memory"))
    }

    /// Begins to read parts that soon come into memory, unless it is past the system's cache, and their edges among the `parts` that are there with them. What cannot
    /// be read is told when they come.
    pub fn expect(&self, coming: &[usize], parts: &[usize]) {
        for &part in coming.iter().filter(|_| self.cached) {
            if let Err(error) = self.partition.expect_part(part, &is_read) {
                tracing::debug!("part {part} is not read ahead: {error}");
            }
        }
        let new = |part: &usize| coming.contains(part);
        let pairs = parts.iter().flat_map(|&i| parts.iter().map(move |&j| (i, j)));
        let pairs: Vec<_> = pairs.filter(|(i, j)| new(i) || new(j)).collect();
        self.buckets.iter().for_each(|buckets| buckets.expect(&pairs));
    }

    /// Rejects a part with other numbers of nodes than the partition says.
    fn check_counts(&self, part: usize, ids: &[Buf<u64>]) -> Result<()> {
        let counts = &self.partition.manifest().part_counts[part].core;
        let types = self.schema.node_types().iter().zip(counts.iter().zip(ids));
        for (name, (&count, ids)) in types {
            if count != ids.len() as u64 {
                let found = ids.len();
                let message = format!(
                    "{found} nodes of type '{name}', where partition.json has {count}: this is a part of another partition"
                );
                return Err(Error::invalid(message).hint("copy the part of this partition"));
            }
        }
        Ok(())
    }
}

/// Returns whether a column of nodes is read into memory.
fn is_read(column: &ColumnSpec) -> bool {
    let name = column.name.split('.').next().unwrap_or_default();
    ["orig_id", "degree", "features"].contains(&name)
}

/// The parts of `partition` read past the system's cache, if it has no room for them beside the `resident` ones in memory:
/// what is read in turns has left it when it is read again.
///
/// # Errors
/// If a part's manifest is damaged.
fn uncached(partition: &PartitionedDataset, resident: usize) -> Result<Option<PartitionedDataset>> {
    let Some((uncached, memory)) = partition.uncached().zip(available()) else { return Ok(None) };
    let parts = partition.num_parts();
    let mut bytes = 0;
    for part in 0..parts {
        let part = partition.part(part)?;
        let columns = part.manifest().node_types.iter().flat_map(|of| &of.columns);
        bytes += columns.filter(|column| is_read(column)).map(ColumnSpec::num_bytes).sum::<u64>();
    }
    let in_memory = bytes / parts.max(1) as u64 * resident.min(parts) as u64;
    if bytes + in_memory <= memory.left {
        return Ok(None);
    }
    tracing::info!(
        "parts have {} of nodes, and {} of memory are left: they are read past the system's cache",
        gib(bytes as f64),
        gib(memory.left as f64)
    );
    Ok(Some(uncached))
}

/// A column of the nodes of a type.
fn column<T: Element>(part: &Dataset, node_type: &str, name: &str) -> Result<Buf<T>> {
    let column = part.node_column(node_type, name)?;
    let lacks = || Error::invalid(format!("nodes of type '{node_type}': column {name} is missing"));
    column.ok_or_else(lacks)?.values()
}

/// Edges by the parts of their endpoints.
impl Buckets for StoredParts {
    fn len(&self, edge_type: usize, (i, j): (usize, usize)) -> usize {
        self.buckets[edge_type].len(i, j)
    }

    fn read(&self, edge_type: usize, wanted: &[(usize, usize)]) -> Result<Vec<LoadedBucket>> {
        let buckets = self.buckets[edge_type].read(wanted)?;
        let bytes = buckets.iter().map(LoadedBucket::num_bytes).sum();
        self.read.fetch_add(bytes, Ordering::Relaxed);
        Ok(buckets)
    }
}
