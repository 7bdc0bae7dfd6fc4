//! Sums of the spans of all ranks, and the rates of kernels.

use std::collections::BTreeMap;
use std::path::Path;

use gnarl_common::profile::{Kind, Profile, Sum};
use gnarl_common::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::run::checkpoint::atomic_write;

/// The stage of forward and backward passes.
pub(crate) const COMPUTE: &str = "compute";
/// The stage of evaluations.
pub(crate) const EVALUATE: &str = "evaluate";

/// The sums of a profile, as `profile.json` has them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProfileTotals {
    /// Seconds that the profile covers.
    pub seconds: f64,
    /// Measured rates of the machine.
    pub rates: Rates,
    /// Spans that are not in the trace.
    pub left: u64,
    /// Sums of all spans by rank, kind and name, the longest of each kind first.
    pub spans: Vec<Total>,
}

/// Rates of the machine of the first rank, measured after the run with the threads of one rank, by the run's own kernels.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Rates {
    /// Threads of a rank.
    pub threads: usize,
    /// Products of matrices of 256 columns in the run's precision, 10⁹ operations a second.
    pub gflops: f64,
    /// SpMM over features in memory, 10⁹ bytes a second.
    pub gather_gbps: f64,
}

/// The spans of a kind and name of a rank.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Total {
    /// The rank.
    pub rank: usize,
    /// The kind of the spans.
    pub kind: Kind,
    /// The name of the spans.
    pub name: String,
    /// The number of the spans.
    pub count: u64,
    /// Seconds of all spans together.
    pub seconds: f64,
    /// Seconds of the longest span.
    pub longest: f64,
    /// Operations of kernels, 10⁹ a second.
    pub gflops: f64,
    /// Bytes of kernels and collectives, 10⁹ a second.
    pub gbps: f64,
}

impl Total {
    fn of(Sum { rank, kind, name, count, seconds, longest, work }: &Sum) -> Self {
        let rate = |amount: f64| if *seconds > 0.0 { 1e-9 * amount / seconds } else { 0.0 };
        Self {
            rank: *rank,
            kind: *kind,
            name: name.clone(),
            count: *count,
            seconds: *seconds,
            longest: *longest,
            gflops: rate(work.flops),
            gbps: rate(work.bytes),
        }
    }
}

impl ProfileTotals {
    pub(super) fn of(profiles: &[Profile], rates: Rates) -> Self {
        let sums = profiles.iter().flat_map(|profile| &profile.sums);
        let mut spans: Vec<Total> = sums.map(Total::of).collect();
        let by_kind = |a: &Total, b: &Total| a.kind.cmp(&b.kind);
        spans.sort_by(|a, b| by_kind(a, b).then(b.seconds.total_cmp(&a.seconds)));
        let seconds = profiles.iter().map(|profile| profile.seconds).fold(0.0, f64::max);
        let left = profiles.iter().map(|profile| profile.left).sum();
        Self { seconds, rates, left, spans }
    }

    pub(super) fn write(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self)
            .map_err(|e| Error::invalid(format!("{} cannot be written: {e}", path.display())))?;
        atomic_write(path, text.as_bytes())
    }

    /// The spans of a kind over all ranks, by name, the longest first: their number, their seconds, and their rates as means
    /// over their time.
    pub fn of_all_ranks(&self, kind: Kind) -> Vec<Total> {
        let mut found: BTreeMap<&str, Total> = BTreeMap::new();
        for span in self.spans.iter().filter(|span| span.kind == kind) {
            let Some(sum) = found.get_mut(&*span.name) else {
                found.insert(&span.name, span.clone());
                continue;
            };
            let seconds = sum.seconds + span.seconds;
            let mean = |sum: f64, own: f64, own_seconds: f64| {
                if seconds > 0.0 {
                    (sum * (seconds - own_seconds) + own * own_seconds) / seconds
                } else {
                    0.0
                }
            };
            sum.gflops = mean(sum.gflops, span.gflops, span.seconds);
            sum.gbps = mean(sum.gbps, span.gbps, span.seconds);
            sum.count += span.count;
            sum.longest = sum.longest.max(span.longest);
            sum.seconds = seconds;
        }
        let mut found: Vec<Total> = found.into_values().collect();
        found.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        found
    }

    /// The share of the time of computing and evaluating that kernels take; the rest is other work on tensors, the start of
    /// each, and kernels of sampled evaluations, which are no spans.
    pub fn kernel_share(&self) -> f64 {
        let seconds = |kind: Kind, computing: bool| -> f64 {
            let of = |span: &&Total| {
                span.kind == kind && (!computing || span.name == COMPUTE || span.name == EVALUATE)
            };
            self.spans.iter().filter(of).map(|span| span.seconds).sum()
        };
        let computing = seconds(Kind::Stage, true);
        if computing > 0.0 { (seconds(Kind::Kernel, false) / computing).min(1.0) } else { 0.0 }
    }

    /// A line about the kernel that takes longest, and the place of the trace.
    pub(super) fn sentence(&self, trace: &str) -> String {
        let Rates { threads, gflops, gather_gbps } = self.rates;
        let longest = match self.of_all_ranks(Kind::Kernel).first() {
            Some(kernel) => format!(
                "most time in kernel '{}': {:.1} s at {:.1} GFLOP/s and {:.1} GB/s, where {threads} of the machine's \
                 threads reach {gflops:.1} GFLOP/s in matrix products and {gather_gbps:.1} GB/s in SpMM",
                kernel.name, kernel.seconds, kernel.gflops, kernel.gbps
            ),
            None => "no kernel ran".into(),
        };
        format!("profile: {longest}; open {trace} at ui.perfetto.dev")
    }
}

#[cfg(test)]
mod tests {
    use gnarl_common::profile::Work;

    use super::*;

    #[test]
    fn rates_of_all_ranks_are_means_over_their_time() {
        let sum = |rank, seconds, flops| Sum {
            rank,
            kind: Kind::Kernel,
            name: "matrix product".into(),
            count: 2,
            seconds,
            longest: seconds / 2.0,
            work: Work { flops, bytes: 0.0 },
        };
        let of =
            |sum: Sum| Profile { sums: vec![sum], seconds: 9.0, left: 1, ..Profile::default() };
        let rates = Rates { threads: 1, gflops: 1.0, gather_gbps: 1.0 };
        let totals = ProfileTotals::of(&[of(sum(0, 1.0, 4e9)), of(sum(1, 3.0, 4e9))], rates);
        assert_eq!((totals.seconds, totals.left), (9.0, 2));
        assert_eq!(totals.spans[0].rank, 1);
        let [all] = &totals.of_all_ranks(Kind::Kernel)[..] else { panic!("one name") };
        assert_eq!((all.count, all.seconds, all.longest, all.gflops), (4, 4.0, 1.5, 2.0));
        assert!(totals.of_all_ranks(Kind::Collective).is_empty());
    }
}
