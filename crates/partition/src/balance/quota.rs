//! Quotas of parts, for streaming partitioners.

use std::ops::Range;

use crate::balance::constraint::Constraint;
use crate::edge_cut::partitioner::PartitionOptions;
use crate::read::bitmap::Bitmap;

/// An upper bound of a quantity in a part.
pub(crate) struct Quota {
    measure: Measure,
    /// [`PartitionOptions::balance`] times a part's share, but no less than the share's ceiling.
    pub(crate) cap: u64,
}

enum Measure {
    Nodes,
    Degrees,
    Marked(Bitmap),
    Within(Range<u64>),
}

impl Quota {
    /// The quota of nodes first, then those of `constraints`, in their order; quantities with less
    /// than one unit per part are left out. Memory: a bit a node for each split.
    pub(crate) fn all(
        options: &PartitionOptions,
        constraints: &[Constraint],
        nodes: u64,
        degrees: u64,
    ) -> Vec<Self> {
        let mut quotas = vec![Self { measure: Measure::Nodes, cap: options.capacity(nodes) }];
        let mut add = |measure, total| {
            if total >= options.parts as u64 {
                quotas.push(Self { measure, cap: options.capacity(total) });
            }
        };
        for constraint in constraints {
            let marked = |ids: &[u64]| {
                let mut marks = Bitmap::new(nodes);
                ids.iter().for_each(|&v| marks.insert(v));
                (Measure::Marked(marks), ids.len() as u64)
            };
            let (measure, total) = match constraint {
                Constraint::Nodes => continue,
                Constraint::Edges => (Measure::Degrees, degrees),
                Constraint::Train => marked(&options.train),
                Constraint::Valid => marked(&options.valid),
                Constraint::Test => marked(&options.test),
                Constraint::Types => {
                    for ids in &options.types {
                        add(Measure::Within(ids.clone()), ids.end - ids.start);
                    }
                    continue;
                }
            };
            add(measure, total);
        }
        quotas
    }

    /// Returns whether nodes count by their degree.
    pub(crate) fn is_of_degrees(&self) -> bool {
        matches!(self.measure, Measure::Degrees)
    }

    /// The load of node `v` of that degree.
    pub(crate) fn of(&self, v: usize, degree: u32) -> u64 {
        match &self.measure {
            Measure::Nodes => 1,
            Measure::Degrees => degree as u64,
            Measure::Marked(marks) => marks.contains(v as u64) as u64,
            Measure::Within(ids) => ids.contains(&(v as u64)) as u64,
        }
    }

    /// Relative load of a part: its share of the quota, in units of 2⁻³².
    pub(crate) fn fill(&self, load: u64) -> u64 {
        (((load as u128) << 32) / self.cap.max(1) as u128) as u64
    }
}

/// The highest relative load under all quotas of a part with `loads`.
pub(crate) fn fullest(quotas: &[Quota], loads: impl Iterator<Item = u64>) -> u64 {
    quotas.iter().zip(loads).map(|(q, load)| q.fill(load)).max().unwrap_or(0)
}
