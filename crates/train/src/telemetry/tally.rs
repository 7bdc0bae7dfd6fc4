//! The counters of one worker.

use super::stage_times::Stages;

/// The counters of a worker in an epoch.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tally {
    pub loss: f64,
    pub weight: f64,
    pub edges: u64,
    pub seeds: u64,
    pub stages: Stages,
    /// Features of other hosts, or of files larger than memory, that were here, cached or shared by ranks, and that were not;
    /// 0 without such features.
    pub cached: [u64; 2],
    /// Bytes exchanged with other ranks, forward and backward.
    pub exchanged: [u64; 2],
    /// Bytes of parts read into memory.
    pub read: u64,
    /// Volume of message passing: edges of batches, or columns of all edges.
    pub passed: u64,
    /// Seconds of processor time of the compute threads; 0 where the system does not report it.
    pub processor: f64,
    /// Squared norms of gradients before clipping, of those that this rank counts.
    pub squares: f64,
    /// Optimizer steps whose gradients this rank counts.
    pub steps: u64,
}

/// A tally as numbers, for exchange between ranks.
pub(crate) type Figures = [f64; Tally::FIGURES];

impl Tally {
    /// Number of figures.
    pub(crate) const FIGURES: usize = Self::FIRST_STAGE + Stages::COUNT;
    /// Place of the first stage among the figures.
    pub(super) const FIRST_STAGE: usize = 13;

    /// The difference to the earlier tally `before`.
    pub(crate) fn since(&self, before: &Self) -> Self {
        let (mut spent, before_spent) = (self.stages.to_array(), before.stages.to_array());
        spent.iter_mut().zip(before_spent).for_each(|(spent, before)| *spent -= before);
        Self {
            loss: self.loss - before.loss,
            weight: self.weight - before.weight,
            edges: self.edges - before.edges,
            seeds: self.seeds - before.seeds,
            stages: Stages::from_array(spent),
            cached: [0, 1].map(|i| self.cached[i] - before.cached[i]),
            exchanged: [0, 1].map(|i| self.exchanged[i] - before.exchanged[i]),
            read: self.read - before.read,
            passed: self.passed - before.passed,
            processor: self.processor - before.processor,
            squares: self.squares - before.squares,
            steps: self.steps - before.steps,
        }
    }

    /// Adds what caches counted between two times. Those of batches that came from elsewhere are counted with these.
    pub(crate) fn count_cached(&mut self, before: [u64; 2], after: [u64; 2]) {
        self.cached = [0, 1].map(|i| self.cached[i] + after[i] - before[i]);
    }

    pub(crate) fn to_array(self) -> Figures {
        let mut all = [0.0; Self::FIGURES];
        all[..4].copy_from_slice(&[self.loss, self.weight, self.edges as f64, self.seeds as f64]);
        all[4..6].copy_from_slice(&self.cached.map(|rows| rows as f64));
        all[6..8].copy_from_slice(&self.exchanged.map(|bytes| bytes as f64));
        all[8..11].copy_from_slice(&[self.passed as f64, self.processor, self.read as f64]);
        all[11..13].copy_from_slice(&[self.squares, self.steps as f64]);
        all[Self::FIRST_STAGE..].copy_from_slice(&self.stages.to_array());
        all
    }
}
