//! Training edges in memory.

use std::sync::Arc;

use gnarl_common::{Error, IdMap, Result};
use gnarl_graph::Labels;
use gnarl_graph::triples::Triples;
use gnarl_store::MappedFeatures;

use super::source::{TargetBatch, TargetEdges};
use crate::data::batch::{BatchSpec, Input, gather};
use crate::task::EdgeBatch;
use crate::task::objective::Targets;

/// Edges scanned together.
const SCANNED: usize = 1 << 16;

/// Training edges, all of them in the memory of each rank.
#[derive(Default)]
pub(crate) struct EdgesInMemory {
    edges: Triples,
    /// Rows in the dataset; empty if the task does not ask for them.
    rows: Vec<u64>,
    labels: Option<Labels>,
    features: Option<Arc<MappedFeatures>>,
    /// Empty if neighbors are not sampled by time.
    times: Vec<i64>,
    owner: Arc<IdMap>,
    by_part: Vec<Vec<u32>>,
}

impl EdgesInMemory {
    /// Edges without labels.
    pub fn new(edges: Triples) -> Self {
        Self { edges, ..Self::default() }
    }

    /// Edges with their rows in the dataset, their labels, and the features of all edges of the dataset.
    pub fn labeled(
        (edges, rows): (Triples, Vec<u64>),
        labels: Labels,
        features: Option<Arc<MappedFeatures>>,
    ) -> Self {
        Self { edges, rows, labels: Some(labels), features, ..Self::default() }
    }

    /// The edges with their times.
    pub fn with_times(self, times: Vec<i64>) -> Self {
        Self { times, ..self }
    }
}

impl TargetEdges for EdgesInMemory {
    fn count(&self) -> usize {
        self.edges.len()
    }

    fn set_parts(&mut self, parts: usize, owner: Arc<IdMap>) {
        self.by_part = vec![Vec::new(); parts];
        for (edge, &head) in (0..).zip(&self.edges.heads) {
            self.by_part[owner.part(head as usize)].push(edge);
        }
        self.owner = owner;
    }

    fn owner(&self) -> &Arc<IdMap> {
        &self.owner
    }

    fn parts(&self) -> usize {
        self.by_part.len()
    }

    fn of_part(&self, part: usize) -> Option<&[u32]> {
        self.by_part.get(part).map(Vec::as_slice)
    }

    fn batch(&self, spec: &BatchSpec) -> Result<TargetBatch> {
        let mut places = spec.batch.to_vec();
        if !self.owner.is_empty() {
            places.sort_by_key(|&edge| self.owner.part(self.edges.heads[edge as usize] as usize));
        }
        let edges = self.edges.at(&places);
        let times = match self.times.is_empty() {
            true => Vec::new(),
            false => places.iter().map(|&edge| self.times[edge as usize]).collect(),
        };
        Ok(TargetBatch { edges, places, times, share: spec.share.clone(), fetched: None })
    }

    fn answers(&self, batch: &mut TargetBatch) -> Result<(Targets, Option<Input>)> {
        let labels = self.labels.as_ref().ok_or_else(|| Error::invalid("edges have no labels"))?;
        let own = &batch.places[batch.share.clone()];
        let features = match &self.features {
            None => None,
            Some(features) => {
                let rows: Vec<u32> =
                    own.iter().map(|&edge| self.rows[edge as usize] as u32).collect();
                Some(gather(features.as_ref(), &rows)?)
            }
        };
        Ok((Targets::of(labels, own), features))
    }

    fn scan(&self, each: &mut dyn FnMut(&[u32], &Triples) -> Result<()>) -> Result<()> {
        for first in (0..self.edges.len()).step_by(SCANNED) {
            let end = self.edges.len().min(first + SCANNED);
            let numbers: Vec<u32> = (first as u32..end as u32).collect();
            each(&numbers, &self.edges.at(&numbers))?;
        }
        Ok(())
    }

    fn all(&self) -> Result<EdgeBatch> {
        let Self { edges, rows, times, .. } = self;
        Ok(EdgeBatch { edges: edges.clone(), rows: rows.clone(), times: times.clone() })
    }
}
