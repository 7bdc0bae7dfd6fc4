//! Training edges that lie beside the parts of a graph, local or remote.

use std::sync::Arc;

use gnarl_common::{Context, Error, IdMap, Result};
use gnarl_graph::triples::Triples;
use gnarl_nn::Tensor;
use gnarl_partition::PartitionedDataset;
use gnarl_serve::{FoundTargets, PartAccess};

use super::source::{TargetBatch, TargetEdges};
use super::splits::{Gathered, gather};
use crate::data::batch::{BatchSpec, Input};
use crate::task::EdgeBatch;
use crate::task::objective::Targets;

/// Training edges in parts. The edges of a batch are looked up in the parts by their numbers; a rank has the numbers of an
/// epoch's edges in memory, and the edges of the batches under way.
pub(crate) struct EdgesInParts {
    parts: Arc<[PartAccess]>,
    /// Number of training edges of each part.
    counts: Vec<u64>,
    /// Number of the first node that is a tail.
    first_tail: u32,
    /// The part of each node that can be a head.
    owner: Arc<IdMap>,
    /// Numbers of the training edges of each part, where parts train alone; none for those of other hosts.
    alone: Vec<Option<Vec<u32>>>,
}

impl EdgesInParts {
    /// The training edges beside the parts of `cut`; tails are numbered from `first_tail` on.
    ///
    /// # Errors
    /// If the partition has no target edges.
    pub fn new(
        cut: &PartitionedDataset,
        parts: Arc<[PartAccess]>,
        first_tail: u32,
    ) -> Result<Self> {
        let targets = super::manifest::of_partition(cut)?;
        let owner = cut.id_map(&targets.triple.src)?;
        let (counts, alone) = (targets.counts[0].clone(), Vec::new());
        Ok(Self { parts, counts, first_tail, owner, alone })
    }

    /// The same edges, for parts that train alone: each local one on those whose heads it owns.
    ///
    /// # Errors
    /// If a part is damaged.
    pub fn alone(mut self) -> Result<Self> {
        for part in self.parts.iter() {
            let mut numbers = Vec::new();
            let local = part.is_here().then(|| {
                part.split_targets(0, &mut |found| {
                    numbers.extend_from_slice(&found.positions);
                    Ok(())
                })
            });
            self.alone.push(local.transpose()?.map(|()| numbers));
        }
        Ok(self)
    }

    /// Parts with training edges.
    fn with_edges(&self) -> impl Iterator<Item = &PartAccess> {
        let parts = self.parts.iter().zip(&self.counts);
        parts.filter(|(_, count)| **count > 0).map(|(part, _)| part)
    }
}

impl TargetEdges for EdgesInParts {
    fn count(&self) -> usize {
        self.counts.iter().sum::<u64>() as usize
    }

    /// Parts are those that the edges lie beside.
    fn set_parts(&mut self, _: usize, _: Arc<IdMap>) {}

    fn owner(&self) -> &Arc<IdMap> {
        &self.owner
    }

    fn parts(&self) -> usize {
        self.alone.len()
    }

    fn count_of(&self, part: usize) -> usize {
        match self.alone.is_empty() {
            true => self.count(),
            false => self.counts[part] as usize,
        }
    }

    fn of_part(&self, part: usize) -> Option<&[u32]> {
        self.alone.get(part)?.as_deref()
    }

    fn batch(&self, spec: &BatchSpec) -> Result<TargetBatch> {
        let asked: Arc<[u32]> = (&*spec.batch).into();
        // All requests are under way before the first reply is waited for.
        let from: Vec<&PartAccess> = match self.alone.is_empty() {
            true => self.with_edges().collect(),
            false => vec![&self.parts[spec.graph]],
        };
        let begun: Vec<_> =
            from.into_iter().map(|part| part.begin_targets(0, asked.clone())).collect();
        let mut edges = Triples::default();
        let mut places = Vec::with_capacity(asked.len());
        let mut times = Vec::new();
        let mut fetched = Columns::default();
        for reply in begun {
            let found = reply().while_doing(|| "looking up the edges of a batch")?;
            places.extend(found.positions.iter().map(|&position| asked[position as usize]));
            edges.heads.extend_from_slice(&found.edges.heads);
            edges.relations.extend_from_slice(&found.edges.relations);
            edges.tails.extend(found.edges.tails.iter().map(|tail| tail + self.first_tail));
            times.extend(found.times.iter().flatten());
            fetched.add(&found);
        }
        if places.len() != asked.len() {
            let missing = asked.len().abs_diff(places.len());
            return Err(Error::invalid(format!(
                "{missing} of {} edges of a batch are in no part, or in several",
                asked.len()
            ))
            .hint("serve the parts of one partition, made by gnarl partition --task"));
        }
        let fetched = fetched.own(spec.share.clone(), edges.len());
        Ok(TargetBatch { edges, places, times, share: spec.share.clone(), fetched })
    }

    fn answers(&self, batch: &mut TargetBatch) -> Result<(Targets, Option<Input>)> {
        batch.fetched.take().ok_or_else(|| {
            Error::invalid("the parts have no labels of edges")
                .hint("make parts for this run: gnarl partition DATASET --task RUN.toml")
        })
    }

    fn scan(&self, each: &mut dyn FnMut(&[u32], &Triples) -> Result<()>) -> Result<()> {
        for part in self.with_edges() {
            part.split_targets(0, &mut |FoundTargets { mut edges, positions, .. }| {
                edges.tails.iter_mut().for_each(|tail| *tail += self.first_tail);
                each(&positions, &edges)
            })?;
        }
        Ok(())
    }

    fn all(&self) -> Result<EdgeBatch> {
        let Gathered { mut edges, times, .. } = gather(&self.parts, 0)?;
        edges.tails.iter_mut().for_each(|tail| *tail += self.first_tail);
        Ok(EdgeBatch { edges, rows: Vec::new(), times: times.unwrap_or_default() })
    }
}

/// Labels and features that come with edges.
#[derive(Default)]
struct Columns {
    labels: Option<Targets>,
    features: Option<Vec<f32>>,
}

impl Columns {
    fn add(&mut self, found: &FoundTargets) {
        let each: Vec<u32> = (0..found.edges.len() as u32).collect();
        if let Some(labels) = &found.labels {
            let more = Targets::of(labels, &each);
            match (&mut self.labels, more) {
                (Some(Targets::Classes(all)), Targets::Classes(more)) => all.extend(more),
                (Some(Targets::Multi(all)), Targets::Multi(more)) => all.extend(more),
                (Some(Targets::Values(all)), Targets::Values(more)) => all.extend(more),
                (_, more) => self.labels = Some(more),
            }
        }
        if let Some(features) = &found.features {
            self.features.get_or_insert_default().extend_from_slice(features);
        }
    }

    /// The columns of this rank's share of so many edges.
    fn own(self, share: std::ops::Range<usize>, edges: usize) -> Option<(Targets, Option<Input>)> {
        let rows = |values: Vec<f32>| {
            let width = values.len() / edges.max(1);
            values[share.start * width..share.end * width].to_vec()
        };
        let labels = match self.labels? {
            Targets::Classes(all) => Targets::Classes(all[share.clone()].to_vec()),
            Targets::Values(all) => Targets::Values(all[share.clone()].to_vec()),
            Targets::Multi(all) => Targets::Multi(rows(all)),
        };
        let features = self.features.map(|all| {
            let width = all.len() / edges.max(1);
            Input::Dense(Tensor::from_vec(share.len(), width, rows(all)))
        });
        Some((labels, features))
    }
}
