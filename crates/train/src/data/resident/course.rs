//! The eras of all epochs.

use gnarl_common::IdMap;
use gnarl_config::RunConfig;

use super::deal::{Era, deal};
use crate::session::Keys;

/// The eras of a run, a function of its configuration and its parts.
#[derive(Clone)]
pub(crate) struct EraCourse {
    keys: Keys,
    slots: usize,
    resident: usize,
    /// Training nodes of each part, ascending by dataset id.
    training: Vec<Vec<u32>>,
}

impl EraCourse {
    /// The course of `config` over the parts of `owner`, with the training nodes `train` by dataset ids.
    pub fn new(config: &RunConfig, owner: &IdMap, train: &[u32]) -> Self {
        let parts = owner.parts();
        let mut training = vec![Vec::new(); parts];
        train.iter().for_each(|&node| training[owner.part(node as usize)].push(node));
        let slots = config.disaggregated.slots.clamp(1, parts.max(1));
        let resident = config.disaggregated.resident_of(parts);
        Self { keys: Keys::new(config.train.seed), slots, resident, training }
    }

    /// Number of parts.
    pub fn parts(&self) -> usize {
        self.training.len()
    }

    /// Parts in memory at a time.
    pub fn places(&self) -> usize {
        (self.slots * self.resident).min(self.parts())
    }

    /// Parts that are replaced at a time.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// The eras of an epoch (from 1) that have training nodes.
    pub fn eras(&self, epoch: usize) -> Vec<Era> {
        let key = self.keys.deal(epoch);
        let mut eras = deal(self.parts(), self.slots, self.resident, key);
        eras.retain(|era| era.seeds.iter().any(|&part| !self.training[part].is_empty()));
        eras
    }

    /// The number of era `index` of an epoch among those of all epochs; they ascend.
    pub fn number(&self, epoch: usize, index: usize) -> usize {
        epoch * self.parts() + index
    }

    /// The era of a number, and that of the one before it in its epoch; none if there is no such era.
    #[cfg(feature = "serve")]
    pub fn of(&self, number: usize) -> Option<(Era, Option<usize>)> {
        let (epoch, index) = (number / self.parts().max(1), number % self.parts().max(1));
        let mut eras = self.eras(epoch);
        let before = index.checked_sub(1).map(|index| self.number(epoch, index));
        (epoch > 0 && index < eras.len()).then(|| (eras.swap_remove(index), before))
    }

    /// The number of the era after one.
    #[cfg(feature = "serve")]
    pub fn after(&self, number: usize) -> usize {
        let epoch = number / self.parts().max(1);
        match self.of(number + 1) {
            Some(_) => number + 1,
            None => self.number(epoch + 1, 0),
        }
    }

    /// The training nodes of an era, ascending by dataset id.
    pub fn seeds(&self, era: &Era) -> Vec<u32> {
        let mut seeds: Vec<u32> =
            era.seeds.iter().flat_map(|&part| &self.training[part]).copied().collect();
        seeds.sort_unstable();
        seeds
    }
}
