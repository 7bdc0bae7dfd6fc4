//! The eras of all epochs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use gnarl_common::{Error, Result};
use gnarl_config::{Deal, RunConfig};

use super::deal::{Era, nodes, pairs, spread, trainable};
use super::examples::Examples;
use crate::session::Keys;

/// The eras of a run, a function of its configuration and its parts.
#[derive(Clone)]
pub(crate) struct EraCourse {
    keys: Keys,
    slots: usize,
    resident: usize,
    deal: Deal,
    examples: Arc<Examples>,
    /// The eras of the epochs asked for last: all asks of a batch worker are of these.
    known: Arc<Mutex<BTreeMap<usize, Arc<Vec<Era>>>>>,
}

/// Epochs whose eras are kept.
const KEPT: usize = 3;

impl EraCourse {
    /// The course of `config` over parts with these `examples`.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] if two parts are never in memory together, and examples are edges.
    pub fn new(config: &RunConfig, examples: Examples) -> Result<Self> {
        let parts = examples.parts();
        let slots = config.disaggregated.slots.clamp(1, parts.max(1));
        let resident = config.resident_of(parts);
        let pairs = config.deal() == Deal::Pairs;
        if pairs && resident < 2 && slots < parts {
            return Err(Error::usage(
                "edges have their endpoints in two parts, and disaggregated.resident = 1 never has two of a slot in memory",
            )
            .hint("set disaggregated.resident to 2 or more"));
        }
        let keys = Keys::new(config.train.seed);
        let course = Self {
            keys,
            slots,
            resident,
            deal: config.deal(),
            examples: Arc::new(examples),
            known: Arc::default(),
        };
        let [left, all] = course.untrained(1);
        if left == all && all > 0 {
            return Err(Error::usage(format!(
                "none of {all} training edges has both endpoints in memory: no two parts with edges between them meet"
            ))
            .hint("raise disaggregated.resident, or leave out disaggregated.deal"));
        }
        Ok(course)
    }

    /// Number of parts.
    pub fn parts(&self) -> usize {
        self.examples.parts()
    }

    /// Parts in memory at a time.
    pub fn places(&self) -> usize {
        (self.slots * self.resident).min(self.parts())
    }

    /// Parts that are replaced at a time.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// The eras of an epoch (from 1) that have examples.
    pub fn eras(&self, epoch: usize) -> Arc<Vec<Era>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(eras) = known.get(&epoch) {
            return eras.clone();
        }
        let eras = Arc::new(self.dealt(epoch));
        known.insert(epoch, eras.clone());
        while known.len() > KEPT {
            known.pop_first();
        }
        eras
    }

    fn dealt(&self, epoch: usize) -> Vec<Era> {
        let dealt = (self.parts(), self.slots, self.resident);
        let key = self.keys.deal(epoch);
        let mut eras = match self.deal {
            Deal::Nodes => nodes(dealt, key),
            Deal::Pairs => pairs(dealt, key),
        };
        let examples = &self.examples;
        eras.retain(|era| examples.cells(era).iter().any(|&cell| !examples.of(cell).is_empty()));
        eras
    }

    /// The examples of each era of an epoch, ascending.
    pub fn examples(&self, epoch: usize) -> Vec<Vec<u32>> {
        spread(&self.eras(epoch), &self.examples, self.keys.deal(epoch).with(1))
    }

    /// Training examples that are not trained in an epoch, as no era has all parts that they need, and the number of all.
    pub fn untrained(&self, epoch: usize) -> [usize; 2] {
        let all = self.examples.len();
        [all - trainable(&self.eras(epoch), &self.examples), all]
    }

    /// Numbers of eras from one epoch to the next: no epoch has more eras than cells.
    fn stride(&self) -> usize {
        match &*self.examples {
            Examples::Nodes(_) => self.parts(),
            Examples::Edges { .. } => self.parts() * self.parts(),
        }
    }

    /// The number of era `index` of an epoch among those of all epochs; they ascend.
    pub fn number(&self, epoch: usize, index: usize) -> usize {
        epoch * self.stride() + index
    }

    /// The era of a number, and that of the one before it in its epoch; none if there is no such era.
    #[cfg(feature = "serve")]
    pub fn of(&self, number: usize) -> Option<(Era, Option<usize>)> {
        let stride = self.stride().max(1);
        let epoch = number / stride;
        let index = number % stride;
        let eras = self.eras(epoch);
        let before = index.checked_sub(1).map(|index| self.number(epoch, index));
        let era = eras.get(index).filter(|_| epoch > 0)?;
        Some((era.clone(), before))
    }

    /// The number of the era after one.
    #[cfg(feature = "serve")]
    pub fn after(&self, number: usize) -> usize {
        let epoch = number / self.stride().max(1);
        match self.of(number + 1) {
            Some(_) => number + 1,
            None => self.number(epoch + 1, 0),
        }
    }
}
