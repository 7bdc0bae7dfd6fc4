//! Parts in memory, which change from era to era.

use std::ops::RangeInclusive;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, scope};
use std::time::{Duration, Instant};

use gnarl_common::{Error, Kind, Result};

use super::BatchGraphs;
use super::era::{Era, EraSource, schedule};
use crate::data::batch::BatchSpec;
use crate::data::resident::{Coming, Loader, NodesInMemory, Window};
use crate::data::seeds::Seeds;
use crate::encoder::{Encoder, Outputs};
use crate::task::{Sharing, Task};

/// The eras of a run, shared by the ranks of this process.
pub(crate) struct Eras<E: Encoder> {
    source: EraSource,
    window: Window<Era<E>>,
    begun: AtomicBool,
}

impl<E: Encoder> Eras<E> {
    /// The eras of `source`, for `ranks` of this process.
    pub fn new(source: EraSource, ranks: usize) -> Self {
        let deadline = Duration::from_secs_f64(source.config.train.deadline_seconds);
        Self { source, window: Window::new(ranks, deadline), begun: AtomicBool::new(false) }
    }

    /// Runs `train`, a rank of this process, while one of them brings in the parts of `epochs` with encoders like `model`,
    /// by so many `threads`.
    ///
    /// # Errors
    /// Those of `train`; [`Kind::Limit`] if the system starts no thread.
    pub fn beside<R>(
        &self,
        (model, threads): (&E, usize),
        epochs: RangeInclusive<usize>,
        train: impl FnOnce() -> Result<R>,
    ) -> Result<R> {
        scope(|scope| {
            // Whichever way it ends, the loader has nothing left to do: ranks end together.
            let _close = Close(self);
            if !self.begun.swap(true, Ordering::Relaxed) {
                let spawned = Builder::new()
                    .name("load".into())
                    .spawn_scoped(scope, move || self.load((model, threads), epochs));
                let no_thread = |e| Error::new(Kind::Limit, format!("a thread to read parts: {e}"));
                spawned.map_err(no_thread)?;
            }
            // The other ranks end by the same error, not by what follows from it.
            train().inspect_err(|error| self.window.fail(error.clone()))
        })
    }

    fn load(&self, model: (&E, usize), epochs: RangeInclusive<usize>) {
        let load = AssertUnwindSafe(|| self.load_all(model, epochs));
        let died = || Err(Error::new(Kind::Limit, "the thread that reads parts into memory died"));
        if let Err(error) = catch_unwind(load).unwrap_or_else(|_| died()) {
            self.window.fail(error);
        }
    }

    fn load_all(&self, (model, threads): (&E, usize), epochs: RangeInclusive<usize>) -> Result<()> {
        let EraSource { course, stored, rooms, .. } = &self.source;
        let tell = |coming| self.window.came(coming == Coming::Full);
        let mut loader = Loader::new(stored, course, (rooms, &tell), threads)?;
        let last = *epochs.end();
        for epoch in epochs {
            let eras = course.eras(epoch);
            let following = if epoch < last { course.eras(epoch + 1) } else { Arc::default() };
            for (index, era) in eras.iter().enumerate() {
                let start = Instant::now();
                let next = eras.get(index + 1).or(following.first());
                let next = next.map_or(&[][..], Vec::as_slice);
                let Some(resident) = loader.bring(era, next)? else { return Ok(()) };
                tracing::debug!(
                    "epoch {epoch}, era {index}: parts {:?} with {} edges in memory after {:.3} s",
                    era,
                    resident.graph.num_edges(),
                    start.elapsed().as_secs_f64()
                );
                let era = self.source.era(model, resident)?;
                if !self.window.put(course.number(epoch, index), era) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

/// Ends the loader's work.
struct Close<'a, E: Encoder>(&'a Eras<E>);

impl<E: Encoder> Drop for Close<'_, E> {
    fn drop(&mut self) {
        self.0.window.close();
        self.0.source.rooms.close();
    }
}

/// Batches over the parts in memory, with the model of `model`.
pub(crate) struct InMemory<'a, E: Encoder> {
    pub eras: &'a Eras<E>,
    pub model: &'a E,
}

/// The era of a batch, and the seconds that it was waited for.
pub(crate) struct Held<E: Encoder> {
    era: Arc<Era<E>>,
    loading: f64,
}

impl<E: Encoder> BatchGraphs<E> for InMemory<'_, E> {
    type Held = Held<E>;

    fn hold(&self, spec: &BatchSpec) -> Result<Held<E>> {
        let start = Instant::now();
        let era = self.eras.window.take(spec.graph)?;
        Ok(Held { era, loading: start.elapsed().as_secs_f64() })
    }

    fn loading(&self, held: &Held<E>) -> f64 {
        held.loading
    }

    fn read_bytes(&self) -> u64 {
        self.eras.source.stored.take_read_bytes()
    }

    fn encoder<'s>(&'s self, Held { era, .. }: &'s Held<E>) -> (&'s E, &'s E::Sampler) {
        era.encoder()
    }

    fn nodes<'s>(&'s self, Held { era, .. }: &'s Held<E>) -> Option<&'s NodesInMemory> {
        Some(era.nodes())
    }

    fn seeds(&self, Held { era, .. }: &Held<E>, seeds: Seeds) -> Result<Seeds> {
        era.seeds(&self.eras.source, seeds)
    }

    fn outputs(&self, Held { era, .. }: &Held<E>, outputs: Outputs) -> Outputs {
        era.outputs(&self.eras.source, outputs)
    }

    fn model(&self, _: usize) -> &E {
        self.model
    }

    fn schedule<T: Task>(
        &self,
        task: &T,
        _: usize,
        epoch: usize,
        sharing: Sharing,
    ) -> Vec<BatchSpec> {
        let announce = |era, batches| self.eras.window.announce(era, batches);
        schedule(&self.eras.source.course, task, epoch, sharing, &announce)
    }
}
