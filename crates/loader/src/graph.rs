//! The graph that batches are made of: lists, features and labels on disk.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gnarl_common::memory::{SparePages, available};
use gnarl_common::{Buf, Context, Error, Result};
use gnarl_graph::blocks::Schema;
use gnarl_graph::times::edge_times;
use gnarl_graph::{Dataset, Features, Labels, Triple};
use gnarl_sample::{HeteroSampleGraph, Weights};
use gnarl_store::{FeatureStore, MappedFeatures, Normalize, Rows, begin_random_reads};

use crate::lists::Lists;
use crate::rows::{FeatureRows, LabelRows};

/// The part of the memory that is free which rows of features may take where files exceed it: one in so many. A model comes
/// later, and other processes may load the same dataset beside this one.
const CACHED: u64 = 8;

/// A dataset with the columns that batches read, mapped.
pub struct LoaderGraph {
    /// The whole dataset, or the catalog of the nodes of a partitioned one.
    dataset: Dataset,
    /// The folder that it is known by, and its name.
    place: PathBuf,
    name: String,
    pub(crate) lists: Lists,
    features: Vec<Option<Box<dyn FeatureStore>>>,
    labels: Vec<Option<Labels>>,
    node_times: Vec<Option<Buf<i64>>>,
    edge_columns: Vec<EdgeColumns>,
    /// Number of edges of each type, where it is known.
    edge_counts: Vec<Option<u64>>,
    /// Servers that make batches, in place of this process.
    #[cfg(feature = "serve")]
    batch_servers: Option<Arc<Vec<gnarl_serve::Client>>>,
    /// True if files exceed the memory that is free, so that many rows are read at a time.
    ahead: bool,
}

impl fmt::Debug for LoaderGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoaderGraph").field("place", &self.place).finish_non_exhaustive()
    }
}

/// The columns of an edge type, by rows.
#[derive(Default)]
pub(crate) struct EdgeColumns {
    features: Option<MappedFeatures>,
    weights: Option<Weights>,
    times: Option<Buf<i64>>,
}

impl EdgeColumns {
    /// No columns of so many types.
    #[cfg(feature = "serve")]
    pub fn none(types: usize) -> Vec<Self> {
        let mut columns = Vec::new();
        columns.resize_with(types, Self::default);
        columns
    }

    fn open(dataset: &Dataset, triple: &Triple) -> Result<Self> {
        let features = dataset.edge_column(triple, "features")?;
        let features =
            features.map(|column| MappedFeatures::new(Features::Dense(column), Normalize::None));
        let weights = dataset.edge_column(triple, "weight")?;
        Ok(Self {
            features: features.transpose()?,
            weights: weights.map(|column| Weights::of(&column)).transpose()?,
            times: edge_times(dataset, triple)?,
        })
    }
}

/// Nodes of one type that batches are made around.
#[derive(Debug, Clone)]
pub struct Seeds {
    /// Number of the node type.
    pub node_type: usize,
    /// The nodes; a node may be there several times.
    pub nodes: Arc<Vec<u32>>,
    /// The time as of which each is seen, in temporal sampling; by default its own.
    pub times: Option<Arc<Vec<i64>>>,
}

impl Seeds {
    /// Nodes of the type of that number.
    pub fn new(node_type: usize, nodes: Vec<u32>) -> Self {
        Self { node_type, nodes: Arc::new(nodes), times: None }
    }

    /// The nodes as of these times.
    ///
    /// # Errors
    /// If there are not as many times as nodes.
    pub fn at(self, times: Vec<i64>) -> Result<Self> {
        if times.len() != self.nodes.len() {
            let message = format!("{} times for {} input nodes", times.len(), self.nodes.len());
            return Err(Error::usage(message).hint("give one time for each"));
        }
        Ok(Self { times: Some(Arc::new(times)), ..self })
    }
}

impl LoaderGraph {
    /// Opens the lists, features and labels of a dataset.
    ///
    /// # Errors
    /// If a column is damaged, a node type has more nodes than 32-bit ids, or the dataset is a part of a partitioned one.
    pub fn open(dataset: &Dataset) -> Result<Self> {
        Self::open_cached(dataset, None)
    }

    /// [`Self::open`] with the bytes of memory in which rows of features stay that are read often, where files are larger
    /// than memory: by default an eighth of what is free.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_cached(dataset: &Dataset, cache: Option<u64>) -> Result<Self> {
        let free = available().map_or(u64::MAX, |memory| memory.left);
        Self::open_in(dataset, free, cache.unwrap_or(free / CACHED))
    }

    /// [`Self::open_cached`] where so many bytes of memory are free.
    fn open_in(dataset: &Dataset, free: u64, cache: u64) -> Result<Self> {
        let lists = HeteroSampleGraph::open(dataset)?;
        if (0..lists.schema().node_types().len()).any(|node_type| lists.is_part(node_type)) {
            let place = dataset.dir().display();
            return Err(Error::usage(format!("{place} is a part of a partitioned dataset"))
                .hint("open the folder of all parts, which has partition.json"));
        }
        let mut features = Vec::new();
        for node_type in lists.schema().node_types() {
            let stored = dataset.features(node_type)?;
            let opened = stored.map(|stored| MappedFeatures::new(stored, Normalize::None));
            let doing = || format!("node type '{node_type}'");
            features.push(opened.transpose().while_doing(doing)?);
        }
        let columns = |triple: &Triple| {
            EdgeColumns::open(dataset, triple).while_doing(|| format!("edge type {triple}"))
        };
        let edge_columns =
            lists.schema().edge_types().iter().map(columns).collect::<Result<_>>()?;
        let count = |triple: &Triple| Ok(Some(dataset.manifest().edge_type(triple)?.count));
        let counts = lists.schema().edge_types().iter().map(count).collect::<Result<_>>()?;
        let rows = features.iter().flatten().map(MappedFeatures::num_bytes).sum::<u64>();
        let bytes = lists.num_bytes() as u64 + rows;
        // The rest is for batches and the model.
        let ahead = bytes > free / 4 * 3;
        let lists = match ahead {
            true => {
                let stores =
                    features.iter().flatten().map(|features| features as &dyn FeatureStore);
                begin_random_reads(stores, cache)?;
                // Others are in the system's cache once they were read, as features do not take their place.
                match lists.num_bytes() as u64 > free / 2 {
                    true => {
                        lists.expect_random_reads();
                        lists.read_ahead()
                    }
                    false => lists,
                }
            }
            false => lists,
        };
        let boxed = |features: MappedFeatures| Box::new(features) as Box<dyn FeatureStore>;
        let features = features.into_iter().map(|features| features.map(boxed)).collect();
        let own = Self::of_catalog(
            dataset,
            dataset.dir(),
            Lists::Whole(lists),
            features,
            (edge_columns, counts),
        )?;
        Ok(Self { ahead, ..own })
    }

    /// A graph of lists and features, with the labels, times and splits of a dataset.
    pub(crate) fn of_catalog(
        dataset: &Dataset,
        place: &Path,
        lists: Lists,
        features: Vec<Option<Box<dyn FeatureStore>>>,
        (edge_columns, edge_counts): (Vec<EdgeColumns>, Vec<Option<u64>>),
    ) -> Result<Self> {
        let mut labels = Vec::new();
        let mut node_times = Vec::new();
        for node_type in lists.schema().node_types() {
            let found = match dataset.labels(node_type)? {
                None => dataset.values(node_type)?,
                found => found,
            };
            labels.push(found);
            node_times.push(gnarl_graph::times::node_times(dataset, node_type)?);
        }
        Ok(Self {
            dataset: dataset.clone(),
            place: place.into(),
            name: dataset.manifest().name.clone(),
            lists,
            features,
            labels,
            node_times,
            edge_columns,
            edge_counts,
            #[cfg(feature = "serve")]
            batch_servers: None,
            ahead: false,
        })
    }

    /// The folder that it was opened from.
    pub fn dir(&self) -> &Path {
        &self.place
    }

    /// The graph by another name.
    #[cfg(feature = "serve")]
    pub(crate) fn named(self, name: String) -> Self {
        Self { name, ..self }
    }

    /// The name of the dataset.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The graph with servers that make its batches.
    #[cfg(feature = "serve")]
    pub(crate) fn with_batch_servers(self, servers: Vec<gnarl_serve::Client>) -> Self {
        Self { batch_servers: Some(Arc::new(servers)), ..self }
    }

    /// Servers that make batches, in place of this process.
    #[cfg(feature = "serve")]
    pub(crate) fn batch_servers(&self) -> Option<&Arc<Vec<gnarl_serve::Client>>> {
        self.batch_servers.as_ref()
    }

    /// A number that differs between partitions; 0 of a whole graph.
    #[cfg(feature = "serve")]
    pub(crate) fn parts_key(&self) -> u64 {
        match &self.lists {
            Lists::Parts(parts) => parts.key,
            Lists::Whole(_) => 0,
        }
    }

    /// Rejects connections of another process.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] after a fork.
    #[cfg(feature = "serve")]
    pub(crate) fn check_process(&self) -> Result<()> {
        self.lists.check_process()
    }

    /// Rejects parts, where `what` is of the whole graph.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] for parts.
    pub fn check_whole(&self, what: &str) -> Result<()> {
        self.lists.whole(what).map(drop)
    }

    /// Returns whether parts of it are at servers.
    pub fn is_remote(&self) -> bool {
        self.lists.is_remote()
    }

    /// Number of edges of a type, where it is known.
    pub fn num_edges(&self, edge_type: usize) -> Option<u64> {
        self.edge_counts[edge_type]
    }

    /// The dataset; of a partitioned one the catalog of its nodes.
    pub fn dataset(&self) -> &Dataset {
        &self.dataset
    }

    /// The node and edge types.
    pub fn schema(&self) -> &Arc<Schema> {
        self.lists.schema()
    }

    /// Number of nodes of a type.
    pub fn num_nodes(&self, node_type: usize) -> usize {
        self.lists.num_nodes(node_type)
    }

    /// Width of the features of a node type, if it has any.
    pub fn feature_width(&self, node_type: usize) -> Option<usize> {
        self.features[node_type].as_ref().map(|features| features.width())
    }

    /// All nodes of a type.
    pub fn all(&self, node_type: usize) -> Seeds {
        Seeds::new(node_type, (0..self.num_nodes(node_type) as u32).collect())
    }

    /// The nodes of a split.
    ///
    /// # Errors
    /// With the names of those that there are, if there is none of that name.
    pub fn split(&self, node_type: usize, name: &str) -> Result<Seeds> {
        let type_name = &self.schema().node_types()[node_type];
        let Some(ids) = self.dataset.split(type_name, name)? else {
            let known = self.dataset.split_names(type_name)?;
            let place = self.dataset.dir().display();
            let hint = match &known[..] {
                [] => "it has no splits: give the nodes themselves".to_owned(),
                known => format!("it has: {}", known.join(", ")),
            };
            return Err(Error::usage(format!("{place}: unknown split '{name}'")).hint(hint));
        };
        Ok(Seeds::new(node_type, ids.iter().map(|&id| id as u32).collect()))
    }

    /// Nodes by their dataset ids.
    ///
    /// # Errors
    /// Naming the first that does not exist.
    pub fn seeds(&self, node_type: usize, ids: &[i64]) -> Result<Seeds> {
        let count = self.num_nodes(node_type);
        let node = |(at, &id): (usize, &i64)| match usize::try_from(id) {
            Ok(node) if node < count => Ok(node as u32),
            _ => {
                let name = &self.schema().node_types()[node_type];
                let message =
                    format!("input node {at} is {id}, but type '{name}' has {count} nodes");
                Err(Error::usage(message)
                    .hint("nodes are given by their numbers in the dataset, from 0"))
            }
        };
        let nodes = ids.iter().enumerate().map(node).collect::<Result<Vec<u32>>>()?;
        Ok(Seeds::new(node_type, nodes))
    }

    /// The features of `nodes`, a row of `f32` each, if their type has any, in memory of `spare`. Sparse ones are filled up
    /// with zeros.
    ///
    /// # Errors
    /// If a node has no row.
    pub fn features_of(
        &self,
        node_type: usize,
        nodes: &[u32],
        spare: &Arc<SparePages>,
    ) -> Result<Option<FeatureRows>> {
        let Some(features) = &self.features[node_type] else { return Ok(None) };
        self.lists.check_process()?;
        let width = features.width();
        let mut values = spare.table(nodes.len() * width)?;
        if features.is_sparse() {
            values.fill(0.0);
            let found = match self.ahead {
                true => features.gather_ahead(nodes)?,
                false => features.gather(nodes)?,
            };
            fill(&found, width, &mut values);
        } else if self.ahead {
            features.gather_ahead_into(nodes, &mut values)?;
        } else {
            features.gather_into(nodes, &mut values)?;
        }
        Ok(Some(FeatureRows { values, width }))
    }

    /// The labels of `nodes`, if their type has any.
    pub fn labels_of(&self, node_type: usize, nodes: &[u32]) -> Option<LabelRows> {
        Some(match self.labels[node_type].as_ref()? {
            Labels::Single { classes, .. } => {
                let classes = &classes[..];
                LabelRows::Classes(
                    nodes.iter().map(|&node| classes[node as usize].into()).collect(),
                )
            }
            Labels::Multi { values, tasks } => {
                let of = |&node: &u32| &values[node as usize * tasks..(node as usize + 1) * tasks];
                let rows = nodes.iter().flat_map(of).map(|&value| value.into()).collect();
                LabelRows::Tasks(rows, *tasks)
            }
            Labels::Values { values } => LabelRows::Values(pick(values, nodes)),
        })
    }
}

impl LoaderGraph {
    /// Seeds with the times as of which they are seen: given ones, or their own.
    ///
    /// # Errors
    /// If there are neither.
    pub(crate) fn timed(&self, seeds: Seeds) -> Result<Seeds> {
        if seeds.times.is_some() {
            return Ok(seeds);
        }
        let Some(times) = self.times_of(seeds.node_type, &seeds.nodes) else {
            let name = &self.schema().node_types()[seeds.node_type];
            let message = format!("input nodes of type '{name}' have no times");
            return Err(Error::usage(message).hint("give the time of each"));
        };
        seeds.at(times)
    }

    /// The times of `nodes`, if their type has some.
    pub fn times_of(&self, node_type: usize, nodes: &[u32]) -> Option<Vec<i64>> {
        self.node_times[node_type].as_ref().map(|times| pick(times, nodes))
    }

    /// Width of the features of an edge type, if it has any.
    pub fn edge_feature_width(&self, edge_type: usize) -> Option<usize> {
        self.edge_columns[edge_type].features.as_ref().map(FeatureStore::width)
    }

    /// The features of edges by their rows, a row of `f32` each, if their type has any, in memory of `spare`.
    ///
    /// # Errors
    /// If an edge has no row.
    pub fn edge_features_of(
        &self,
        edge_type: usize,
        edges: &[u64],
        spare: &Arc<SparePages>,
    ) -> Result<Option<FeatureRows>> {
        let Some(features) = &self.edge_columns[edge_type].features else { return Ok(None) };
        let width = features.width();
        let mut values = spare.table(edges.len() * width)?;
        if width > 0 {
            let mut each = edges.iter().zip(values.chunks_exact_mut(width));
            each.try_for_each(|(&edge, row)| features.copy_row(edge, row))?;
        }
        Ok(Some(FeatureRows { values, width }))
    }

    /// Sources and destinations of all edges of a type, by their rows.
    ///
    /// # Errors
    /// If a list is not inside the graph.
    pub fn edges_of(&self, edge_type: usize) -> Result<(Vec<i64>, Vec<i64>)> {
        let lists = self.lists.whole("lists of all edges")?.csc(edge_type);
        let mut ends = (vec![0; lists.num_edges()], vec![0; lists.num_edges()]);
        let mut position = 0;
        for dst in 0..lists.num_dst() as u32 {
            for &src in lists.sources(dst) {
                let row = lists.edge.as_ref().map_or(position, |rows| rows.get(position));
                let (Some(source), Some(destination)) =
                    (ends.0.get_mut(row as usize), ends.1.get_mut(row as usize))
                else {
                    return Err(Error::invalid(format!("edge row {row} does not exist")));
                };
                *source = src.into();
                *destination = dst.into();
                position += 1;
            }
        }
        Ok(ends)
    }

    /// The weights of edges by their rows, if their type has some.
    pub fn weights_of(&self, edge_type: usize, edges: &[u64]) -> Option<Vec<f32>> {
        let weights = self.edge_columns[edge_type].weights.as_ref()?;
        Some(edges.iter().map(|&edge| weights.get(edge as usize)).collect())
    }

    /// The times of edges by their rows, if their type has some.
    pub fn edge_times_of(&self, edge_type: usize, edges: &[u64]) -> Option<Vec<i64>> {
        let times = self.edge_columns[edge_type].times.as_ref()?;
        Some(edges.iter().map(|&edge| times[edge as usize]).collect())
    }
}

fn pick<T: Copy>(values: &[T], nodes: &[u32]) -> Vec<T> {
    nodes.iter().map(|&node| values[node as usize]).collect()
}

/// Writes sparse rows into rows of zeros.
fn fill(rows: &Rows, width: usize, out: &mut [f32]) {
    let Rows::Sparse { indptr, indices, values } = rows else { return };
    for (range, row) in indptr.windows(2).zip(out.chunks_exact_mut(width.max(1))) {
        let range = range[0] as usize..range[1] as usize;
        for (&column, &value) in indices[range.clone()].iter().zip(&values[range]) {
            row[column as usize] = value;
        }
    }
}

#[cfg(test)]
mod tests;
