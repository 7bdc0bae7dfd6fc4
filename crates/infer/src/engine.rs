//! The passes over all layers.

use std::sync::Arc;
use std::time::Instant;

use gnarl_common::Result;
use gnarl_nn::Tensor;

use crate::backwards::{Plan, plan};
use crate::budget::Budget;
use crate::figures::Figures;
use crate::journal::{Journal, LayerFolder};
use crate::layers::Layers;
use crate::order::{NodeOrder, Sequence};
use crate::pass::Pass;
use crate::peers::{Peers, deliver, fill};
use crate::rows::{After, Cache};
use crate::sweep::Sweeps;

/// The part of each node of each type; none of types that no order goes by.
pub type Parts = Vec<Option<Arc<[u32]>>>;

/// The course of an inference: its memory, order and ranks. None of them changes the rows.
#[derive(Clone)]
pub struct Inference<'a> {
    budget: Budget,
    order: NodeOrder,
    parts: Parts,
    cache: Option<Cache>,
    peers: Option<Peers<'a>>,
    folder: Option<LayerFolder>,
    sweeps: Sweeps,
}

impl<'a> Inference<'a> {
    /// An inference within `budget`, of nodes by number, by one process.
    pub fn within(budget: &Budget) -> Self {
        Self {
            budget: budget.clone(),
            order: NodeOrder::Natural,
            parts: Vec::new(),
            cache: None,
            peers: None,
            folder: None,
            sweeps: Sweeps::Auto,
        }
    }

    /// The same in another order of nodes. Orders by part need the part of each node.
    pub fn with_order(self, order: NodeOrder, parts: Parts) -> Self {
        Self { order, parts, ..self }
    }

    /// The same with sums that are made by other `sweeps`.
    pub fn with_sweeps(self, sweeps: Sweeps) -> Self {
        Self { sweeps, ..self }
    }

    /// The same with rows between layers in files that are read by chunks.
    pub fn with_cache(self, cache: Option<Cache>) -> Self {
        Self { cache, ..self }
    }

    /// The same by several ranks, each of which has the model and computes its own nodes. All of them run the inference of
    /// equal nodes; the first one is given the rows.
    pub fn with_peers(self, peers: Option<Peers<'a>>) -> Self {
        Self { peers, ..self }
    }

    /// The same with all rows in files of a folder, from which an interrupted inference goes on. They stay there until
    /// [`LayerFolder::remove`].
    pub fn kept_in(self, folder: Option<LayerFolder>) -> Self {
        Self { folder, ..self }
    }

    /// Computes the outputs of the last layer for the nodes `wanted` of some types, and hands them to `keep` by ranges: a
    /// type, ascending nodes, and a row for each.
    ///
    /// While a range is computed, the next one is gathered and the one before is kept, all on the threads of the current
    /// rayon pool.
    ///
    /// # Errors
    /// Those of `layers` and of `keep`; if files cannot be written, or a rank fails.
    pub fn run<L: Layers>(
        &self,
        layers: &L,
        wanted: &[(usize, Vec<u32>)],
        mut keep: impl FnMut(usize, &[u32], &Tensor) -> Result<()> + Send,
    ) -> Result<Figures> {
        let sequences = self.sequences(layers);
        let peers = self.peers.as_ref();
        let Plan { wanted, layers: places } = plan(layers, wanted, &sequences, peers)?;
        let journal = self.folder.as_ref().map(|of| Journal::open(of, peers, layers.num_layers()));
        let mut journal = journal.transpose()?;
        // Rows of the last layer that come in another order, on other ranks or before a crash wait for each other.
        let direct = peers.is_none() && journal.is_none() && sequences.iter().all(Option::is_none);
        let mut figures = Figures::default();
        let last = layers.num_layers() - 1;
        let first = journal.as_ref().map_or(Ok(0), |journal| journal.first_layer(peers))?;
        let mut before = match (&journal, first.checked_sub(1)) {
            (Some(journal), Some(done)) => {
                let rows = journal.all(&self.budget, &places[done], done)?;
                Some(rows.behind(self.cache_of(done, last)).finish()?.0)
            }
            _ => None,
        };
        for (layer, places) in places.iter().enumerate().skip(first) {
            let start = Instant::now();
            let pass = Pass {
                layers,
                layer,
                places,
                before: before.as_ref(),
                budget: &self.budget,
                peers,
                sweeps: self.sweeps,
            };
            let sweepers = pass.sweepers();
            let swept = sweepers.iter().any(Option::is_some);
            if layer == last && direct {
                let mut now = pass.run((&sweepers, &[]), &mut keep)?;
                now.seconds = start.elapsed().as_secs_f64();
                figures.layers.push(now);
                break;
            }
            let mut after = match &journal {
                Some(journal) => journal.own(&self.budget, places, layer)?,
                // Two layers at a time: each has half of the memory for rows, unless sums have it.
                None => {
                    let left = if swept { 0 } else { self.budget.rows() / 2 };
                    After::new(&self.budget, places.clone(), left)
                }
            };
            after = after.behind(self.cache_of(layer, last));
            let done = (0..places.len()).map(|node_type| after.num_rows(node_type));
            let done: Vec<usize> = done.collect();
            let mut keep = |node_type: usize, _: &[u32], rows: &Tensor| {
                after.append(node_type, rows.data(), rows.cols())?;
                journal.as_mut().map_or(Ok(()), |journal| journal.tick(layer, &mut after))
            };
            let mut now = pass.run((&sweepers, &done), &mut keep)?;
            drop(sweepers);
            if let Some(journal) = &mut journal {
                journal.save(layer, &mut after)?;
            }
            if let Some(peers) = peers.filter(|_| layer < last) {
                let start = Instant::now();
                now.fetched = fill(peers, places, &mut after)?;
                now.fill_seconds = start.elapsed().as_secs_f64();
            }
            if let Some(journal) = &mut journal {
                journal.complete(layer, &mut after)?;
            }
            let (made, spilled) = after.finish()?;
            before = Some(made);
            (now.seconds, now.spilled) = (start.elapsed().as_secs_f64(), spilled);
            figures.layers.push(now);
        }
        if !direct && let Some(rows) = &before {
            deliver(peers, &wanted, rows, &mut keep)?;
        }
        match peers {
            Some(peers) => figures.together(peers),
            None => Ok(figures),
        }
    }

    /// The cache of a layer's rows; those of the last one are read once.
    fn cache_of(&self, layer: usize, last: usize) -> Option<&Cache> {
        self.cache.as_ref().filter(|_| layer < last)
    }

    /// The sequence of the nodes of each type.
    fn sequences<L: Layers>(&self, layers: &L) -> Vec<Option<Arc<Sequence>>> {
        let last = layers.num_layers() - 1;
        let of = |(node_type, nodes): (usize, usize)| {
            if self.order == NodeOrder::Natural {
                return None;
            }
            let part = self.parts.get(node_type).and_then(Option::as_deref);
            let degree = |node: u32| layers.num_inputs(last, node_type, node) as u32;
            self.order.sequence(nodes, part, degree).map(Arc::new)
        };
        layers.num_nodes().into_iter().enumerate().map(of).collect()
    }
}
