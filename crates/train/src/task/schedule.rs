//! Batch schedules.

use std::ops::Range;
use std::sync::Arc;

use gnarl_common::IdMap;
use gnarl_common::rng::Key;
use gnarl_common::threads::even_share;
use gnarl_config::{Batch, Method, RunConfig};

use crate::data::batch::{BatchSpec, Numbers};
use crate::data::target_edges::TargetEdges;
use crate::session::Keys;
use crate::task::buckets::{Buckets, Visit};

/// Draws nodes into batches of some size, in an order by key.
pub(crate) type DrawBatches<'a> = &'a dyn Fn(&[u32], usize, Key) -> Vec<Vec<u32>>;

/// Assignment of a batch's examples.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Sharing {
    /// An even share for each of so many ranks; this one is `rank`.
    Ranks { rank: usize, size: usize },
    /// All examples, for a part that trains alone; all parts together have so many `examples`.
    Alone { examples: usize },
}

impl Sharing {
    fn of(self, examples: usize) -> Range<usize> {
        match self {
            Self::Ranks { rank, size } => even_share(examples, rank, size),
            Self::Alone { .. } => 0..examples,
        }
    }

    /// Seeds of a batch, drawn from `own` examples; 0 takes all at once.
    fn batch_size(self, config: &RunConfig, own: usize) -> usize {
        let size = config.sample.batch_size;
        match self {
            // The only part has the batches of the whole graph, to the last incomplete one.
            Self::Alone { examples }
                if size > 0 && own < examples && config.average.batch == Batch::Global =>
            {
                let steps = examples.div_ceil(size);
                own.div_ceil(steps).max(1)
            }
            _ => size,
        }
    }
}

/// Schedules of batches of nodes.
pub(super) struct NodeSchedule<'a> {
    pub config: &'a RunConfig,
    /// Training nodes of the graph.
    pub train: &'a [u32],
    pub graph: usize,
    /// Part of each node; empty if the graph was not partitioned.
    pub owner: &'a IdMap,
    pub sharing: Sharing,
}

impl NodeSchedule<'_> {
    /// This rank's batches of an epoch, drawn by `batches`. Every rank has at least one (perhaps
    /// empty) batch in every step, so that none waits for another at the end.
    pub fn epoch(&self, epoch: usize, batches: DrawBatches<'_>) -> Vec<BatchSpec> {
        let keys = Keys::new(self.config.train.seed);
        let size = self.sharing.batch_size(self.config, self.train.len());
        let units = if self.train.is_empty() {
            Vec::new()
        } else if size == 0 && !self.draws_subgraphs() {
            // Unshuffled, so that a resumed run sees its nodes in the same order.
            vec![self.train.to_vec()]
        } else {
            batches(self.train, size, keys.order(epoch, self.graph))
        };
        let key = keys.sample(epoch);
        let mut specs = match self.sharing {
            Sharing::Ranks { rank, size } if self.draws_subgraphs() => {
                self.dealt(units, key, rank, size)
            }
            _ => self.split(units, key),
        };
        if let Some(last) = specs.last_mut() {
            last.last_of_epoch = true;
        }
        specs
    }

    /// Splits the seeds of each batch evenly, a rank taking mostly those of its own parts.
    fn split(&self, batches: Vec<Vec<u32>>, key: Key) -> Vec<BatchSpec> {
        let mut specs = Vec::with_capacity(batches.len());
        for (index, mut seeds) in batches.into_iter().enumerate() {
            if !self.owner.is_empty() && !matches!(self.sharing, Sharing::Alone { .. }) {
                seeds.sort_by_key(|&node| self.owner.part(node as usize));
            }
            let share = self.sharing.of(seeds.len());
            specs.push(self.spec(&seeds, share, key, index));
        }
        specs
    }

    /// Assigns whole subgraphs in turn, `sample.accumulate` of them a step.
    fn dealt(&self, units: Vec<Vec<u32>>, key: Key, rank: usize, ranks: usize) -> Vec<BatchSpec> {
        let mut specs = Vec::new();
        let units: Vec<(usize, Vec<u32>)> = units.into_iter().enumerate().collect();
        for step in units.chunks(self.config.sample.accumulate) {
            let own = step.iter().skip(rank).step_by(ranks);
            let first = specs.len();
            specs.extend(own.map(|(i, unit)| self.spec(unit, 0..unit.len(), key, *i)));
            if specs.len() == first {
                specs.push(self.spec(&[], 0..0, key, 0));
            }
            let last = specs.len() - 1;
            specs[first..last].iter_mut().for_each(|spec| spec.last_of_step = false);
        }
        specs
    }

    fn spec(&self, batch: &[u32], share: Range<usize>, key: Key, index: usize) -> BatchSpec {
        // Uniform neighbors depend on the epoch alone, so that they are the same in whatever batch a node
        // appears; the random numbers of `labor` and the subgraphs of subgraph samplers must differ from
        // batch to batch.
        let key = match self.config.sample.method {
            Method::Neighbor | Method::Exact | Method::Weighted | Method::Full => key,
            Method::Walk | Method::Ppr => key,
            _ => key.with(self.graph as u64).with(index as u64),
        };
        BatchSpec {
            graph: self.graph,
            batch: batch.to_vec().into(),
            share,
            key,
            uses: None,
            fixed: self.is_fixed(),
            last_of_step: true,
            last_of_epoch: false,
        }
    }

    fn draws_subgraphs(&self) -> bool {
        let method = self.config.sample.method;
        !method.has_fanouts() && method != Method::Full
    }

    /// Returns whether every epoch has the same single batch.
    fn is_fixed(&self) -> bool {
        let sample = &self.config.sample;
        let mut fanouts = sample.edge_fanouts.values().chain([&sample.fanouts]).flatten();
        let full = match sample.method {
            Method::Full => true,
            // Walks are drawn anew in every epoch.
            Method::Walk => false,
            method => method.has_fanouts() && fanouts.all(|&fanout| fanout < 0),
        };
        full && sample.batch_size == 0
    }
}

/// Schedules of batches of edges.
pub(super) struct EdgeSchedule<'a> {
    pub config: &'a RunConfig,
    /// The training edges: all of them, or those of a part that trains alone.
    pub edges: &'a dyn TargetEdges,
    /// The buckets that edges are trained by, if they are.
    pub buckets: Option<&'a Buckets>,
    pub graph: usize,
    pub sharing: Sharing,
}

impl EdgeSchedule<'_> {
    /// Batches of training edges in random order, `sample.batch_size` in each or 0 for all at once, of which each rank
    /// has an even share of the edges in the order of their parts.
    pub fn epoch(&self, epoch: usize) -> Vec<BatchSpec> {
        let keys = Keys::new(self.config.train.seed);
        if let Some(buckets) = self.buckets {
            return self.by_buckets(buckets, keys, epoch);
        }
        let of_part = match self.sharing {
            Sharing::Alone { .. } => self.edges.of_part(self.graph),
            Sharing::Ranks { .. } => None,
        };
        let order: Vec<u32> = match of_part {
            Some(edges) => edges.to_vec(),
            None => (0..self.edges.count() as u32).collect(),
        };
        let mut key = keys.sample(epoch);
        if matches!(self.sharing, Sharing::Alone { .. }) {
            key = key.with(self.graph as u64);
        }
        self.among(order, (epoch, key))
    }

    /// As [`epoch`](Self::epoch), of the edges `among`: those with their endpoints in memory, in era `era` of an epoch.
    pub fn of_era(&self, among: &[u32], (epoch, era): (usize, usize)) -> Vec<BatchSpec> {
        let mut key = Keys::new(self.config.train.seed).sample(epoch);
        if era > 0 {
            // Numbers of batches begin anew. The first era is the epoch of the whole graph if it is the only one.
            key = key.with(u64::MAX).with(era as u64);
        }
        self.among(among.to_vec(), (epoch, key))
    }

    fn among(&self, mut order: Vec<u32>, (epoch, key): (usize, Key)) -> Vec<BatchSpec> {
        let size = match self.sharing.batch_size(self.config, order.len()) {
            0 => order.len(),
            size => {
                let keys = Keys::new(self.config.train.seed);
                keys.order(epoch, self.graph).shuffle(&mut order);
                size
            }
        };
        let size = size.max(1);
        let last = order.len().div_ceil(size).saturating_sub(1);
        let order = Arc::new(order);
        let mut specs = Vec::with_capacity(last + 1);
        for (index, first) in (0..order.len()).step_by(size).enumerate() {
            let edges = first..order.len().min(first + size);
            specs.push(BatchSpec {
                graph: self.graph,
                share: self.sharing.of(edges.len()),
                batch: Numbers::of(&order, edges),
                key: key.with(index as u64),
                uses: None,
                fixed: false,
                last_of_step: true,
                last_of_epoch: index == last,
            });
        }
        specs
    }

    /// Batches of the edges of one bucket after the other, at most `sample.batch_size` in each.
    fn by_buckets(&self, buckets: &Buckets, keys: Keys, epoch: usize) -> Vec<BatchSpec> {
        let size = self.config.sample.batch_size;
        let key = keys.sample(epoch);
        let mut specs: Vec<BatchSpec> = Vec::new();
        for Visit { places, uses } in buckets.order(keys.order(epoch, self.graph)) {
            let mut uses = Some(uses);
            for batch in Numbers::batches(&places, size) {
                specs.push(BatchSpec {
                    graph: self.graph,
                    share: self.sharing.of(batch.count()),
                    batch,
                    key: key.with(specs.len() as u64),
                    uses: uses.take(),
                    fixed: false,
                    last_of_step: true,
                    last_of_epoch: false,
                });
            }
        }
        if let Some(last) = specs.last_mut() {
            last.last_of_epoch = true;
        }
        specs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_of_parts_are_shares_of_one_of_the_whole_graph() {
        let mut config = RunConfig::default();
        config.sample.batch_size = 30;
        config.average.batch = Batch::Global;
        // The whole graph makes 4 steps with its 100 examples, and so does a part with 13 or 60.
        let part = Sharing::Alone { examples: 100 };
        assert_eq!(part.batch_size(&config, 13), 4);
        assert_eq!(part.batch_size(&config, 60), 15);
        assert_eq!(part.batch_size(&config, 1), 1);
        assert_eq!(part.batch_size(&config, 100), 30);
        assert_eq!(Sharing::Ranks { rank: 0, size: 4 }.batch_size(&config, 100), 30);
        config.sample.batch_size = 0;
        assert_eq!(part.batch_size(&config, 13), 0);
        config.sample.batch_size = 30;
        config.average.batch = Batch::Local;
        assert_eq!(part.batch_size(&config, 13), 30);
    }
}
