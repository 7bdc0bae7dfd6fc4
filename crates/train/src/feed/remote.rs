//! Batches of batch workers.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gnarl_common::{Error, Kind, Result};
use gnarl_serve::{BatchRequest, Client, LEASE};

use super::coordinator::Access;
use crate::data::batch::BatchSpec;
use crate::data::identity::digest;
use crate::data::packed::{Pending, columns};

/// Time after which the coordinator is asked again for the workers that live.
const FRESH: Duration = Duration::from_secs(1);
/// Deadline of a question to the coordinator: batches go on without an answer.
const SOON: Duration = Duration::from_secs(2);
/// Pause before the coordinator is asked again while there is nobody to ask for batches.
const PAUSE: Duration = Duration::from_millis(100);

/// The batch workers of a run, as the ranks of a process see them.
pub(crate) struct Feed {
    run: String,
    digest: u32,
    access: Access,
    coordinator: Client,
    uri: String,
    deadline: Duration,
    /// Workers to wait for before the first step.
    awaited: usize,
    known: Mutex<Known>,
    /// The era that all ranks have reached.
    reached: AtomicUsize,
}

struct Known {
    workers: Vec<Arc<Worker>>,
    asked: Option<Instant>,
}

/// A batch worker.
struct Worker {
    uri: String,
    client: Client,
    /// Batches asked for and not yet here.
    under_way: AtomicUsize,
    /// When it last failed.
    failed: Mutex<Option<Instant>>,
}

impl Worker {
    /// Returns whether it has failed lately, so that others are asked first.
    fn is_doubtful(&self) -> bool {
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed.is_some_and(|at| at.elapsed() < LEASE)
    }

    /// Notes that it has failed, with a warning for the first time.
    fn fails(&self, error: &Error) {
        if !self.is_doubtful() {
            tracing::warn!("its batches are asked of other workers: {error}");
        }
        *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }
}

impl Feed {
    /// The batch workers of `run` that the coordinator at `uri` knows, of which `awaited` must live before the first step.
    ///
    /// # Errors
    /// If the address or the certificate is invalid.
    pub fn new(
        (run, access, uri): (String, Access, String),
        awaited: usize,
        deadline: Duration,
    ) -> Result<Self> {
        Ok(Self {
            digest: digest(&run),
            run,
            coordinator: access.connect(&uri, SOON)?,
            access,
            uri,
            deadline,
            awaited,
            known: Mutex::new(Known { workers: Vec::new(), asked: None }),
            reached: AtomicUsize::new(0),
        })
    }

    /// Batches to ask for ahead of those that are awaited, so that no worker is idle.
    pub fn ahead(&self) -> usize {
        2 * self.awaited
    }

    /// Batch workers that lived when the coordinator was asked last.
    pub fn living(&self) -> usize {
        self.known().workers.len()
    }

    /// Waits until as many batch workers live as were asked for.
    ///
    /// # Errors
    /// [`Kind::Rank`] with how to start them if they do not come within the deadline; [`Kind::Usage`] if the coordinator
    /// has another run.
    pub fn gather(&self) -> Result<()> {
        let start = Instant::now();
        loop {
            let found = self.refresh()?;
            if found >= self.awaited {
                return Ok(());
            }
            if start.elapsed() > self.deadline {
                return Err(self.nobody(&format!("{found} of {} have joined", self.awaited)));
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn nobody(&self, found: &str) -> Error {
        let seconds = self.deadline.as_secs_f64();
        Error::new(Kind::Rank, format!("no batch workers within {seconds} s: {found}"))
            .hint(format!("start them by 'gnarl work --role batch RUN.toml --join {}'", self.uri))
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the coordinator who lives; without an answer all stays as it was.
    ///
    /// # Errors
    /// [`Kind::Usage`] if the coordinator has another run, or the token is wrong.
    fn refresh(&self) -> Result<usize> {
        self.known().asked = Some(Instant::now());
        let living = match self.coordinator.living(&self.run) {
            Ok(living) => living,
            Err(error) if error.kind() == Kind::Rank => {
                tracing::debug!("the coordinator does not answer: {error}");
                return Ok(self.known().workers.len());
            }
            Err(error) => return Err(error),
        };
        let mut known = self.known();
        known.workers.retain(|worker| living.workers.contains(&worker.uri));
        for uri in living.workers {
            if known.workers.iter().all(|worker| worker.uri != uri) {
                let client = self.access.connect(&uri, self.deadline)?;
                let (under_way, failed) = (AtomicUsize::new(0), Mutex::new(None));
                known.workers.push(Arc::new(Worker { uri, client, under_way, failed }));
            }
        }
        Ok(known.workers.len())
    }

    /// Notes that all ranks compute on batches of era `era`.
    pub fn reach(&self, era: usize) {
        self.reached.fetch_max(era, Ordering::Relaxed);
    }

    /// Asks for the batch of `spec`. The returned function waits for it; a worker that fails is replaced by another one.
    ///
    /// # Errors
    /// If the coordinator has another run, or nobody lives within the deadline.
    pub fn ask(self: &Arc<Self>, spec: &BatchSpec) -> Result<Pending> {
        let request = BatchRequest {
            run: self.digest,
            era: spec.graph as u64,
            key: spec.key.bits(),
            examples: spec.batch.to_vec(),
            share: [spec.share.start, spec.share.end],
            reached: self.reached.load(Ordering::Relaxed) as u64,
        };
        let start = Instant::now();
        let mut asked = Vec::new();
        let mut waiting = self.ask_one(&request, &mut asked, start, None)?;
        let feed = self.clone();
        Ok(Box::new(move || {
            loop {
                let error = match waiting() {
                    Ok(found) => return columns(&found),
                    Err(error) if error.kind() == Kind::Usage => return Err(error),
                    Err(error) => error,
                };
                waiting = feed.ask_one(&request, &mut asked, start, Some(error))?;
            }
        }))
    }

    /// Asks the living worker with the fewest batches under way that is not among `asked`.
    fn ask_one(
        &self,
        request: &BatchRequest,
        asked: &mut Vec<String>,
        start: Instant,
        last: Option<Error>,
    ) -> Result<impl FnOnce() -> Result<arrow_array::RecordBatch> + Send + use<>> {
        if self.known().asked.is_none_or(|asked| asked.elapsed() > FRESH) {
            self.refresh()?;
        }
        loop {
            let free = {
                let known = self.known();
                let others = known.workers.iter().filter(|worker| !asked.contains(&worker.uri));
                let load = |worker: &Worker| worker.under_way.load(Ordering::Relaxed);
                others.min_by_key(|worker| (worker.is_doubtful(), load(worker))).cloned()
            };
            if let Some(worker) = free {
                asked.push(worker.uri.clone());
                let waiting = worker.client.ask_batch(request)?;
                worker.under_way.fetch_add(1, Ordering::Relaxed);
                return Ok(move || {
                    let found = waiting().inspect_err(|error| worker.fails(error));
                    worker.under_way.fetch_sub(1, Ordering::Relaxed);
                    found
                });
            }
            if start.elapsed() > self.deadline {
                let why =
                    last.map_or_else(String::new, |error| format!("; the last error: {error}"));
                return Err(self.nobody(&format!("asked {asked:?}{why}")));
            }
            // Those that have failed may have come back.
            std::thread::sleep(PAUSE);
            if self.refresh()? > 0 && start.elapsed() > FRESH {
                asked.clear();
            }
        }
    }
}
