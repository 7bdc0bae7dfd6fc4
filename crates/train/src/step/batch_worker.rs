//! The work of a batch worker: eras are loaded as they are asked for, and batches prepared of them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{Builder, scope};
use std::time::Instant;

use arrow_array::RecordBatch;
use arrow_schema::Schema;
use crossbeam_channel::Receiver;
use gnarl_common::rng::Key;
use gnarl_common::threads::pool;
use gnarl_common::{Error, Kind, Result};
use gnarl_sample::Scratch;
use gnarl_serve::{BatchRequest, Reply, RowsRequest, WorkRequest};
use rayon::ThreadPool;

use super::TrainStep;
use super::batch_graphs::{Era, EraSource, OneEra};
use super::mini_batch::MiniBatch;
use crate::data::batch::BatchSpec;
use crate::data::packed::{Columns, record_batch};
use crate::data::resident::{Coming, Loader, Sequel, Shelf, Wanted};
use crate::encoder::Encoder;
use crate::faults;
use crate::task::{Encoders, Task};

/// A request for a batch or for features, and where the reply goes.
pub(crate) type Ask = (WorkRequest, Reply);

/// Totals of a batch worker.
#[derive(Debug, Default)]
pub struct Worked {
    /// Batches prepared.
    pub batches: AtomicU64,
    /// Bytes of parts read into memory.
    pub read: AtomicU64,
    /// Nanoseconds of preparing batches, over all threads.
    pub prepared: AtomicU64,
    /// Nanoseconds of waiting for parts, which may wait for rooms, and of making lists.
    pub loaded: AtomicU64,
    /// Batches asked for that are not made yet.
    pub asked: AtomicU64,
}

/// The parts, the task and the model of a batch worker.
pub(crate) struct BatchWorker<'a, T: Task, E: Encoder> {
    pub source: EraSource,
    pub task: &'a T,
    pub encoders: Encoders<'a, E>,
    pub worked: &'a Worked,
}

impl<T: Task, E: Encoder> BatchWorker<'_, T, E> {
    /// Prepares the batches of `asks`, by so many threads, until nobody can ask any more.
    ///
    /// # Errors
    /// If a part cannot be read; [`Kind::Limit`] if the system starts no threads.
    pub fn work(&self, asks: &Receiver<Ask>, threads: usize) -> Result<()> {
        let shelf: Shelf<Era<E>, Ask> = Shelf::new();
        let failure = Mutex::new(None);
        let fail = |error: Error| {
            let mut first = failure.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let told = first.get_or_insert(error).clone();
            drop(first);
            for (request, reply) in shelf.close() {
                self.answer((is_batch(&request), reply), Err(told.clone()));
            }
            self.source.rooms.close();
        };
        let pool = pool(threads)?;
        scope(|scope| {
            let mut started = Vec::new();
            let spawn = |name: &str| Builder::new().name(name.into());
            started.push(spawn("load").spawn_scoped(scope, || {
                let load = AssertUnwindSafe(|| self.load(&shelf, threads));
                let died = |_| Err(dead("reads parts into memory"));
                if let Err(error) = catch_unwind(load).unwrap_or_else(died) {
                    fail(error);
                }
            }));
            for _ in 0..threads.max(1) {
                started.push(spawn("prepare").spawn_scoped(scope, || self.prepare(&shelf, &pool)));
            }
            if started.iter().any(std::io::Result::is_err) {
                fail(Error::new(Kind::Limit, "cannot start the threads that prepare batches"));
            }
            for ask in asks {
                let counted = is_batch(&ask.0);
                self.worked.asked.fetch_add(u64::from(counted), Ordering::Relaxed);
                let era = ask.0.era();
                let reached = ask.0.reached();
                let sequel = match &ask.0 {
                    WorkRequest::Batch(BatchRequest { features: true, .. }) => Sequel::None,
                    WorkRequest::Batch(_) => Sequel::Comes,
                    WorkRequest::Rows(_) => Sequel::IsThis,
                };
                if let WorkRequest::Rows(RowsRequest { nodes, .. }) = &ask.0
                    && nodes.is_empty()
                {
                    shelf.settle(era);
                    let nothing = RecordBatch::new_empty(Arc::new(Schema::empty()));
                    self.answer((counted, ask.1), Ok(nothing));
                } else if self.source.course.of(era).is_none() {
                    let error = Error::invalid(format!("there is no era {era}"));
                    self.answer((counted, ask.1), Err(error));
                } else if let Some((_, reply)) = shelf.ask((era, reached), sequel, ask) {
                    let error = Error::new(Kind::Rank, "the batch worker has failed");
                    self.answer((counted, reply), Err(error));
                    break;
                }
            }
            for (request, reply) in shelf.close() {
                let error = Error::new(Kind::Rank, "the batch worker ends");
                self.answer((is_batch(&request), reply), Err(error));
            }
            self.source.rooms.close();
        });
        failure.into_inner().unwrap_or_default().map_or(Ok(()), Err)
    }

    /// Brings in the eras that are wanted, until the shelf is closed.
    fn load(&self, shelf: &Shelf<Era<E>, Ask>, threads: usize) -> Result<()> {
        let EraSource { course, stored, rooms, .. } = &self.source;
        let before = AtomicU64::new(u64::MAX);
        let tell = |coming| {
            if coming == Coming::Full {
                let before = before.load(Ordering::Relaxed);
                shelf.make_room((before != u64::MAX).then_some(before as usize));
            }
        };
        let mut loader = Loader::new(stored, course, (rooms, &tell), threads)?;
        let mut last = None;
        loop {
            let follows = |last: usize| Some(course.after(last));
            let is_room = |next: usize| {
                let parts = course.of(next).map(|(era, _)| era).unwrap_or_default();
                loader.missing(&parts) <= rooms.free()
            };
            let number = match shelf.wanted(&follows, &is_room) {
                Some(Wanted::Asked(number) | Wanted::Next(number)) => number,
                None => return Ok(()),
            };
            let Some((era, earlier)) = course.of(number) else {
                return Err(Error::invalid(format!("there is no era {number}")));
            };
            // It shares its parts with the next one only if these are the last ones loaded.
            let kept = earlier.filter(|earlier| last == Some(*earlier));
            last = Some(number);
            before.store(kept.map_or(u64::MAX, |kept| kept as u64), Ordering::Relaxed);
            let start = Instant::now();
            let next = course.of(course.after(number)).map(|(era, _)| era).unwrap_or_default();
            let Some(resident) = loader.bring(&era, &next)? else { return Ok(()) };
            let read = stored.take_read_bytes();
            self.worked.read.fetch_add(read, Ordering::Relaxed);
            count(&self.worked.loaded, start);
            tracing::debug!(
                "era {number}: parts {:?} in memory after {:.3} s, {read} bytes read since the last",
                era,
                start.elapsed().as_secs_f64()
            );
            let era = self.source.era(self.encoders.whole, resident)?;
            shelf.put(number, Arc::new(era));
        }
    }

    /// Answers a request, which `counted` if it was for a batch.
    fn answer(&self, (counted, reply): (bool, Reply), with: Result<RecordBatch>) {
        self.worked.asked.fetch_sub(u64::from(counted), Ordering::Relaxed);
        reply(with);
    }

    /// Prepares batches until the shelf is closed.
    fn prepare(&self, shelf: &Shelf<Era<E>, Ask>, pool: &ThreadPool) {
        let mut scratch = Scratch::new();
        while let Some((era, (request, reply))) = shelf.next() {
            let start = Instant::now();
            let counted = is_batch(&request);
            let number = request.era();
            let follows =
                matches!(request, WorkRequest::Batch(BatchRequest { features: false, .. }));
            let mut reply_to = |request| match request {
                WorkRequest::Batch(request) => self.batch(&era, request, &mut scratch),
                WorkRequest::Rows(request) => self.rows(&era, &request),
            };
            let make = AssertUnwindSafe(|| pool.install(|| reply_to(request)));
            let made = catch_unwind(make).unwrap_or_else(|_| Err(dead("prepares batches")));
            drop(era);
            count(&self.worked.prepared, start);
            let batches = u64::from(counted && made.is_ok());
            self.worked.batches.fetch_add(batches, Ordering::Relaxed);
            faults::reached("reply");
            if follows {
                shelf.replied(number);
            }
            self.answer((counted, reply), made);
        }
    }

    fn batch(
        &self,
        era: &Era<E>,
        request: BatchRequest,
        scratch: &mut Scratch,
    ) -> Result<RecordBatch> {
        let spec = BatchSpec {
            graph: request.era as usize,
            batch: request.examples.into(),
            share: request.share[0]..request.share[1],
            key: Key::from_bits(request.key),
            uses: None,
            fixed: false,
            last_of_step: true,
            last_of_epoch: false,
        };
        let graphs = OneEra { source: &self.source, era };
        let step = MiniBatch::new(self.task, self.encoders, graphs)?;
        faults::reached("sample");
        let sampled = step.sample(&spec, scratch)?;
        faults::reached("fetch");
        let batch = match request.features {
            true => step.fetch(&spec, sampled)?,
            false => step.without_features(&spec, sampled)?,
        };
        record_batch(step.packed(batch, spec.graph)?)
    }

    /// The features of nodes in an era.
    fn rows(&self, era: &Era<E>, request: &RowsRequest) -> Result<RecordBatch> {
        faults::reached("rows");
        let local = |&node: &u64| era.local(&self.source, (0, node));
        let nodes: Vec<u32> = request.nodes.iter().map(local).collect::<Result<_>>()?;
        let mut columns = Columns::default();
        era.encoder().0.pack_features(&nodes, &mut columns)?;
        record_batch(columns)
    }
}

/// True for a request for a batch.
fn is_batch(request: &WorkRequest) -> bool {
    matches!(request, WorkRequest::Batch(_))
}

/// Adds the time since `start` to a counter of nanoseconds.
fn count(counter: &AtomicU64, start: Instant) {
    let nanoseconds = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
    counter.fetch_add(nanoseconds, Ordering::Relaxed);
}

fn dead(work: &str) -> Error {
    Error::new(Kind::Limit, format!("the thread that {work} died"))
}
