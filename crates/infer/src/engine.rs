//! The passes over all layers: gather ahead, compute, keep.

use std::sync::Arc;
use std::time::Instant;

use gnarl_common::{Error, Result};
use gnarl_nn::Tensor;

use crate::backwards::{Plan, plan};
use crate::budget::Budget;
use crate::copied::Copied;
use crate::figures::{Figures, Hub, LayerFigures};
use crate::journal::{Journal, LayerFolder};
use crate::layers::Layers;
use crate::order::{NodeOrder, Sequence};
use crate::peers::{MEETINGS, Peers, deliver, fill};
use crate::places::Places;
use crate::ranges::Ranges;
use crate::rows::{After, Before, Cache};

/// Ranges gathered ahead of the one that is computed.
const AHEAD: usize = 1;
/// Most nodes of a range: enough for every thread to have work, and few enough for rows of some hundred values to stay in
/// caches between the operations of a layer.
const RANGE_NODES: usize = 1 << 12;

/// The same where rows are read by chunks: a range reads each of its chunks once, and fewer ranges read fewer.
const CHUNKED_NODES: usize = 1 << 16;

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
        }
    }

    /// The same in another order of nodes. Orders by part need the part of each node.
    pub fn with_order(self, order: NodeOrder, parts: Parts) -> Self {
        Self { order, parts, ..self }
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
        let mut journal = self.folder.as_ref().map(|of| Journal::open(of, peers)).transpose()?;
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
            let mut pass =
                Pass { layers, layer, places, before: before.as_ref(), of: self, done: Vec::new() };
            if layer == last && direct {
                let mut now = pass.run(&mut keep)?;
                now.seconds = start.elapsed().as_secs_f64();
                figures.layers.push(now);
                break;
            }
            let mut after = match &journal {
                Some(journal) => journal.own(&self.budget, places, layer)?,
                // Two layers at a time: each has half of the memory for rows.
                None => After::new(&self.budget, places.clone(), self.budget.rows() / 2),
            };
            after = after.behind(self.cache_of(layer, last));
            pass.done = (0..places.len()).map(|node_type| after.num_rows(node_type)).collect();
            let mut now = pass.run(&mut |node_type, _: &[u32], rows: &Tensor| {
                after.append(node_type, rows.data(), rows.cols())?;
                journal.as_mut().map_or(Ok(()), |journal| journal.tick(layer, &mut after))
            })?;
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

/// One layer for the own nodes of each type.
struct Pass<'a, L> {
    layers: &'a L,
    layer: usize,
    places: &'a [Places],
    before: Option<&'a Before>,
    of: &'a Inference<'a>,
    /// Own rows of each type that an earlier process computed.
    done: Vec<usize>,
}

/// Nodes of one type, and what they have: gathered inputs, or rows.
type Range<T> = (usize, Vec<u32>, T);

impl<L: Layers> Pass<'_, L> {
    fn run(
        &self,
        keep: &mut (impl FnMut(usize, &[u32], &Tensor) -> Result<()> + Send),
    ) -> Result<LayerFigures> {
        let mut figures = LayerFigures::default();
        let mut meetings = Meetings::new(self.of.peers.as_ref(), self.places);
        let mut scratch = L::Scratch::default();
        let mut ranges = self.ranges();
        let mut gathered = self.gather(ranges.next(), &mut scratch)?;
        let mut made: Option<Range<Tensor>> = None;
        while let Some((node_type, nodes, inputs)) = gathered.take() {
            let next = ranges.next();
            // All three are parallel themselves, and no thread of the pool waits for another to gather or to write.
            let ((rows, kept), ahead) = rayon::join(
                || rayon::join(|| self.compute(&nodes, inputs), || given(keep, made.as_ref())),
                || self.gather(next, &mut scratch),
            );
            kept?;
            self.count(&mut figures, node_type, &nodes);
            meetings.after(nodes.len())?;
            made = Some((node_type, nodes, rows?));
            gathered = ahead?;
        }
        given(keep, made.as_ref())?;
        meetings.end()?;
        figures.chunks = self.before.map(Before::chunk_reads).unwrap_or_default();
        Ok(figures)
    }

    /// The ranges of all types.
    fn ranges(&self) -> impl Iterator<Item = (usize, Vec<u32>)> {
        // Those gathered ahead, the one that is computed and its result share the memory of ranges.
        let most = (self.of.budget.ranges() / (AHEAD as u64 + 2)).max(1) as usize;
        self.places.iter().enumerate().flat_map(move |(node_type, places)| {
            let done = self.done.get(node_type).copied().unwrap_or(0);
            let mut copied = self.before.and_then(|before| Copied::new(self.layers, before));
            let nodes = if copied.is_some() { CHUNKED_NODES } else { RANGE_NODES };
            let bytes = move |node, first| {
                let of = (self.layer, node_type, node);
                let copied =
                    copied.as_mut().map_or(0, |copied| copied.bytes(self.layers, of, first));
                copied + self.layers.range_bytes(self.layer, node_type, node)
            };
            Ranges::new(places.own().skip(done), bytes, nodes, most)
                .map(move |nodes| (node_type, nodes))
        })
    }

    fn gather(
        &self,
        range: Option<(usize, Vec<u32>)>,
        scratch: &mut L::Scratch,
    ) -> Result<Option<Range<L::Inputs>>> {
        let Some((node_type, nodes)) = range else { return Ok(None) };
        let inputs = self.layers.gather(self.layer, node_type, &nodes, self.before, scratch)?;
        Ok(Some((node_type, nodes, inputs)))
    }

    fn compute(&self, nodes: &[u32], inputs: L::Inputs) -> Result<Tensor> {
        let rows = self.layers.compute(self.layer, inputs)?;
        if rows.rows() != nodes.len() {
            let (layer, found, nodes) = (self.layer, rows.rows(), nodes.len());
            return Err(Error::invalid(format!("layer {layer}: {found} rows of {nodes} nodes")));
        }
        Ok(rows)
    }

    /// Counts a range.
    fn count(&self, figures: &mut LayerFigures, node_type: usize, nodes: &[u32]) {
        figures.nodes += nodes.len() as u64;
        figures.ranges += 1;
        for &node in nodes {
            let inputs = self.layers.num_inputs(self.layer, node_type, node) as u64;
            figures.inputs += inputs;
            figures.add_hub(Hub { inputs, node_type, node });
        }
    }
}

/// Hands the rows of a range over, if there is one.
fn given(
    keep: &mut impl FnMut(usize, &[u32], &Tensor) -> Result<()>,
    made: Option<&Range<Tensor>>,
) -> Result<()> {
    made.map_or(Ok(()), |(node_type, nodes, rows)| keep(*node_type, nodes, rows))
}

/// The meetings of ranks within a layer.
struct Meetings<'a> {
    peers: Option<&'a Peers<'a>>,
    /// Own nodes between two meetings.
    each: usize,
    done: usize,
    met: usize,
}

impl<'a> Meetings<'a> {
    fn new(peers: Option<&'a Peers<'a>>, places: &[Places]) -> Self {
        let own: usize = places.iter().map(Places::num_own).sum();
        Self { peers, each: own.div_ceil(MEETINGS).max(1), done: 0, met: 0 }
    }

    /// Meets after some more nodes, where that is due.
    fn after(&mut self, nodes: usize) -> Result<()> {
        self.done += nodes;
        self.until(self.done / self.each)
    }

    /// The meetings left.
    fn end(&mut self) -> Result<()> {
        self.until(MEETINGS)
    }

    fn until(&mut self, due: usize) -> Result<()> {
        while let Some(peers) = self.peers
            && self.met < due.min(MEETINGS)
        {
            peers.meet()?;
            self.met += 1;
        }
        Ok(())
    }
}
