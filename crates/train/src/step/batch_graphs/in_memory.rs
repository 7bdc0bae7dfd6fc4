//! Parts in memory, which change from era to era.

use std::ops::RangeInclusive;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, scope};
use std::time::{Duration, Instant};

use gnarl_common::{Error, IdMap, Kind, Result};
use gnarl_config::RunConfig;
use gnarl_partition::PartitionedDataset;
use gnarl_sample::{ResidentGraph, shuffled_batches};

use super::BatchGraphs;
use crate::data::batch::BatchSpec;
use crate::data::resident::{
    Coming, EraCourse, LoadedPart, Loader, Resident, Rooms, StoredParts, Window,
};
use crate::data::seeds::Seeds;
use crate::encoder::{Encoder, Outputs};
use crate::task::{Sharing, Task};

/// The eras of a run, shared by the ranks of this process.
pub(crate) struct Eras<E: Encoder> {
    config: RunConfig,
    course: EraCourse,
    /// Part of each node.
    owner: Arc<IdMap>,
    stored: StoredParts,
    rooms: Rooms,
    window: Window<Era<E>>,
    begun: AtomicBool,
}

/// An encoder over the parts in memory.
pub(crate) struct Era<E: Encoder> {
    encoder: E,
    sampler: E::Sampler,
    graph: ResidentGraph,
    /// First local id of each part in memory.
    first: Vec<Option<u32>>,
    /// Keeps the rooms of the parts.
    _parts: Vec<Arc<LoadedPart>>,
}

impl<E: Encoder> Eras<E> {
    /// The eras of `config` over the parts of `partition`, with the training nodes `train`, for `ranks` of this process.
    ///
    /// # Errors
    /// If the parts are of another layout, or have what the strategy does not read.
    pub fn open(
        config: &RunConfig,
        partition: &PartitionedDataset,
        owner: Arc<IdMap>,
        (train, ranks): (&[u32], usize),
    ) -> Result<Self> {
        let stored = StoredParts::open(config, partition)?;
        let course = EraCourse::new(config, &owner, train);
        let deadline = Duration::from_secs_f64(config.train.deadline_seconds);
        Ok(Self {
            config: config.clone(),
            // The next parts are read beside those of the batches under way.
            rooms: Rooms::new(course.places() + course.slots()),
            course,
            owner,
            stored,
            window: Window::new(ranks, deadline),
            begun: AtomicBool::new(false),
        })
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
        let tell = |coming| self.window.came(coming == Coming::Full);
        let rooms = (&self.rooms, &tell as &dyn Fn(Coming));
        let mut loader = Loader::new(&self.stored, &self.course, rooms, threads)?;
        for epoch in epochs {
            for (index, era) in self.course.eras(epoch).iter().enumerate() {
                let start = Instant::now();
                let Some(resident) = loader.bring(&era.parts)? else { return Ok(()) };
                tracing::debug!(
                    "epoch {epoch}, era {index}: parts {:?} with {} edges in memory after {:.3} s",
                    era.parts,
                    resident.graph.num_edges(),
                    start.elapsed().as_secs_f64()
                );
                let era = self.era(model, resident)?;
                if !self.window.put(self.course.number(epoch, index), era) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn era(&self, model: &E, resident: Resident) -> Result<Era<E>> {
        let encoder = model.on_resident(&resident)?;
        let sampler = encoder.sampler(&self.config, &[])?;
        let graph = resident.graph;
        let stride = graph.stride();
        let place = |part: usize| graph.place_of(part).map(|place| place as u32 * stride);
        let first = (0..self.course.parts()).map(place).collect();
        Ok(Era { encoder, sampler, graph, first, _parts: resident.parts })
    }
}

/// Ends the loader's work.
struct Close<'a, E: Encoder>(&'a Eras<E>);

impl<E: Encoder> Drop for Close<'_, E> {
    fn drop(&mut self) {
        self.0.window.close();
        self.0.rooms.close();
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
        self.eras.stored.take_read_bytes()
    }

    fn encoder<'s>(&'s self, Held { era, .. }: &'s Held<E>) -> (&'s E, &'s E::Sampler) {
        (&era.encoder, &era.sampler)
    }

    fn seeds(&self, Held { era, .. }: &Held<E>, mut seeds: Seeds) -> Result<Seeds> {
        for node in seeds.nodes.iter_mut().flatten() {
            let (part, row) = self.eras.owner.place(*node as usize);
            let first = era.first[part].ok_or_else(|| {
                Error::invalid(format!("node {node} of part {part} is not in memory"))
            })?;
            *node = first + row as u32;
        }
        Ok(seeds)
    }

    fn outputs(&self, Held { era, .. }: &Held<E>, mut outputs: Outputs) -> Outputs {
        outputs.nodes.iter_mut().for_each(|node| *node = era.graph.id(*node) as u32);
        outputs
    }

    fn model(&self, _: usize) -> &E {
        self.model
    }

    /// The batches of one era after the other. Each has the graph of its era.
    fn schedule<T: Task>(
        &self,
        task: &T,
        _: usize,
        epoch: usize,
        sharing: Sharing,
    ) -> Vec<BatchSpec> {
        let course = &self.eras.course;
        let mut specs = Vec::new();
        for (index, era) in course.eras(epoch).iter().enumerate() {
            let seeds = course.seeds(era);
            let (order, number) = ((epoch, index), course.number(epoch, index));
            let of_era = task.schedule_of(&seeds, order, sharing, &shuffled_batches);
            let own = of_era.iter().filter(|spec| !spec.share.is_empty()).count();
            self.eras.window.announce(number, own);
            specs.extend(of_era.into_iter().map(|spec| BatchSpec {
                graph: number,
                // Another epoch has other parts in memory.
                fixed: false,
                last_of_epoch: false,
                ..spec
            }));
        }
        if let Some(last) = specs.last_mut() {
            last.last_of_epoch = true;
        }
        specs
    }
}
