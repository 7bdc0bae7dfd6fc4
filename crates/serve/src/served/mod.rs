//! A served part.

mod columns;
mod description;

pub use description::Description;

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use arrow_array::RecordBatch;
use gnarl_common::{Context, Error, Result};
use gnarl_graph::Labels;
use gnarl_partition::PartitionedDataset;
use gnarl_sample::parts::{HopRequest, LocalPart};
use gnarl_store::embedding::Embedding;
use gnarl_store::{FeatureStore, RowSource, Rows};

use crate::codec::{embedding_batch, hop_batch};
use crate::command::Column;
use columns::Columns;

/// The adjacency lists and columns of one part, mapped.
pub struct ServedPart {
    part: usize,
    /// Neighbors, for homogeneous graphs only.
    neighbors: Option<LocalPart>,
    /// Columns by node type.
    types: Vec<Columns>,
    embedding: Option<Mutex<ServedTable>>,
}

/// Embeddings, and the last applied push of each client.
struct ServedTable {
    table: Embedding,
    taken: HashMap<u64, u64>,
}

impl ServedPart {
    /// Opens part `part` of a partitioned graph. Of heterogeneous graphs only the node columns are
    /// served, no neighbors.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn open(parts: &PartitionedDataset, part: usize) -> Result<Self> {
        let read = || {
            let dataset = parts.part(part)?;
            let names = parts.manifest().node_types.iter().map(|t| t.name.as_str());
            let types = names.map(|name| Columns::open(parts, &dataset, part, name));
            let types = types.collect::<Result<Vec<_>>>()?;
            let plain = types.len() == 1 && parts.manifest().part_counts[part].edges.len() == 1;
            let neighbors = plain.then(|| LocalPart::open(parts, part)).transpose()?;
            Ok(Self { part, neighbors, types, embedding: None })
        };
        read().while_doing(|| format!("opening part {part} to serve it"))
    }

    /// Adds `table`, embeddings of own nodes, which clients gather and push to.
    ///
    /// # Errors
    /// If a row is not of one of its own nodes.
    pub fn with_embedding(mut self, table: Embedding) -> Result<Self> {
        let own = self.of(None)?;
        table.ids().iter().try_for_each(|&id| own.local(id).map(drop))?;
        self.embedding = Some(Mutex::new(ServedTable { table, taken: HashMap::new() }));
        Ok(self)
    }

    /// Part number.
    pub fn part(&self) -> usize {
        self.part
    }

    /// The node types, and the columns of each that can be read as a whole; the type is `None` for
    /// a homogeneous graph.
    pub fn columns(&self) -> impl Iterator<Item = (Option<&str>, Column)> {
        let heterogeneous = self.types.len() > 1;
        let each = self.types.iter();
        each.flat_map(move |t| {
            t.names().map(move |name| (heterogeneous.then_some(&*t.ntype), name))
        })
    }

    /// Describes the columns of each node type.
    pub fn describe(&self) -> Vec<Description> {
        let mut all: Vec<_> = self.types.iter().map(Columns::describe).collect();
        if let (Some(_), Some(only)) = (&self.embedding, all.first_mut()) {
            only.columns.push(Column::Embedding.name().into());
        }
        all
    }

    /// The part's load counters, which remain readable while a server has the part.
    ///
    /// # Errors
    /// If the graph is heterogeneous: its neighbors are not sampled from parts.
    pub fn counters(&self) -> Result<LocalPart> {
        self.neighbors.clone().ok_or_else(|| {
            Error::usage(format!(
                "part {}: neighbors of heterogeneous graphs are not served",
                self.part
            ))
        })
    }

    /// The columns of a node type, or of the only one.
    fn of(&self, ntype: Option<&str>) -> Result<&Columns> {
        let found = match (ntype, &self.types[..]) {
            (None, [only]) => Some(only),
            (None, _) => None,
            (Some(name), all) => all.iter().find(|t| t.ntype == name),
        };
        found.ok_or_else(|| {
            let text = match ntype {
                Some(name) => format!("part {} has no nodes of type '{name}'", self.part),
                None => format!("part {} has nodes of several types", self.part),
            };
            let known: Vec<&str> = self.types.iter().map(|t| t.ntype.as_str()).collect();
            Error::usage(text).hint(format!("name one of: {}", known.join(", ")))
        })
    }

    /// Gathers values of own nodes of a type, by dataset ids.
    ///
    /// # Errors
    /// If there is no such type or column, or a node is not the part's own.
    pub fn gather(
        &self,
        ntype: Option<&str>,
        column: Column,
        nodes: &[u64],
    ) -> Result<RecordBatch> {
        if column == Column::Embedding {
            return self.embeddings(nodes);
        }
        let own = self.of(ntype)?;
        own.rows(column, &own.locals(nodes)?)
    }

    /// Embeddings of own nodes.
    fn embeddings(&self, nodes: &[u64]) -> Result<RecordBatch> {
        let table = &self.lock_table()?.table;
        let mut rows = vec![0.0; nodes.len() * table.width()];
        table.fetch(nodes, &mut rows)?;
        embedding_batch(rows, table.width())
    }

    /// Updates the embeddings of `nodes` by `grads`, `nodes × width` values, unless `from` pushed
    /// this `step` or a later one before. Returns the embeddings after the step.
    ///
    /// # Errors
    /// If nodes have no embeddings here, or lengths disagree; no row has changed then.
    pub fn push(
        &self,
        nodes: &[u64],
        grads: &[f32],
        lr: f32,
        (from, step): (u64, u64),
    ) -> Result<RecordBatch> {
        {
            let mut table = self.lock_table()?;
            let ServedTable { table, taken } = &mut *table;
            let last = taken.entry(from).or_default();
            if step > *last {
                table.update(nodes, grads, lr)?;
                *last = step;
            }
        }
        self.embeddings(nodes)
    }

    fn lock_table(&self) -> Result<MutexGuard<'_, ServedTable>> {
        let served = self.embedding.as_ref();
        let served = served.ok_or_else(|| self.types[0].without(Column::Embedding))?;
        Ok(served.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Labels of own nodes, in the order of their new ids, if nodes have labels.
    ///
    /// # Errors
    /// If nodes are of several types, as for all calls below without a type.
    pub fn labels(&self) -> Result<Option<&Labels>> {
        Ok(self.of(None)?.labels.as_ref())
    }

    /// The splits of own nodes, by the codes of [`Column::Split`].
    ///
    /// # Errors
    /// If nodes are of several types.
    pub fn splits(&self) -> Result<&[u8]> {
        Ok(&self.of(None)?.splits)
    }

    /// Features of own nodes, by dataset ids.
    ///
    /// # Errors
    /// If a node is not the part's own, or nodes have no features.
    pub fn features(&self, nodes: &[u64]) -> Result<Rows> {
        let own = self.of(None)?;
        own.stored()?.gather(&own.locals(nodes)?)
    }

    /// Gathers dense features of own nodes of a type into `out`, `nodes × width` values.
    ///
    /// # Errors
    /// If a node is not the part's own, or nodes have no dense features.
    pub fn features_into(&self, ntype: Option<&str>, nodes: &[u64], out: &mut [f32]) -> Result<()> {
        let own = self.of(ntype)?;
        own.stored()?.gather_into(&own.locals(nodes)?, out)
    }

    /// Copies the dense features of an own node into `out`, of the row's width.
    ///
    /// # Errors
    /// If the node is not the part's own, or nodes have no dense features.
    pub fn feature_row(&self, node: u64, out: &mut [f32]) -> Result<()> {
        let own = self.of(None)?;
        own.stored()?.row_into(own.local(node)?, out)
    }

    /// Prefetches the location of a node's features.
    pub fn prefetch_place(&self, node: u64) {
        if let [only] = &self.types[..] {
            gnarl_common::prefetch::item(&only.new_ids, node as usize);
        }
    }

    /// Prefetches the features of a node.
    pub fn prefetch_row(&self, node: u64) {
        if let [only] = &self.types[..]
            && let (Some(features), Ok(local)) = (&only.features, only.local(node))
        {
            features.prefetch(local);
        }
    }

    /// Number of own nodes of a type.
    ///
    /// # Errors
    /// If there is no such type.
    pub fn count(&self, ntype: Option<&str>) -> Result<u64> {
        Ok(self.of(ntype)?.count())
    }

    /// Values of own nodes of a type from the `from`-th on, at most `most`; none after the last.
    ///
    /// # Errors
    /// If there is no such type, or nodes have no such column.
    pub fn stretch(
        &self,
        ntype: Option<&str>,
        column: Column,
        from: u64,
        most: u64,
    ) -> Result<Option<RecordBatch>> {
        let own = self.of(ntype)?;
        let nodes: Vec<u32> = (from..own.count().min(from + most)).map(|v| v as u32).collect();
        if nodes.is_empty() && from > 0 {
            return Ok(None);
        }
        own.rows(column, &nodes).map(Some)
    }

    /// Samples neighbors of nodes.
    ///
    /// # Errors
    /// As [`LocalPart::draw`], or if the graph is heterogeneous.
    pub fn sample(&self, request: &HopRequest) -> Result<RecordBatch> {
        hop_batch(&self.counters()?.draw(request)?)
    }
}
