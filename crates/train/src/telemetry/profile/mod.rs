//! The profile of a run (`output.profile`): its stages, kernels and collectives, beside the rates of the machine.
//!
//! `trace.json` has the first spans for viewers of traces (Perfetto, `chrome://tracing`), `profile.json` the sums of all. Each
//! part of this folder is a step: collectives as a rank sees them (`observed.rs`), sums and rates (`totals.rs`), and the file of
//! spans (`trace.rs`). A profile that cannot be taken or written is a warning: no run fails for it.

mod observed;
mod totals;
mod trace;

use gnarl_common::Result;
use gnarl_common::profile::{Profile, Taking};
use gnarl_config::RunConfig;
use gnarl_engine::Communicator;
use gnarl_planner::measure_by;

pub(crate) use observed::Observed;
pub(crate) use totals::{COMPUTE, EVALUATE};
pub use totals::{ProfileTotals, Rates, Total};

use crate::run::folder::{PROFILE, RunFolder, TRACE};

/// Most spans of all ranks in a trace: as many as viewers open at ease.
const MOST: usize = 1 << 19;

/// A profile that is being taken, of the ranks of a process.
pub(crate) struct Profiler(Taking);

impl Profiler {
    /// Starts a profile if the run asks for one: of a process with `ranks` of all its `size` ranks.
    pub fn start(config: &RunConfig, (ranks, size): (usize, usize)) -> Option<Self> {
        if !config.output.profile {
            return None;
        }
        let taking = Taking::start(MOST * ranks / size.max(1));
        if taking.is_none() {
            tracing::warn!(
                "output.profile: another run of this process takes its profile, and this one none"
            );
        }
        taking.map(Self)
    }

    /// Ends a profile of all ranks, each of which has so many threads.
    pub fn finish(self, threads: usize) -> Taken {
        Taken { profiles: vec![self.0.finish()], threads }
    }
}

/// Waits for the end of training on all ranks, and gathers their profiles on the first: of those that have one, whatever
/// their settings say.
///
/// # Errors
/// If a rank fails.
pub(crate) fn gathered(
    profiler: Option<Profiler>,
    comm: &dyn Communicator,
    threads: usize,
) -> Result<Option<Taken>> {
    let own = profiler.map(|profiler| serde_json::to_vec(&profiler.0.finish()));
    let own = own.transpose().unwrap_or_default().unwrap_or_default();
    let all = comm.all_gather("the end of training", &own)?;
    if comm.rank() > 0 || own.is_empty() {
        return Ok(None);
    }
    let read = |bytes: &Vec<u8>| serde_json::from_slice(bytes).ok();
    let profiles: Vec<Profile> = all.iter().filter_map(read).collect();
    if profiles.len() < all.len() {
        let missing = all.len() - profiles.len();
        tracing::warn!("output.profile: {missing} of {} ranks have taken none", all.len());
    }
    Ok(Some(Taken { profiles, threads }))
}

/// Profiles of the processes of a run, whose ranks have so many threads each.
pub(crate) struct Taken {
    profiles: Vec<Profile>,
    threads: usize,
}

impl Taken {
    /// Measures the machine and writes the files to the folder of the run; its uploads are left to the caller.
    pub fn write(&self, config: &RunConfig, folder: &RunFolder) {
        match self.try_write(config, folder) {
            Ok(sentence) => tracing::info!("{sentence}"),
            Err(e) => tracing::warn!("no profile: {e}"),
        }
    }

    fn try_write(&self, config: &RunConfig, folder: &RunFolder) -> Result<String> {
        trace::write(&folder.dir().join(TRACE), &self.profiles)?;
        let measured = measure_by(&config.plan, self.threads, config.train.precision.into())?;
        let rates = Rates {
            threads: self.threads,
            gflops: 1e-9 * measured.flops,
            gather_gbps: 1e-9 * measured.gather,
        };
        let totals = ProfileTotals::of(&self.profiles, rates);
        totals.write(&folder.dir().join(PROFILE))?;
        Ok(totals.sentence(&folder.place().join(TRACE).display().to_string()))
    }
}
