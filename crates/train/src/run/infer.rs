//! Inference of a trained run by one process, or by ranks of which the first leads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use gnarl_common::threads::pool;
use gnarl_common::{Error, Kind, Result};
use gnarl_engine::{Communicator, local};
use gnarl_graph::triples::Triples;
use gnarl_infer::Figures;
use gnarl_nn::Tensor;
use serde::{Deserialize, Serialize};

use crate::encoder::{Keep, Output};
use crate::run::trained::TrainedRun;

/// The computation of a run's outputs.
pub trait Infer: Sync {
    /// As [`TrainedRun::infer`].
    ///
    /// # Errors
    /// Likewise, or if a rank fails.
    fn infer(
        &self,
        output: Output,
        wanted: &[(usize, Vec<u32>)],
        keep: &mut Keep<'_>,
    ) -> Result<Figures>;

    /// Embeddings of the heads and of the tails of edges just before their `times`, or after all edges of the dataset if
    /// there are none; for runs with `sample.time`.
    ///
    /// # Errors
    /// If features cannot be read, or several ranks would have to compute them.
    fn embeddings_before(&self, edges: &Triples, times: &[i64]) -> Result<[Tensor; 2]>;
}

impl Infer for TrainedRun {
    fn infer(
        &self,
        output: Output,
        wanted: &[(usize, Vec<u32>)],
        keep: &mut Keep<'_>,
    ) -> Result<Figures> {
        Self::infer(self, output, wanted, keep)
    }

    fn embeddings_before(&self, edges: &Triples, times: &[i64]) -> Result<[Tensor; 2]> {
        Self::embeddings_before(self, edges, times)
    }
}

/// An inference that the first rank asks the others for.
#[derive(Serialize, Deserialize)]
struct Request {
    output: Output,
    wanted: Vec<(usize, Runs)>,
}

/// Nodes as runs of consecutive ones: the first one, and the one after the last.
type Runs = Vec<(u32, u32)>;

/// The first of some ranks, which asks the others to compute their share of an inference.
pub struct Leader<'a> {
    run: &'a TrainedRun,
    comm: &'a dyn Communicator,
    threads: usize,
    /// Inferences to come.
    left: AtomicUsize,
}

impl Infer for Leader<'_> {
    fn infer(
        &self,
        output: Output,
        wanted: &[(usize, Vec<u32>)],
        keep: &mut Keep<'_>,
    ) -> Result<Figures> {
        let runs = wanted.iter().map(|(of, nodes)| (*of, runs_of(nodes)));
        self.ask(Some(&Request { output, wanted: runs.collect() }))?;
        self.left.fetch_sub(1, Ordering::Relaxed);
        let by = || self.run.infer_by(Some(self.comm), output, wanted, keep);
        pool(self.threads)?.install(by)
    }

    fn embeddings_before(&self, edges: &Triples, times: &[i64]) -> Result<[Tensor; 2]> {
        if self.comm.size() > 1 {
            return Err(Error::usage("edges as of their times are scored by one process")
                .hint("leave out --ranks"));
        }
        pool(self.threads)?.install(|| self.run.embeddings_before(edges, times))
    }
}

impl Leader<'_> {
    /// Sends a request, or the end of them.
    fn ask(&self, request: Option<&Request>) -> Result<()> {
        let bytes = serde_json::to_vec(&request)
            .map_err(|e| Error::invalid(format!("asking ranks for an inference: {e}")))?;
        self.comm.all_gather(STAGE, &bytes).map(drop)
    }
}

/// The collective of requests.
const STAGE: &str = "inference: request";

fn runs_of(nodes: &[u32]) -> Runs {
    let runs = nodes.chunk_by(|a, b| a + 1 == *b);
    runs.map(|run| (run[0], run[run.len() - 1] + 1)).collect()
}

/// Computes this rank's share of at most `inferences` inferences that the first one asks for.
///
/// # Errors
/// As [`TrainedRun::infer`], or if a rank fails.
fn follow(
    run: &TrainedRun,
    (comm, threads): (&dyn Communicator, usize),
    inferences: usize,
) -> Result<()> {
    for _ in 0..inferences {
        let all = comm.all_gather(STAGE, &[])?;
        let request: Option<Request> = serde_json::from_slice(&all[0])
            .map_err(|e| Error::new(Kind::Rank, format!("rank 0 asked for no inference: {e}")))?;
        let Some(Request { output, wanted }) = request else { break };
        let nodes = |runs: Runs| runs.into_iter().flat_map(|(first, end)| first..end).collect();
        let wanted: Vec<(usize, Vec<u32>)> =
            wanted.into_iter().map(|(of, runs)| (of, nodes(runs))).collect();
        let by = || run.infer_by(Some(comm), output, &wanted, &mut |_, _, _| Ok(()));
        pool(threads)?.install(by)?;
    }
    Ok(())
}

/// Runs `lead` on the first rank of `comm`, with `inferences` inferences at most; the other ranks take part in them.
/// Returns its result there.
///
/// # Errors
/// Those of `lead`, or if a rank fails.
pub fn infer_on<T>(
    run: &TrainedRun,
    (comm, threads): (&dyn Communicator, usize),
    inferences: usize,
    lead: impl FnOnce(&Leader<'_>) -> Result<T>,
) -> Result<Option<T>> {
    let all = comm.all_gather("inference: the run", run.identity().as_bytes())?;
    let text = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
    if let Some(other) = all.iter().position(|identity| *identity != all[0]) {
        let (first, other_has) = (text(&all[0]), text(&all[other]));
        return Err(Error::usage(format!("rank {other} has {other_has}; rank 0 has {first}"))
            .hint("all ranks open the same run and dataset, on a shared disk or in equal copies"));
    }
    if comm.rank() == 0 && comm.size() > 1 && run.config().model.name == "none" {
        tracing::warn!(
            "the model 'none' has no layers: the first of {} ranks reads the embeddings from their table alone",
            comm.size()
        );
    }
    if comm.rank() > 0 {
        return follow(run, (comm, threads), inferences).map(|()| None);
    }
    let leader = Leader { run, comm, threads, left: AtomicUsize::new(inferences) };
    let found = lead(&leader)?;
    if leader.left.load(Ordering::Relaxed) > 0 {
        leader.ask(None)?;
    }
    Ok(Some(found))
}

/// Runs `lead` with an inference by `ranks` ranks, threads of this process with an even share of its threads each.
///
/// # Errors
/// As [`infer_on`].
pub fn infer_by_threads<T: Send>(
    run: &TrainedRun,
    ranks: usize,
    inferences: usize,
    lead: impl FnOnce(&Leader<'_>) -> Result<T> + Send,
) -> Result<T> {
    let deadline = Duration::from_secs_f64(run.config().train.deadline_seconds);
    let threads = (rayon::current_num_threads() / ranks).max(1);
    let lead = Mutex::new(Some(lead));
    let mut all = local::run(ranks, deadline, |rank| {
        let lead = match rank.rank() {
            0 => lead.lock().unwrap_or_else(PoisonError::into_inner).take(),
            _ => None,
        };
        let lead = |leader: &Leader<'_>| match lead {
            Some(lead) => lead(leader),
            None => Err(Error::new(Kind::Rank, "only the first rank leads")),
        };
        infer_on(run, (rank, threads), inferences, lead)
    })?;
    let found = all.swap_remove(0);
    found.ok_or_else(|| Error::new(Kind::Rank, "the first rank returned no result"))
}
