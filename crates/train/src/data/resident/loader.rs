//! The thread that brings parts into memory, ahead of the batches that are made of them.

use std::sync::Arc;

use gnarl_common::Result;
use gnarl_sample::ResidentGraph;
use gnarl_store::PlacedFeatures;

use super::course::EraCourse;
use super::part::{LoadedPart, StoredParts};
use super::rooms::Rooms;
use crate::faults;

/// Parts in memory: their graph, and their features by its local ids.
pub(crate) struct Resident {
    pub graph: ResidentGraph,
    pub features: PlacedFeatures,
    /// Keeps their rooms.
    _parts: Vec<Arc<LoadedPart>>,
}

/// Brings in the parts of one era after the other.
pub(crate) struct Loader<'a> {
    stored: &'a StoredParts,
    rooms: &'a Rooms,
    places: Vec<Option<Arc<LoadedPart>>>,
    graph: ResidentGraph,
}

impl<'a> Loader<'a> {
    /// Nothing in memory yet.
    ///
    /// # Errors
    /// If local ids of all places exceed 32 bits.
    pub fn new(stored: &'a StoredParts, course: &EraCourse, rooms: &'a Rooms) -> Result<Self> {
        let graph = ResidentGraph::new(course.places(), stored.largest())?;
        Ok(Self { stored, rooms, places: vec![None; course.places()], graph })
    }

    /// The graph of `parts`, of which those that are in memory stay; none once rooms are closed. Others leave first, so
    /// that theirs are free as soon as no batch needs them.
    ///
    /// # Errors
    /// If a part or a bucket cannot be read.
    pub fn bring(&mut self, parts: &[usize]) -> Result<Option<Resident>> {
        for place in &mut self.places {
            if place.as_ref().is_some_and(|part| !parts.contains(&part.nodes.part)) {
                *place = None;
            }
        }
        let here = |places: &[Option<Arc<LoadedPart>>], part: usize| {
            places.iter().flatten().any(|loaded| loaded.nodes.part == part)
        };
        for &part in parts {
            if here(&self.places, part) {
                continue;
            }
            let Some(room) = self.rooms.enter() else { return Ok(None) };
            faults::reached("load");
            let loaded = Arc::new(self.stored.load(part, room)?);
            let free = self.places.iter_mut().find(|place| place.is_none());
            *free.expect("an era has as many parts as places at most") = Some(loaded);
        }
        let nodes = |part: &Option<Arc<LoadedPart>>| part.as_ref().map(|part| part.nodes.clone());
        let places = self.places.iter().map(nodes).collect();
        self.graph = self.graph.with(places, self.stored)?;
        let features =
            |part: &Option<Arc<LoadedPart>>| part.as_ref().map(|part| part.features.clone());
        let features = self.places.iter().map(features).collect();
        Ok(Some(Resident {
            graph: self.graph.clone(),
            features: PlacedFeatures::new(features, self.graph.stride())?,
            _parts: self.places.iter().flatten().cloned().collect(),
        }))
    }
}
