//! Load balance of ranks.

use serde::{Deserialize, Serialize};

use super::stage_times::Stages;
use super::tally::{Figures, Tally};

/// The most loaded rank over the mean of all, in an epoch; 1 is even (NeutronTP, figure 10).
///
/// Edges and bytes are work, independent of the machine; seconds depend on its other load.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Balance {
    /// Edges that messages passed over; in tensor parallelism edges times columns.
    pub edges: f64,
    /// Bytes exchanged with other ranks, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<f64>,
    /// Seconds of processor time of the compute threads, which excludes waiting and other processes
    /// on the same cores; of wall time where the system does not report it.
    pub compute: f64,
    /// Wall seconds of exchanges and reductions over all ranks. Waiting is part of them: the rank
    /// that computes least has most.
    pub communication: f64,
}

impl Balance {
    /// The balance of all ranks' counters; `None` for one.
    pub(crate) fn of(ranks: &[Figures]) -> Option<Self> {
        if ranks.len() < 2 {
            return None;
        }
        let over = |of: &dyn Fn(&Figures) -> f64| {
            let mean = ranks.iter().map(of).sum::<f64>() / ranks.len() as f64;
            (mean > 0.0).then(|| ranks.iter().map(of).fold(0.0, f64::max) / mean)
        };
        let stages = |all: &Figures| {
            let mut own = [0.0; Stages::COUNT];
            own.copy_from_slice(&all[Tally::FIRST_STAGE..]);
            Stages::from_array(own)
        };
        let compute = over(&|all| all[9]).or_else(|| over(&|all| stages(all).compute));
        let communication = over(&|all| stages(all).exchange + stages(all).reduce);
        Some(Self {
            edges: over(&|all| all[8]).unwrap_or(1.0),
            bytes: over(&|all| all[6] + all[7]),
            compute: compute.unwrap_or(1.0),
            communication: communication.unwrap_or(1.0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rank(passed: u64, compute: f64, processor: f64) -> Figures {
        let stages = Stages { compute, exchange: 1.0, reduce: 2.0, ..Stages::default() };
        Tally { passed, processor, stages, ..Tally::default() }.to_array()
    }

    #[test]
    fn the_largest_is_told_over_the_mean() {
        assert_eq!(Balance::of(&[rank(5, 1.0, 0.5)]), None);
        let found = Balance::of(&[rank(10, 1.0, 0.1), rank(30, 1.0, 0.3)]).unwrap();
        let even = Balance { edges: 1.5, bytes: None, compute: 1.5, communication: 1.0 };
        assert!((found.compute - even.compute).abs() < 1e-12, "{found:?}");
        assert_eq!(Balance { compute: 1.5, ..found }, even);
    }

    #[test]
    fn wall_time_stands_in_for_processor_time() {
        let found = Balance::of(&[rank(0, 1.0, 0.0), rank(0, 3.0, 0.0)]).unwrap();
        assert_eq!((found.compute, found.edges), (1.5, 1.0));
    }
}
