//! The graph of an era, and its batches.

use std::sync::Arc;

use gnarl_common::{Error, IdMap, Result};
use gnarl_config::RunConfig;
use gnarl_partition::PartitionedDataset;
use gnarl_sample::{ResidentGraph, shuffled_batches};
use gnarl_store::embedding::Nodes;

use crate::data::batch::{BatchSpec, Uses};
use crate::data::resident::{EraCourse, LoadedPart, NodesInMemory, Resident, Rooms, StoredParts};
use crate::data::seeds::Seeds;
use crate::encoder::{Encoder, Outputs};
use crate::task::{Sharing, Task};

/// A node type with endpoints: its name, and the part of each of its nodes.
pub(crate) type EndpointType = (String, Arc<IdMap>);

/// The parts of a run, and which of them are in memory when.
pub(crate) struct EraSource {
    pub config: RunConfig,
    pub course: EraCourse,
    /// The types with endpoints.
    endpoints: Vec<Endpoint>,
    pub stored: Arc<StoredParts>,
    pub rooms: Rooms,
}

/// A node type with endpoints.
struct Endpoint {
    /// Its number among the types of the parts.
    number: usize,
    /// Part of each of its nodes.
    owner: Arc<IdMap>,
}

impl EraSource {
    /// The parts of `partition` for the run of `config` with endpoints of the types `endpoints`, in memory by `course`.
    ///
    /// # Errors
    /// If the parts are of another layout, or have what the strategy does not read.
    pub fn open(
        config: &RunConfig,
        partition: &PartitionedDataset,
        endpoints: Vec<EndpointType>,
        course: EraCourse,
    ) -> Result<Self> {
        let stored = Arc::new(StoredParts::open(config, partition)?);
        let schema = stored.schema();
        let number = |(name, owner)| Ok(Endpoint { number: schema.node_type(name)?, owner });
        let endpoints =
            endpoints.iter().map(|(name, owner)| number((name.as_str(), owner.clone())));
        let endpoints = endpoints.collect::<Result<_>>()?;
        Ok(Self {
            config: config.clone(),
            // The next parts are read beside those of the batches under way.
            rooms: Rooms::new(course.places() + course.slots()),
            course,
            endpoints,
            stored,
        })
    }

    /// The parts of `resident` with an encoder like `model`.
    ///
    /// # Errors
    /// If features and lists disagree.
    pub fn era<E: Encoder>(&self, model: &E, resident: Resident) -> Result<Era<E>> {
        let encoder = model.on_resident(&resident)?;
        let sampler = encoder.sampler(&self.config, &[])?;
        let graph = resident.graph;
        let places: Vec<Option<usize>> =
            (0..self.course.parts()).map(|part| graph.place_of(part)).collect();
        let numbers = || self.endpoints.iter().map(|of| of.number);
        let first = numbers().map(|number| {
            let stride = graph.stride(number);
            places.iter().map(|place| place.map(|place| place as u32 * stride)).collect()
        });
        let first = first.collect();
        let nodes = NodesInMemory::of(&graph, numbers());
        Ok(Era { encoder, sampler, graph, first, nodes, _parts: resident.parts })
    }
}

/// An encoder over the parts in memory.
pub(crate) struct Era<E: Encoder> {
    encoder: E,
    sampler: E::Sampler,
    graph: ResidentGraph,
    /// First local id of each part in memory, of each type with endpoints.
    first: Vec<Vec<Option<u32>>>,
    nodes: NodesInMemory,
    /// Keeps the rooms of the parts.
    _parts: Vec<Arc<LoadedPart>>,
}

impl<E: Encoder> Era<E> {
    /// The encoder over the parts, and its sampler.
    pub fn encoder(&self) -> (&E, &E::Sampler) {
        (&self.encoder, &self.sampler)
    }

    /// The nodes of the parts.
    pub fn nodes(&self) -> &NodesInMemory {
        &self.nodes
    }

    /// Seeds in dataset ids, as local ids.
    ///
    /// # Errors
    /// If one is not in memory.
    pub fn seeds(&self, source: &EraSource, mut seeds: Seeds) -> Result<Seeds> {
        for (of, nodes) in seeds.nodes.iter_mut().enumerate() {
            for node in nodes {
                *node = self.local(source, (of, u64::from(*node)))?;
            }
        }
        Ok(seeds)
    }

    /// The local id of a node of a type with endpoints by its dataset id.
    ///
    /// # Errors
    /// If it is not in memory.
    pub fn local(&self, source: &EraSource, (of, node): (usize, u64)) -> Result<u32> {
        let owner = &source.endpoints[of].owner;
        if node >= owner.len() as u64 {
            return Err(Error::invalid(format!("node {node} of {} nodes", owner.len())));
        }
        let (part, row) = owner.place(node as usize);
        let first = self.first[of][part].ok_or_else(|| {
            Error::invalid(format!("node {node} of part {part} is not in memory"))
        })?;
        Ok(first + row as u32)
    }

    /// Outputs with nodes in dataset ids.
    pub fn outputs(&self, source: &EraSource, mut outputs: Outputs) -> Outputs {
        for (nodes, of) in outputs.nodes.iter_mut().zip(&source.endpoints) {
            nodes.iter_mut().for_each(|node| *node = self.graph.id(of.number, *node));
        }
        outputs
    }
}

/// The parts of era number `index`, whose rows of embeddings are in memory with them, and those that come next.
fn uses(eras: &[Vec<usize>], index: usize) -> Uses {
    let now = &eras[index];
    let next = eras.get(index + 1).into_iter().flatten();
    Uses {
        now: now.iter().map(|&part| Nodes::Part(part)).collect(),
        ahead: next.filter(|part| !now.contains(part)).map(|&part| Nodes::Part(part)).collect(),
    }
}

/// A rank's batches of an epoch: those of one era after the other, each with the number of its era as its graph. `count` is
/// called with the number of each era, and how many of its batches are this rank's.
pub(super) fn schedule<T: Task>(
    course: &EraCourse,
    task: &T,
    epoch: usize,
    sharing: Sharing,
    count: &dyn Fn(usize, usize),
) -> Vec<BatchSpec> {
    let mut specs = Vec::new();
    let eras = course.eras(epoch);
    for (index, examples) in course.examples(epoch).iter().enumerate() {
        let mut uses = Some(uses(&eras, index));
        let (order, number) = ((epoch, index), course.number(epoch, index));
        let of_era = task.schedule_of(examples, order, sharing, &shuffled_batches);
        count(number, of_era.iter().filter(|spec| !spec.share.is_empty()).count());
        specs.extend(of_era.into_iter().map(|spec| BatchSpec {
            graph: number,
            // Another epoch has other parts in memory.
            fixed: false,
            uses: uses.take(),
            last_of_epoch: false,
            ..spec
        }));
    }
    if specs.is_empty() {
        // Every epoch has a step, perhaps without examples.
        specs.push(BatchSpec { share: 0..0, fixed: false, ..BatchSpec::whole(epoch) });
    }
    if let Some(last) = specs.last_mut() {
        last.last_of_epoch = true;
    }
    specs
}
