//! The profile of a run (`output.profile`): in stages, kernels and collectives, with their rates beside those of the machine.
//!
//! `trace.json` has the first spans for viewers of traces (Perfetto, `chrome://tracing`), `profile.json` the sums of all. Each
//! part of this folder is a step: collectives as they are seen by a rank ([`observed`]), sums and rates ([`totals`]), and the
//! file of spans ([`trace`]).

mod observed;
mod totals;
mod trace;

use std::path::Path;

use gnarl_common::profile::{Profile, Taking};
use gnarl_common::{Error, Kind, Result};
use gnarl_config::RunConfig;
use gnarl_engine::Communicator;
use gnarl_planner::measure_by;

pub(crate) use observed::Observed;
pub(crate) use totals::{COMPUTE, EVALUATE};
pub use totals::{ProfileTotals, Rates, Total};

use crate::run::folder::{PROFILE, RunFolder, TRACE};

/// Most spans of all ranks in a trace: as many as viewers open at ease.
const MOST: usize = 1 << 19;

/// The profile of the ranks of a process.
pub(crate) struct Profiler {
    taking: Taking,
    /// Ranks of a process, and their threads together.
    ranks: usize,
    threads: usize,
}

impl Profiler {
    /// Starts a profile if the run asks for one: of a process with `ranks` of all its `size` ranks.
    pub fn start(config: &RunConfig, (ranks, size): (usize, usize)) -> Option<Self> {
        if !config.output.profile {
            return None;
        }
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = if config.train.threads == 0 { cores } else { config.train.threads };
        let most = MOST * ranks / size.max(1);
        let taking = Taking::start(most);
        if taking.is_none() {
            tracing::warn!(
                "output.profile: another run of this process takes its profile, and this one none"
            );
        }
        Some(Self { taking: taking?, ranks, threads })
    }

    /// Ends the profile of ranks that are threads of this process, and writes it.
    ///
    /// # Errors
    /// If the disk is full, or no threads can be started to measure the machine.
    pub fn finish(self, config: &RunConfig, folder: &RunFolder) -> Result<()> {
        let Self { taking, ranks, threads } = self;
        write(config, folder, &[taking.finish()], threads.div_ceil(ranks))
    }

    /// Ends the profile of a process that is a rank of `comm`; the first one writes those of all.
    ///
    /// # Errors
    /// As [`Self::finish`], or if a rank fails.
    pub fn finish_on(
        self,
        comm: &dyn Communicator,
        config: &RunConfig,
        folder: &RunFolder,
    ) -> Result<()> {
        let own = serde_json::to_vec(&self.taking.finish()).map_err(|e| unreadable(&e))?;
        let all = comm.all_gather("profile", &own)?;
        if comm.rank() > 0 {
            return Ok(());
        }
        let read = |bytes: &Vec<u8>| serde_json::from_slice(bytes).map_err(|e| unreadable(&e));
        let all: Vec<Profile> = all.iter().map(read).collect::<Result<_>>()?;
        write(config, folder, &all, self.threads)
    }
}

fn unreadable(e: &serde_json::Error) -> Error {
    Error::new(Kind::Rank, format!("the profile of a rank cannot be read: {e}"))
}

/// Writes the profiles of processes, whose ranks have so many threads each.
fn write(
    config: &RunConfig,
    folder: &RunFolder,
    profiles: &[Profile],
    threads: usize,
) -> Result<()> {
    trace::write(&folder.dir().join(TRACE), profiles)?;
    let measured = measure_by(&config.plan, threads)?;
    let rates = Rates {
        threads,
        gflops: 1e-9 * measured.flops,
        gather_gbps: 1e-9 * measured.gather,
        stream_gbps: 1e-9 * measured.stream,
    };
    let totals = ProfileTotals::of(profiles, rates);
    totals.write(&folder.dir().join(PROFILE))?;
    folder.changed(&[TRACE, PROFILE])?;
    tracing::info!("{}", totals.sentence(&place(folder.place())));
    Ok(())
}

fn place(folder: &Path) -> String {
    folder.join(TRACE).display().to_string()
}
