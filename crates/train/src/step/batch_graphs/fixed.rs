//! Graphs that stay for the whole run.

use gnarl_common::rng::Key;
use gnarl_common::{Error, Result};
use gnarl_config::RunConfig;

use super::BatchGraphs;
use crate::data::batch::BatchSpec;
use crate::encoder::Encoder;
use crate::task::{Sharing, Task};

/// Graphs that stay: the whole graph, or parts that train alone.
pub(crate) struct Fixed<'a, E: Encoder> {
    graphs: Vec<&'a E>,
    /// One sampler per graph that this rank makes batches of.
    samplers: Vec<Option<E::Sampler>>,
}

impl<'a, E: Encoder> Fixed<'a, E> {
    /// `graphs`, of which this rank makes batches of those in `mine`.
    ///
    /// # Errors
    /// If a sampler does not fit its graph.
    pub fn new<T: Task>(
        config: &RunConfig,
        task: &T,
        (graphs, mine): (Vec<&'a E>, &[usize]),
    ) -> Result<Self> {
        let mut samplers = Vec::with_capacity(graphs.len());
        for (graph, encoder) in graphs.iter().enumerate() {
            let trained = mine.contains(&graph) && task.training(graph) > 0;
            let sampler = trained.then(|| encoder.sampler(config, task.seeds(graph)));
            samplers.push(sampler.transpose()?);
        }
        Ok(Self { graphs, samplers })
    }

    /// Number of graphs.
    pub fn len(&self) -> usize {
        self.graphs.len()
    }
}

impl<E: Encoder> BatchGraphs<E> for Fixed<'_, E> {
    type Held = usize;

    fn hold(&self, spec: &BatchSpec) -> Result<usize> {
        let graph = spec.graph;
        match &self.samplers[graph] {
            Some(_) => Ok(graph),
            None => Err(Error::invalid(format!("graph {graph} does not belong to this rank"))),
        }
    }

    fn encoder<'s>(&'s self, &graph: &'s usize) -> (&'s E, &'s E::Sampler) {
        (self.graphs[graph], self.samplers[graph].as_ref().expect("it was held"))
    }

    fn model(&self, graph: usize) -> &E {
        self.graphs[graph]
    }

    fn schedule<T: Task>(
        &self,
        task: &T,
        graph: usize,
        epoch: usize,
        sharing: Sharing,
    ) -> Vec<BatchSpec> {
        let Some(sampler) = &self.samplers[graph] else { return Vec::new() };
        let encoder = self.graphs[graph];
        let batches =
            |seeds: &[u32], size, order: Key| encoder.batches(sampler, seeds, size, order);
        task.schedule(graph, epoch, sharing, &batches)
    }
}
