//! Node columns of one type in a part.

use std::sync::Arc;

use arrow_array::RecordBatch;
use gnarl_common::{Buf, DType, Error, IdMap, Result};
use gnarl_graph::times::node_times;
use gnarl_graph::{Dataset, Labels};
use gnarl_partition::PartitionedDataset;
use gnarl_store::{FeatureStore, MappedFeatures, Normalize};

use super::Description;
use crate::codec::{labels_batch, rows_batch, splits_batch, stored_batch, times_batch};
use crate::command::{Column, SPLITS};

/// Columns of a part's own nodes of one type, mapped.
pub(super) struct Columns {
    part: usize,
    pub ntype: String,
    pub features: Option<MappedFeatures>,
    pub labels: Option<Labels>,
    /// Codes of [`Column::Split`].
    pub splits: Vec<u8>,
    /// Times of own nodes and of halo nodes behind them.
    pub times: Option<Buf<i64>>,
    /// The parts of all nodes of the type.
    pub ids: Arc<IdMap>,
}

impl Columns {
    pub fn open(
        parts: &PartitionedDataset,
        dataset: &Dataset,
        part: usize,
        ntype: &str,
    ) -> Result<Self> {
        let features = dataset.features(ntype)?;
        let features = features.map(|f| MappedFeatures::new(f, Normalize::None)).transpose()?;
        let ids = parts.id_map(ntype)?;
        let own = ids.starts()[part + 1] - ids.starts()[part];
        let splits = splits(dataset, ntype, own as usize)?;
        let labels = dataset.labels(ntype)?.or(dataset.values(ntype)?);
        let times = node_times(dataset, ntype)?;
        Ok(Self { part, ntype: ntype.into(), features, labels, splits, times, ids })
    }

    /// Number of own nodes.
    pub fn count(&self) -> u64 {
        self.ids.starts()[self.part + 1] - self.ids.starts()[self.part]
    }

    /// The columns that can be read as a whole.
    pub fn names(&self) -> impl Iterator<Item = Column> {
        let has = |column: &Column| match column {
            Column::Features => self.features.is_some(),
            // Features of f32 are there already.
            Column::Stored => self.features.as_ref().is_some_and(|f| f.exact_type() != DType::F32),
            Column::Label => self.labels.is_some(),
            Column::Split => true,
            Column::Time => self.times.is_some(),
            Column::Embedding => false,
        };
        Column::ALL.into_iter().filter(has)
    }

    pub fn describe(&self) -> Description {
        Description {
            part: self.part,
            ntype: self.ntype.clone(),
            nodes: self.count(),
            columns: self.names().map(|column| column.name().into()).collect(),
            feature_width: self.features.as_ref().map_or(0, |f| f.width()),
            sparse: self.features.as_ref().is_some_and(|f| f.is_sparse()),
            outputs: self.labels.as_ref().map_or(0, Labels::outputs),
        }
    }

    pub fn stored(&self) -> Result<&MappedFeatures> {
        self.features.as_ref().ok_or_else(|| self.without(Column::Features))
    }

    pub fn without(&self, column: Column) -> Error {
        Error::usage(format!("part {} has no column {}", self.part, column.name()))
    }

    /// Values of own nodes, by their local indices.
    pub fn rows(&self, column: Column, nodes: &[u32]) -> Result<RecordBatch> {
        match column {
            Column::Features => {
                let features = self.stored()?;
                rows_batch(features.gather(nodes)?, features.width())
            }
            Column::Stored => {
                let features = self.stored()?;
                let exact = features.exact_type();
                stored_batch(features.gather(nodes)?, features.width(), exact)
            }
            Column::Label => {
                labels_batch(self.labels.as_ref().ok_or_else(|| self.without(column))?, nodes)
            }
            Column::Split => splits_batch(&self.splits, nodes),
            Column::Time => {
                let times = self.times.as_ref().ok_or_else(|| self.without(column))?;
                times_batch(nodes.iter().map(|&node| times[node as usize]))
            }
            Column::Embedding => {
                Err(Error::usage("embeddings change in training: gather those of given nodes"))
            }
        }
    }

    /// The local index of a node.
    pub fn local(&self, id: u64) -> Result<u32> {
        let own = self.ids.position_in(self.part, id);
        own.map(|local| local as u32).ok_or_else(|| {
            Error::invalid(format!("node {id} is not one of part {}'s own", self.part))
        })
    }

    /// The local indices of nodes.
    pub fn locals(&self, nodes: &[u64]) -> Result<Vec<u32>> {
        nodes.iter().map(|&id| self.local(id)).collect()
    }
}

/// The splits of the `nodes` own nodes.
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
