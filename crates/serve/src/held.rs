//! A part as a server holds it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use arrow_array::RecordBatch;
use gnarl_graph::{Buf, Context, Dataset, Error, Labels, Result};
use gnarl_partition::PartitionedDataset;
use gnarl_sample::parts::{HopRequest, LocalPart};
use gnarl_store::embedding::Embedding;
use gnarl_store::{FeatureStore, MappedFeatures, Normalize, RowSource, Rows};
use serde::{Deserialize, Serialize};

use crate::codec::{embedding_batch, hop_batch, labels_batch, rows_batch, splits_batch};
use crate::command::{Column, SPLITS};

/// The lists and columns of one part, mapped.
pub struct HeldPart {
    part: usize,
    neighbors: LocalPart,
    features: Option<MappedFeatures>,
    labels: Option<Labels>,
    /// Numbers of [`Column::Split`].
    splits: Vec<u8>,
    embedding: Option<Mutex<Learnt>>,
    new_ids: Buf<u64>,
    /// New ids of its own nodes.
    own: std::ops::Range<u64>,
}

/// Learnt rows, and the last push of each client that was taken.
struct Learnt {
    table: Embedding,
    taken: HashMap<u64, u64>,
}

/// What a server says of a part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// Which part.
    pub part: usize,
    /// Nodes it owns.
    pub nodes: u64,
    /// Columns they have.
    pub columns: Vec<String>,
    /// Width of a feature row; 0 without features.
    pub feature_width: usize,
    /// Whether feature rows are sparse.
    pub sparse: bool,
    /// Number of classes, or of labels that may hold for a node; 0 without labels.
    pub outputs: usize,
}

impl HeldPart {
    /// Opens part `part` of a partitioned plain graph.
    ///
    /// # Errors
    /// If it is damaged, or has several types of nodes or edges.
    pub fn open(parts: &PartitionedDataset, part: usize) -> Result<Self> {
        let neighbors = LocalPart::open(parts, part)?;
        let read = || {
            let dataset = parts.part(part)?;
            let [node] = &dataset.manifest().node_types[..] else {
                return Err(Error::invalid("only parts of graphs of one node type can be served"));
            };
            let features = dataset.features(&node.name)?;
            let features = features.map(|f| MappedFeatures::new(f, Normalize::None)).transpose()?;
            let ranges = &parts.node_type(&node.name)?.ranges;
            let own = ranges[part]..ranges[part + 1];
            let splits = splits(&dataset, &node.name, (own.end - own.start) as usize)?;
            Ok(Self {
                part,
                neighbors,
                features,
                labels: dataset.labels(&node.name)?,
                splits,
                embedding: None,
                new_ids: parts.new_ids(&node.name)?,
                own,
            })
        };
        read().while_doing(|| format!("opening part {part} to serve it"))
    }

    /// Has it hold `table`, learnt rows of its own nodes, which clients gather and push to.
    ///
    /// # Errors
    /// If a row is not of one of its own nodes.
    pub fn with_embedding(mut self, table: Embedding) -> Result<Self> {
        table.ids().iter().try_for_each(|&id| self.local(id).map(drop))?;
        self.embedding = Some(Mutex::new(Learnt { table, taken: HashMap::new() }));
        Ok(self)
    }

    /// Which part it is.
    pub fn part(&self) -> usize {
        self.part
    }

    /// The columns that can be read as a whole.
    pub fn columns(&self) -> impl Iterator<Item = Column> {
        let has = |column: &Column| match column {
            Column::Features => self.features.is_some(),
            Column::Label => self.labels.is_some(),
            Column::Split => true,
            Column::Embedding => false,
        };
        Column::ALL.into_iter().filter(has)
    }

    /// What it has.
    pub fn describe(&self) -> Description {
        Description {
            part: self.part,
            nodes: self.own.end - self.own.start,
            columns: self
                .columns()
                .chain(self.embedding.as_ref().map(|_| Column::Embedding))
                .map(|column| column.name().into())
                .collect(),
            feature_width: self.features.as_ref().map_or(0, |f| f.width()),
            sparse: self.features.as_ref().is_some_and(|f| f.is_sparse()),
            outputs: self.labels.as_ref().map_or(0, Labels::outputs),
        }
    }

    /// Counts what is drawn from it, also once a server has it.
    pub fn counters(&self) -> LocalPart {
        self.neighbors.clone()
    }

    /// Values of own nodes, by dataset ids.
    ///
    /// # Errors
    /// If a node is not its own, or nodes have no such column.
    pub fn gather(&self, column: Column, nodes: &[u64]) -> Result<RecordBatch> {
        if column == Column::Embedding {
            return self.learnt(nodes);
        }
        let locals: Vec<u32> = nodes.iter().map(|&id| self.local(id)).collect::<Result<_>>()?;
        self.rows(column, &locals)
    }

    /// Learnt rows of own nodes.
    fn learnt(&self, nodes: &[u64]) -> Result<RecordBatch> {
        let table = &self.lock_learnt()?.table;
        let mut rows = vec![0.0; nodes.len() * table.width()];
        table.fetch(nodes, &mut rows)?;
        embedding_batch(rows, table.width())
    }

    /// Steps the learnt rows of `nodes` by `grads`, `nodes × width` values, unless `from` pushed this
    /// `step` or a later one before. Returns the rows after it.
    ///
    /// # Errors
    /// If nodes have no learnt rows here, or lengths disagree; no row has changed then.
    pub fn push(
        &self,
        nodes: &[u64],
        grads: &[f32],
        lr: f32,
        (from, step): (u64, u64),
    ) -> Result<RecordBatch> {
        {
            let mut learnt = self.lock_learnt()?;
            let Learnt { table, taken } = &mut *learnt;
            let last = taken.entry(from).or_default();
            if step > *last {
                table.update(nodes, grads, lr)?;
                *last = step;
            }
        }
        self.learnt(nodes)
    }

    fn lock_learnt(&self) -> Result<MutexGuard<'_, Learnt>> {
        let learnt = self.embedding.as_ref().ok_or_else(|| self.without(Column::Embedding))?;
        Ok(learnt.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Labels of its own nodes, in the order of their new ids, if nodes have labels.
    pub fn labels(&self) -> Option<&Labels> {
        self.labels.as_ref()
    }

    /// The splits its own nodes are in, by the numbers of [`Column::Split`].
    pub fn splits(&self) -> &[u8] {
        &self.splits
    }

    /// Feature rows of own nodes, by dataset ids.
    ///
    /// # Errors
    /// If a node is not its own, or nodes have no features.
    pub fn features(&self, nodes: &[u64]) -> Result<Rows> {
        let locals: Vec<u32> = nodes.iter().map(|&id| self.local(id)).collect::<Result<_>>()?;
        self.stored()?.gather(&locals)
    }

    /// Dense feature rows of own nodes into `out`, `nodes × width` values.
    ///
    /// # Errors
    /// If a node is not its own, or nodes have no dense features.
    pub fn features_into(&self, nodes: &[u64], out: &mut [f32]) -> Result<()> {
        let locals: Vec<u32> = nodes.iter().map(|&id| self.local(id)).collect::<Result<_>>()?;
        self.stored()?.gather_into(&locals, out)
    }

    /// The dense feature row of one of its own nodes into `out`, of the row's width.
    ///
    /// # Errors
    /// If the node is not its own, or nodes have no dense features.
    pub fn feature_row(&self, node: u64, out: &mut [f32]) -> Result<()> {
        self.stored()?.row_into(self.local(node)?, out)
    }

    /// Asks for the memory by which a node's row will be found soon.
    pub fn prefetch_place(&self, node: u64) {
        gnarl_graph::prefetch::item(&self.new_ids, node as usize);
    }

    /// Asks for the memory of a row that will be wanted soon.
    pub fn prefetch_row(&self, node: u64) {
        if let (Some(features), Ok(local)) = (&self.features, self.local(node)) {
            features.prefetch(local);
        }
    }

    fn stored(&self) -> Result<&MappedFeatures> {
        self.features.as_ref().ok_or_else(|| self.without(Column::Features))
    }

    fn without(&self, column: Column) -> Error {
        Error::usage(format!("part {} has no column {}", self.part, column.name()))
    }

    /// Values of own nodes from the `from`-th on, `most` at the most; none after the last.
    ///
    /// # Errors
    /// If nodes have no such column.
    pub fn stretch(&self, column: Column, from: u64, most: u64) -> Result<Option<RecordBatch>> {
        let count = self.own.end - self.own.start;
        let nodes: Vec<u32> = (from..count.min(from + most)).map(|v| v as u32).collect();
        if nodes.is_empty() && from > 0 {
            return Ok(None);
        }
        self.rows(column, &nodes).map(Some)
    }

    /// Neighbours of nodes.
    ///
    /// # Errors
    /// As [`LocalPart::draw`].
    pub fn sample(&self, request: &HopRequest) -> Result<RecordBatch> {
        hop_batch(&self.neighbors.draw(request)?)
    }

    fn rows(&self, column: Column, nodes: &[u32]) -> Result<RecordBatch> {
        match column {
            Column::Features => {
                let features = self.stored()?;
                rows_batch(features.gather(nodes)?, features.width())
            }
            Column::Label => {
                labels_batch(self.labels.as_ref().ok_or_else(|| self.without(column))?, nodes)
            }
            Column::Split => splits_batch(&self.splits, nodes),
            Column::Embedding => {
                Err(Error::usage("learnt rows change: gather those of the nodes wanted"))
            }
        }
    }

    fn local(&self, id: u64) -> Result<u32> {
        let new = usize::try_from(id).ok().and_then(|id| self.new_ids.get(id)).copied();
        let own = new.filter(|new| self.own.contains(new));
        own.map(|new| (new - self.own.start) as u32).ok_or_else(|| {
            Error::invalid(format!("node {id} is not one of part {}'s own", self.part))
        })
    }
}

/// The splits that `nodes` own nodes are in.
fn splits(dataset: &Dataset, ntype: &str, nodes: usize) -> Result<Vec<u8>> {
    let mut splits = vec![0; nodes];
    for (number, name) in (1..).zip(SPLITS) {
        for &node in dataset.split(ntype, name)?.unwrap_or_default().iter() {
            let split = splits.get_mut(node as usize);
            *split.ok_or_else(|| {
                Error::invalid(format!("split '{name}' names node {node}, which is not its own"))
            })? = number;
        }
    }
    Ok(splits)
}
