//! A served part.

mod columns;
mod description;
mod sizes;
mod targets;

pub use description::Description;

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use arrow_array::RecordBatch;
use gnarl_common::{Context, Error, Result};
use gnarl_graph::Triple;
use gnarl_graph::triples::{Side, Triples};
use gnarl_partition::PartitionedDataset;
use gnarl_sample::local_parts;
use gnarl_sample::parts::{HopRequest, Load, LocalPart};
use gnarl_store::embedding::Embedding;
use gnarl_store::{FeatureStore, RowSource, Rows};

use crate::codec::{embedding_batch, hop_batch};
use crate::command::Column;
use crate::targets::FoundTargets;
use columns::Columns;
use targets::Targets;

/// The adjacency lists and columns of one part, mapped.
pub struct ServedPart {
    part: usize,
    /// Neighbors by edge type.
    neighbors: Vec<(Triple, LocalPart)>,
    /// Columns by node type.
    types: Vec<Columns>,
    embedding: Option<Mutex<ServedTable>>,
    targets: Option<Targets>,
}

/// Embeddings, and the last applied push of each client.
struct ServedTable {
    table: Embedding,
    taken: HashMap<u64, u64>,
}

impl ServedPart {
    /// Opens part `part` of a partitioned graph.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn open(parts: &PartitionedDataset, part: usize) -> Result<Self> {
        let read = || {
            let dataset = parts.part(part)?;
            let names = parts.manifest().node_types.iter().map(|t| t.name.as_str());
            let types = names.map(|name| Columns::open(parts, &dataset, part, name));
            let types = types.collect::<Result<Vec<_>>>()?;
            let neighbors = match &parts.edge_types()?[..] {
                [only] if types.len() == 1 => {
                    vec![(only.triple.clone(), LocalPart::open(parts, part)?)]
                }
                _ => local_parts(parts, part)?,
            };
            let targets = Targets::open(parts, part)?;
            Ok(Self { part, neighbors, types, embedding: None, targets })
        };
        read().while_doing(|| format!("opening part {part} to serve it"))
    }

    /// Adds `table`, embeddings of own nodes, which clients gather and push to.
    ///
    /// # Errors
    /// If a row is not of one of its own nodes.
    pub fn with_embedding(mut self, table: Embedding) -> Result<Self> {
        let own = self.of(None)?;
        table.ids().iter().try_for_each(|id| own.local(id).map(drop))?;
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

    /// The lists of the part's edges of a type, or of the only one.
    ///
    /// # Errors
    /// If there is no such type, or there are several and none is named.
    pub fn neighbors(&self, etype: Option<&Triple>) -> Result<&LocalPart> {
        let found = match (etype, &self.neighbors[..]) {
            (None, [(_, only)]) => Some(only),
            (None, _) => None,
            (Some(name), all) => all.iter().find(|(triple, _)| triple == name).map(|of| &of.1),
        };
        found.ok_or_else(|| {
            let text = match etype {
                Some(name) => format!("part {} has no edges of type '{name}'", self.part),
                None => format!("part {} has edges of several types", self.part),
            };
            let known: Vec<String> = self.neighbors.iter().map(|of| of.0.to_string()).collect();
            Error::usage(text).hint(format!("name one of: {}", known.join(", ")))
        })
    }

    /// The load so far, over all edge types.
    pub fn load(&self) -> Load {
        self.neighbors.iter().map(|(_, lists)| lists.load()).sum()
    }

    /// The columns of a node type, or of the only one.
    fn of(&self, ntype: Option<&str>) -> Result<&Columns> {
        let found = match (ntype, &self.types[..]) {
            (None, [only]) => Some(only),
            (None, _) => None,
            (Some(name), all) => all.iter().find(|t| t.ntype == name),
        };
        found.ok_or_else(|| self.no_type(ntype))
    }

    /// The error of a type that there is not, or that is not named.
    fn no_type(&self, ntype: Option<&str>) -> Error {
        let text = match ntype {
            Some(name) => format!("part {} has no nodes of type '{name}'", self.part),
            None => format!("part {} has nodes of several types", self.part),
        };
        let known: Vec<&str> = self.types.iter().map(|t| t.ntype.as_str()).collect();
        Error::usage(text).hint(format!("name one of: {}", known.join(", ")))
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

    /// The splits of own nodes of a type, by the codes of [`Column::Split`].
    ///
    /// # Errors
    /// If there is no such type, or there are several and none is named.
    pub fn splits(&self, ntype: Option<&str>) -> Result<&[u8]> {
        Ok(&self.of(ntype)?.splits)
    }

    /// The times of own nodes of a type, in the order of their new ids, if they have some.
    ///
    /// # Errors
    /// If there is no such type, or there are several and none is named.
    pub fn times(&self, ntype: Option<&str>) -> Result<Option<&[i64]>> {
        let own = self.of(ntype)?;
        Ok(own.times.as_ref().map(|times| &times[..own.count() as usize]))
    }

    /// Features of own nodes of a type, by dataset ids.
    ///
    /// # Errors
    /// If a node is not the part's own, or nodes have no features.
    pub fn features(&self, ntype: Option<&str>, nodes: &[u64]) -> Result<Rows> {
        let own = self.of(ntype)?;
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

    /// Number of a node type, in the order of the partition.
    ///
    /// # Errors
    /// If there is no such type.
    pub fn type_number(&self, ntype: &str) -> Result<usize> {
        let found = self.types.iter().position(|t| t.ntype == ntype);
        found.ok_or_else(|| self.no_type(Some(ntype)))
    }

    /// Copies the dense features of an own node of type number `ntype` into `out`, of the row's width.
    ///
    /// # Errors
    /// If the node is not the part's own, or nodes have no dense features.
    pub fn feature_row(&self, ntype: usize, node: u64, out: &mut [f32]) -> Result<()> {
        let own = &self.types[ntype];
        own.stored()?.row_into(own.local(node)?, out)
    }

    /// Prefetches the location of the features of a node of type number `ntype`.
    pub fn prefetch_place(&self, ntype: usize, node: u64) {
        self.types[ntype].ids.prefetch(node as usize);
    }

    /// Prefetches the features of a node of type number `ntype`.
    pub fn prefetch_row(&self, ntype: usize, node: u64) {
        let own = &self.types[ntype];
        if let (Some(features), Ok(local)) = (&own.features, own.local(node)) {
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

    /// Samples neighbors of nodes over the edges of a type, or of the only one.
    ///
    /// # Errors
    /// As [`LocalPart::draw`], or if there is no such type.
    pub fn sample(&self, etype: Option<&Triple>, request: &HopRequest) -> Result<RecordBatch> {
        hop_batch(&self.neighbors(etype)?.draw(request)?)
    }

    /// The target edges at `places` of a split (0 to 2: `train`, `valid`, `test`), as far as the part has them.
    ///
    /// # Errors
    /// If the part has no target edges, or there is no such split.
    pub fn targets(&self, split: usize, places: &[u32]) -> Result<FoundTargets> {
        self.own_targets()?.find(split, places)
    }

    /// The part's target edges of a split from the `from`-th on, at most `most`; none after the last.
    ///
    /// # Errors
    /// As [`ServedPart::targets`].
    pub fn split_targets(
        &self,
        split: usize,
        from: u64,
        most: u64,
    ) -> Result<Option<FoundTargets>> {
        self.own_targets()?.stretch(split, from, most)
    }

    /// Number of the part's target edges of a split.
    ///
    /// # Errors
    /// As [`ServedPart::targets`].
    pub(crate) fn split_len(&self, split: usize) -> Result<u64> {
        self.own_targets()?.len(split)
    }

    /// The part's target edges that match one of `keys`, see
    /// [`PartAccess::begin_known`](crate::PartAccess::begin_known).
    ///
    /// # Errors
    /// If the part has no target edges.
    pub fn known(&self, side: Side, keys: &[[u32; 2]], train: bool) -> Result<Triples> {
        Ok(self.own_targets()?.known(side, keys, train))
    }

    /// Values of the features of a target edge; 0 without features.
    pub(crate) fn target_feature_width(&self) -> usize {
        self.targets.as_ref().map_or(0, Targets::feature_width)
    }

    fn own_targets(&self) -> Result<&Targets> {
        self.targets.as_ref().ok_or_else(|| {
            Error::usage(format!("part {} has no target edges", self.part))
                .hint("partition the graph with --task RUN.toml")
        })
    }
}
