//! The thread that brings parts into memory, ahead of the batches that are made of them.

use std::sync::Arc;
use std::thread;

use gnarl_common::Result;
use gnarl_common::threads::pool;
use gnarl_sample::ResidentGraph;
use gnarl_store::PlacedFeatures;
use rayon::ThreadPool;

use super::course::EraCourse;
use super::part::{LoadedPart, StoredParts};
use super::reader::{Coming, Reader};
use super::rooms::Rooms;

/// Parts in memory: their graph, and the features of each node type that has any by its local ids.
pub(crate) struct Resident {
    pub graph: ResidentGraph,
    pub features: Vec<Option<PlacedFeatures>>,
    /// The parts, whose rooms are taken as long as these are kept.
    pub parts: Vec<Arc<LoadedPart>>,
}

/// Brings in the parts of one era after the other.
pub(crate) struct Loader<'a> {
    stored: &'a Arc<StoredParts>,
    places: Vec<Option<Arc<LoadedPart>>>,
    graph: ResidentGraph,
    reader: Reader,
    /// Called when a part has come, and while there is no room for the next.
    tell: &'a dyn Fn(Coming),
    pool: ThreadPool,
}

impl<'a> Loader<'a> {
    /// Nothing in memory yet.
    ///
    /// # Errors
    /// If local ids of all places exceed 32 bits, or the system starts no threads.
    pub fn new(
        stored: &'a Arc<StoredParts>,
        course: &EraCourse,
        (rooms, tell): (&Rooms, &'a dyn Fn(Coming)),
        threads: usize,
    ) -> Result<Self> {
        let schema = stored.schema().clone();
        let graph = ResidentGraph::new(schema, course.places(), stored.largest())?;
        let graph = if course.places() == course.parts() { graph.fixed() } else { graph };
        let reading = pool(threads)?;
        let parts = stored.clone();
        let load = move |part, room| reading.install(|| parts.load(part, room));
        let reader = Reader::new(Box::new(load), rooms)?;
        let pool = pool(threads)?;
        Ok(Self { stored, places: vec![None; course.places()], graph, reader, tell, pool })
    }

    /// The number of `parts` that have no room yet.
    #[cfg(feature = "serve")]
    pub fn missing(&self, parts: &[usize]) -> usize {
        self.reader.missing(&self.not_here(parts))
    }

    /// Those of `parts` that are in no place.
    fn not_here(&self, parts: &[usize]) -> Vec<usize> {
        let here = |part: usize| self.places.iter().flatten().any(|at| at.nodes.part == part);
        parts.iter().copied().filter(|&part| !here(part)).collect()
    }

    /// The graph of `parts`, of which those that are in memory stay; none once rooms are closed. Others leave first, so
    /// that their rooms are free as soon as no batch needs them. What `next` needs beside `parts` is read from then on, as
    /// far as there is room; while lists are made, the disk begins to read the edges of `next`.
    ///
    /// # Errors
    /// If a part or a bucket cannot be read.
    pub fn bring(&mut self, parts: &[usize], next: &[usize]) -> Result<Option<Resident>> {
        for place in &mut self.places {
            if place.as_ref().is_some_and(|part| !parts.contains(&part.nodes.part)) {
                *place = None;
            }
        }
        let missing = self.not_here(parts);
        let coming: Vec<usize> =
            next.iter().filter(|part| !parts.contains(part)).copied().collect();
        self.reader.want(&missing, &coming);
        for part in missing {
            let Some(loaded) = self.reader.take(part, self.tell)? else { return Ok(None) };
            let free = self.places.iter_mut().find(|place| place.is_none());
            *free.expect("an era has as many parts as places at most") = Some(loaded);
        }
        let nodes = |part: &Option<Arc<LoadedPart>>| part.as_ref().map(|part| part.nodes.clone());
        let places = self.places.iter().map(nodes).collect();
        self.graph = thread::scope(|scope| {
            // It may wait for the disk. Without a thread they are read when they come.
            _ = thread::Builder::new()
                .name("expect".into())
                .spawn_scoped(scope, || self.stored.expect(&coming, next));
            self.pool.install(|| self.graph.with(places, self.stored.as_ref()))
        })?;
        (self.tell)(Coming::Came);
        let types = 0..self.graph.schema().node_types().len();
        Ok(Some(Resident {
            graph: self.graph.clone(),
            features: types.map(|of| self.features(of)).collect::<Result<_>>()?,
            parts: self.places.iter().flatten().cloned().collect(),
        }))
    }

    /// The features of the nodes of a type, if they have any.
    fn features(&self, node_type: usize) -> Result<Option<PlacedFeatures>> {
        let of_part = |part: &Option<Arc<LoadedPart>>| part.as_ref()?.features[node_type].clone();
        let places: Vec<_> = self.places.iter().map(of_part).collect();
        if places.iter().all(Option::is_none) {
            return Ok(None);
        }
        PlacedFeatures::new(places, self.graph.stride(node_type)).map(Some)
    }
}
