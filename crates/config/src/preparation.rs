//! The number of batches that a rank prepares at once.

use super::RunConfig;
use super::strategy::Strategy;
use super::train::Pipeline;

/// Compute threads of a rank for each of its preparation threads, and most of those, unless a run file says otherwise.
/// GraphSAGE of three layers of 256 takes some five times the processor time that its batches take to sample and gather, of
/// three layers of 16 hardly more (`benches/runs/2026-11-27.md`); every thread takes the memory of batches.
const COMPUTE_PER_PREPARATION: usize = 4;
const MOST_PREPARATION: usize = 8;
/// Least preparation threads where parts are asked over the network: while one waits for replies, another one works.
const LEAST_OVER_NETWORK: usize = 2;

impl RunConfig {
    /// Mini-batches that each stage ahead of compute works on at once, in a rank of so many compute `threads`.
    pub fn preparation_threads(&self, threads: usize) -> usize {
        let least = if self.partition.servers.is_some() { LEAST_OVER_NETWORK } else { 1 };
        // One after the other, or the same batch again and again.
        if self.train.pipeline == Pipeline::Off || self.train.strategy == Strategy::Tensor {
            return 1;
        }
        match self.train.preparation_threads {
            0 => (threads / COMPUTE_PER_PREPARATION).clamp(least, MOST_PREPARATION),
            asked => asked,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Servers;

    #[test]
    fn preparation_follows_compute_unless_asked() {
        let mut run = RunConfig::default();
        let found =
            |run: &RunConfig| [1, 4, 16, 64].map(|threads| run.preparation_threads(threads));
        assert_eq!(found(&run), [1, 1, 4, 8]);
        run.partition.servers = Some(Servers::Ranks);
        assert_eq!(found(&run), [2, 2, 4, 8]);
        run.train.preparation_threads = 3;
        assert_eq!(found(&run), [3; 4]);
        run.train.pipeline = Pipeline::Off;
        assert_eq!(found(&run), [1; 4]);
    }
}
