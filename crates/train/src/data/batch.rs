//! Batches: the batch schedule, and the features of input nodes.

use std::ops::{Deref, Range};
use std::sync::{Arc, OnceLock};

use gnarl_common::rng::Key;
use gnarl_common::{Error, Result};
use gnarl_nn::{SparseRows, Tape, Tensor, Var};
use gnarl_store::embedding::Nodes;
use gnarl_store::{FeatureStore, Rows};

/// One entry of the batch schedule.
#[derive(Debug, Clone)]
pub struct BatchSpec {
    /// Index of the worker's graph.
    pub graph: usize,
    /// Examples of the batch on all ranks together, or the unit of a subgraph sampler.
    pub batch: Numbers,
    /// Range of this rank's examples; an empty range makes no batch.
    pub share: Range<usize>,
    /// Key of the run's seed and the epoch.
    pub key: Key,
    /// The nodes in use from this batch on, where they change.
    pub uses: Option<Uses>,
    /// True if every epoch has this same batch, so that it is prepared once.
    pub fixed: bool,
    /// True if the optimizer steps after this batch.
    pub last_of_step: bool,
    /// True if the epoch (over this graph) ends with this batch.
    pub last_of_epoch: bool,
}

/// Nodes whose embeddings the batches that follow, or their positive examples alone, read and update.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uses {
    /// Those of these batches.
    pub now: Vec<Nodes>,
    /// Those of the batches that follow which are not used now.
    pub ahead: Vec<Nodes>,
}

impl BatchSpec {
    /// The one batch of an epoch over the whole graph; also of a rank without examples.
    pub fn whole(epoch: usize) -> Self {
        Self {
            graph: 0,
            batch: vec![0].into(),
            share: 0..1,
            key: Key::new(epoch as u64),
            uses: None,
            fixed: true,
            last_of_step: true,
            last_of_epoch: true,
        }
    }

    /// This rank's examples.
    pub fn own(&self) -> &[u32] {
        &self.batch[self.share.clone()]
    }
}

/// Numbers of examples: consecutive ones of an order, which several batches share.
#[derive(Debug, Clone)]
pub struct Numbers {
    order: Order,
    range: Range<usize>,
}

#[derive(Debug, Clone)]
enum Order {
    Listed(Arc<Vec<u32>>),
    Shuffled(Arc<Shuffled>),
}

/// Consecutive numbers in random order, which is in memory only while batches of them are under way.
#[derive(Debug)]
pub struct Shuffled {
    range: Range<u32>,
    key: Key,
    order: OnceLock<Vec<u32>>,
}

impl Shuffled {
    /// Those of `range`, in an order by `key`.
    pub fn new(range: Range<u32>, key: Key) -> Self {
        Self { range, key, order: OnceLock::new() }
    }
}

impl Deref for Shuffled {
    type Target = [u32];

    fn deref(&self) -> &[u32] {
        self.order.get_or_init(|| {
            let mut order: Vec<u32> = self.range.clone().collect();
            self.key.shuffle(&mut order);
            order
        })
    }
}

impl Numbers {
    /// Those of `order` in a range.
    ///
    /// # Panics
    /// If the range exceeds the order.
    pub fn of(order: &Arc<Vec<u32>>, range: Range<usize>) -> Self {
        assert!(range.end <= order.len(), "{range:?} of {} numbers", order.len());
        Self { order: Order::Listed(order.clone()), range }
    }

    /// All of `order`, `size` at a time.
    pub fn batches(order: &Arc<Shuffled>, size: usize) -> impl Iterator<Item = Self> + '_ {
        let all = order.range.len();
        (0..all).step_by(size.max(1)).map(move |first| Self {
            order: Order::Shuffled(order.clone()),
            range: first..all.min(first + size),
        })
    }

    /// How many they are.
    pub fn count(&self) -> usize {
        self.range.len()
    }

    /// The range of numbers in random order that these are the first of.
    pub fn begins(&self) -> Option<Range<u32>> {
        match &self.order {
            Order::Shuffled(order) if self.range.start == 0 => Some(order.range.clone()),
            _ => None,
        }
    }
}

impl From<Vec<u32>> for Numbers {
    fn from(order: Vec<u32>) -> Self {
        let range = 0..order.len();
        Self { order: Order::Listed(Arc::new(order)), range }
    }
}

impl Deref for Numbers {
    type Target = [u32];

    fn deref(&self) -> &[u32] {
        match &self.order {
            Order::Listed(order) => &order[self.range.clone()],
            Order::Shuffled(order) => &order[self.range.clone()],
        }
    }
}

/// The features of a batch's input nodes.
#[derive(Debug, Clone)]
pub enum Input {
    /// One row of values per node.
    Dense(Tensor),
    /// Sparse features, such as bags of words.
    Sparse(Arc<SparseRows>),
}

impl Input {
    /// Width of a row.
    pub(crate) fn width(&self) -> usize {
        match self {
            Self::Dense(rows) => rows.cols(),
            Self::Sparse(rows) => rows.cols(),
        }
    }

    /// Puts the features on a tape.
    pub fn on(&self, tape: &mut Tape<'_>) -> Var {
        match self {
            Self::Dense(rows) => tape.dense(rows.clone()),
            Self::Sparse(rows) => tape.sparse(rows.clone()),
        }
    }
}

/// The features of `ids`, in that order.
///
/// # Errors
/// If an id has no features.
pub fn gather(features: &dyn FeatureStore, ids: &[u32]) -> Result<Input> {
    gather_of_batch(features, ids, false)
}

/// As [`gather`]; many rows are read at a time if they are read `ahead`.
///
/// # Errors
/// As [`gather`].
pub fn gather_of_batch(features: &dyn FeatureStore, ids: &[u32], ahead: bool) -> Result<Input> {
    if features.is_sparse() {
        let found = if ahead { features.gather_ahead(ids)? } else { features.gather(ids)? };
        let Rows::Sparse { indptr, indices, values } = found else {
            return Err(Error::invalid("sparse features were gathered as dense rows"));
        };
        let rows = SparseRows::new(features.width(), indptr, indices, values);
        return Ok(Input::Sparse(Arc::new(rows)));
    }
    let mut out = Tensor::scratch(ids.len(), features.width());
    match ahead {
        true => features.gather_ahead_into(ids, out.data_mut())?,
        false => features.gather_into(ids, out.data_mut())?,
    }
    Ok(Input::Dense(out))
}
