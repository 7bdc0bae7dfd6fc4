//! Batches of batch workers.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};

use crossbeam_channel::bounded;
use gnarl_common::{DType, Error, Kind, Result};
use gnarl_serve::{BatchRequest, Client, LEASE, RowsRequest, WorkRequest};

use super::coordinator::Access;
use super::features::{Features, Step};
use crate::data::batch::{BatchSpec, Input};
use crate::data::identity::digest;
use crate::data::packed::rows::{OF_NODES, add_cached, pack, unpack};
use crate::data::packed::{Columns, Pending, columns};

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
    /// The features of batches, where they are asked for apart from them.
    features: Option<Features>,
    /// True once the run has ended: threads that wait for its batches end too.
    ended: Arc<AtomicBool>,
}

struct Known {
    workers: Vec<Arc<Worker>>,
    asked: Option<Instant>,
}

/// A batch worker.
struct Worker {
    uri: String,
    client: Client,
    /// Requests without a reply yet.
    under_way: AtomicUsize,
    /// When it last failed.
    failed: Mutex<Option<Instant>>,
    /// True once the run has ended.
    ended: Arc<AtomicBool>,
}

/// A request to a worker, until its reply is here or not waited for.
struct UnderWay(Arc<Worker>);

impl UnderWay {
    fn begin(worker: Arc<Worker>) -> Self {
        worker.under_way.fetch_add(1, Ordering::Relaxed);
        Self(worker)
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Worker {
    /// Returns whether it has failed lately, so that others are asked first.
    fn is_doubtful(&self) -> bool {
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed.is_some_and(|at| at.elapsed() < LEASE)
    }

    /// Notes that it has failed, with a warning for the first time.
    fn fails(&self, error: &Error) {
        if !self.is_doubtful() && !self.ended.load(Ordering::Relaxed) {
            tracing::warn!("its batches are asked of other workers: {error}");
        }
        *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }
}

impl Feed {
    /// The batch workers of `run` that the coordinator at `uri` knows, of which `awaited` must live before the first step.
    /// With `features`, batches come without those of their input nodes.
    ///
    /// # Errors
    /// If the address or the certificate is invalid.
    pub fn new(
        (run, access, uri): (String, Access, String),
        features: Option<Features>,
        (awaited, deadline): (usize, Duration),
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
            features,
            ended: Arc::default(),
        })
    }

    /// Notes that the run has ended: nobody is asked for batches again.
    pub fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
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
                known.workers.push(Arc::new(Worker {
                    uri,
                    client,
                    under_way: AtomicUsize::new(0),
                    failed: Mutex::new(None),
                    ended: self.ended.clone(),
                }));
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
        let request = WorkRequest::Batch(BatchRequest {
            run: self.digest,
            era: spec.graph as u64,
            key: spec.key.bits(),
            examples: spec.batch.to_vec(),
            share: [spec.share.start, spec.share.end],
            reached: self.reached.load(Ordering::Relaxed) as u64,
            features: self.features.is_none(),
        });
        let waiting = self.clone().start(request, None)?;
        let Some(features) = &self.features else {
            return Ok(Box::new(move || Ok(waiting()?.0)));
        };
        let step = features.step(spec);
        let era = spec.graph as u64;
        let feed = self.clone();
        let (done, made) = bounded(1);
        // Features are asked for when the batch comes, not when it is needed: until then its worker keeps the era in memory.
        let ask = move || {
            let batch = waiting().and_then(|batch| feed.with_features(batch, step, era));
            // Whoever asked may have ended.
            _ = done.send(batch);
        };
        let spawned = Builder::new().name("features".into()).spawn(ask);
        spawned
            .map_err(|e| Error::new(Kind::Limit, format!("a thread to ask for features: {e}")))?;
        let died = || Error::new(Kind::Limit, "the thread that asks for features died");
        Ok(Box::new(move || made.recv().unwrap_or_else(|_| Err(died()))))
    }

    /// A batch of `era`, which the worker `from` has sent, with the features of its input nodes.
    fn with_features(
        self: &Arc<Self>,
        (mut columns, from): (Columns, String),
        step: Step,
        era: u64,
    ) -> Result<Columns> {
        let Some(features) = &self.features else { return Ok(columns) };
        let nodes = input_nodes(&mut columns)?;
        let is_asked = AtomicBool::new(false);
        let source = |nodes: &[u64], out: &mut [f32]| {
            is_asked.store(true, Ordering::Relaxed);
            self.rows((era, &from), nodes, out)
        };
        let (rows, cached) = features.fetch(step, &nodes, &source)?;
        if !is_asked.into_inner() {
            self.settle(era, &from);
        }
        columns.add("nodes.id", nodes);
        add_cached(cached, &mut columns);
        pack((Input::Dense(rows), OF_NODES), DType::F32, &mut columns);
        Ok(columns)
    }

    /// Tells the worker `from` that no features of a batch are asked for, which it keeps the era in memory for.
    fn settle(&self, era: u64, from: &str) {
        let worker = self.known().workers.iter().find(|worker| worker.uri == from).cloned();
        if let Some(worker) = worker {
            // Nobody waits for the reply; without the message the era stays a little longer.
            drop(worker.client.ask_batch(&self.request_rows(era, &[])));
        }
    }

    /// The request for the features of `nodes`.
    fn request_rows(&self, era: u64, nodes: &[u64]) -> WorkRequest {
        WorkRequest::Rows(RowsRequest {
            run: self.digest,
            era,
            nodes: nodes.to_vec(),
            reached: self.reached.load(Ordering::Relaxed) as u64,
        })
    }

    /// The features of `nodes`, which are in memory in `era`; the worker `first` is asked before others.
    fn rows(
        self: &Arc<Self>,
        (era, first): (u64, &str),
        nodes: &[u64],
        out: &mut [f32],
    ) -> Result<()> {
        let request = self.request_rows(era, nodes);
        let (mut columns, from) = self.clone().start(request, Some(first))?()?;
        let wrong = |found: String| Error::invalid(format!("features of {from}: {found}"));
        let found = unpack(&mut columns, (OF_NODES, nodes.len()));
        let Input::Dense(found) = found.map_err(|error| wrong(error.to_string()))? else {
            return Err(wrong("sparse, expected dense ones".into()));
        };
        if found.data().len() != out.len() {
            let width = found.cols();
            return Err(wrong(format!("{width} values a node, as in no dataset of this run")));
        }
        out.copy_from_slice(found.data());
        Ok(())
    }

    /// Sends a request, to the worker `first` if it lives. The returned function waits for the reply, and says who sent it; a
    /// worker that fails is replaced by another one.
    fn start(
        self: Arc<Self>,
        request: WorkRequest,
        first: Option<&str>,
    ) -> Result<impl FnOnce() -> Result<(Columns, String)> + Send + use<>> {
        let start = Instant::now();
        let mut asked = Vec::new();
        let mut waiting = self.ask_one((&request, first), &mut asked, start, None)?;
        Ok(move || {
            loop {
                let error = match waiting() {
                    Ok(found) => return Ok((columns(&found)?, asked.pop().unwrap_or_default())),
                    Err(error) if error.kind() == Kind::Usage => return Err(error),
                    Err(error) => error,
                };
                waiting = self.ask_one((&request, None), &mut asked, start, Some(error))?;
            }
        })
    }

    /// Asks the living worker with the fewest batches under way that is not among `asked`, or `first` if it is one of them.
    fn ask_one(
        &self,
        (request, first): (&WorkRequest, Option<&str>),
        asked: &mut Vec<String>,
        start: Instant,
        last: Option<Error>,
    ) -> Result<impl FnOnce() -> Result<arrow_array::RecordBatch> + Send + use<>> {
        if self.known().asked.is_none_or(|asked| asked.elapsed() > FRESH) {
            self.refresh()?;
        }
        loop {
            if self.ended.load(Ordering::Relaxed) {
                return Err(Error::new(Kind::Rank, "the run has ended"));
            }
            let free = {
                let known = self.known();
                let others = known.workers.iter().filter(|worker| !asked.contains(&worker.uri));
                let load = |worker: &Worker| worker.under_way.load(Ordering::Relaxed);
                let is_first = |worker: &Worker| first.is_some_and(|first| first == worker.uri);
                let order =
                    |worker: &&Arc<Worker>| (!is_first(worker), worker.is_doubtful(), load(worker));
                others.min_by_key(order).cloned()
            };
            if let Some(worker) = free {
                asked.push(worker.uri.clone());
                let waiting = worker.client.ask_batch(request)?;
                let under_way = UnderWay::begin(worker);
                return Ok(move || waiting().inspect_err(|error| under_way.0.fails(error)));
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

/// Takes the ids of a batch's input nodes.
fn input_nodes(columns: &mut Columns) -> Result<Vec<u64>> {
    let mut nodes: Vec<u64> = columns.take("nodes.id")?;
    let first = columns.take_one("blocks.0.sources")?;
    nodes.truncate(first as usize);
    columns.add("blocks.0.sources", vec![first]);
    Ok(nodes)
}
