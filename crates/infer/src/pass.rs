//! The pass over the nodes of a layer: gather ahead, compute, keep.

use gnarl_common::{Error, Result};
use gnarl_nn::Tensor;

use crate::budget::Budget;
use crate::copied::Copied;
use crate::figures::{Hub, LayerFigures};
use crate::layers::Layers;
use crate::peers::{Meetings, Peers};
use crate::places::Places;
use crate::ranges::{MostNodes, Ranges};
use crate::rows::Before;
use crate::sweep::{SweepMemory, Sweeper, Sweeps, Swept, bytes_of, sum_bytes};

/// Ranges gathered ahead of the one that is computed.
const AHEAD: usize = 1;
/// Most nodes of a range: enough for every thread to have work, and few enough for rows of some hundred values to stay in
/// caches between the operations of a layer.
const RANGE_NODES: usize = 1 << 12;
/// The same for each thread where rows are read by row blocks: the more lists, the more of them have rows in a block.
const BLOCKED_NODES: usize = 1 << 14;
/// The same where rows are read by chunks: a range reads each of its chunks once, and fewer ranges read fewer.
const CHUNKED_NODES: usize = 1 << 16;

/// One layer for the own nodes of each type.
pub(crate) struct Pass<'a, L> {
    pub layers: &'a L,
    pub layer: usize,
    pub places: &'a [Places],
    pub before: Option<&'a Before>,
    pub budget: &'a Budget,
    pub peers: Option<&'a Peers<'a>>,
    pub sweeps: Sweeps,
}

/// The sums of each type that are made by sweeps.
pub(crate) type Sweepers<'a> = Vec<Option<Box<dyn Sweeper + 'a>>>;

/// Nodes of one type in the order of the inference, and their sums where a sweep made them.
struct Stretch<'a, I> {
    node_type: usize,
    nodes: I,
    swept: Option<&'a Swept>,
    /// Bytes for ranges.
    memory: u64,
}

/// The progress of a pass.
struct Progress<'a, S> {
    figures: LayerFigures,
    meetings: Meetings<'a>,
    scratch: S,
}

/// Nodes of a range, and what they have: gathered inputs, or rows.
type Range<T> = (Vec<u32>, T);

impl<L: Layers> Pass<'_, L> {
    /// The sums of each type that are made by sweeps.
    pub fn sweepers(&self) -> Sweepers<'_> {
        (0..self.places.len()).map(|node_type| self.sweeper(node_type)).collect()
    }

    /// Computes the layer for the own nodes, some types of which have their sums by `sweepers`, and hands them to `keep`
    /// by ranges. An earlier process computed the first ones of each type that are `done`.
    ///
    /// # Errors
    /// Those of the layers and of `keep`; if a rank fails.
    pub fn run(
        &self,
        (sweepers, done): (&Sweepers<'_>, &[usize]),
        keep: &mut (impl FnMut(usize, &[u32], &Tensor) -> Result<()> + Send),
    ) -> Result<LayerFigures> {
        let mut progress = Progress {
            figures: LayerFigures::default(),
            meetings: Meetings::new(self.peers, self.places),
            scratch: L::Scratch::default(),
        };
        for node_type in 0..self.places.len() {
            let own = self.own(node_type).skip(done.get(node_type).copied().unwrap_or(0));
            let Some(sweeper) = &sweepers[node_type] else {
                let memory = self.budget.ranges();
                let all = Stretch { node_type, nodes: own, swept: None, memory };
                self.compute_all(all, &mut progress, keep)?;
                continue;
            };
            let bytes = |node: u32, _: bool| bytes_of(&**sweeper, node);
            let memory = self.sweep_bytes(node_type);
            let mut room =
                SweepMemory::within(memory, &**sweeper, self.places[node_type].num_own());
            for nodes in Ranges::new(own, bytes, MostNodes::all(usize::MAX), sum_bytes(memory)) {
                progress.figures.sweeps += 1;
                progress.figures.swept += sweeper.file_bytes();
                let swept = Swept::new(&**sweeper, &nodes, room)?;
                let memory = self.budget.ranges_of_sweep();
                let nodes = nodes.into_iter();
                let stretch = Stretch { node_type, nodes, swept: Some(&swept), memory };
                self.compute_all(stretch, &mut progress, keep)?;
                room = swept.end();
            }
        }
        progress.meetings.end()?;
        let mut figures = progress.figures;
        figures.chunks = self.before.map(Before::chunk_reads).unwrap_or_default();
        Ok(figures)
    }

    /// The own nodes of a type.
    fn own(&self, node_type: usize) -> impl Iterator<Item = u32> + '_ {
        self.places[node_type].own()
    }

    /// Bytes for a sweep of a type.
    fn sweep_bytes(&self, node_type: usize) -> u64 {
        self.budget.sweep(self.before.is_some_and(|before| !before.in_file(node_type)))
    }

    /// The sums of a type by sweeps, where they are made so.
    fn sweeper(&self, node_type: usize) -> Option<Box<dyn Sweeper + '_>> {
        if self.sweeps == Sweeps::Never {
            return None;
        }
        let inputs = |node| self.layers.num_inputs(self.layer, node_type, node) as u64;
        let inputs = self.own(node_type).map(inputs).sum();
        let ascending = self.places[node_type].is_ascending();
        let sweeper = self.layers.sweeper(self.layer, node_type, self.before);
        let Some(sweeper) = sweeper.filter(|_| ascending) else {
            if self.sweeps == Sweeps::Always && inputs > self.own(node_type).count() as u64 {
                tracing::warn!(
                    "layer {} makes no sums by sweeps: it is one of attention or of a model without \
                     stages, or its rows are sparse, in another order or read by chunks",
                    self.layer + 1
                );
            }
            return None;
        };
        let nodes = (self.own(node_type), inputs);
        let memory = self.sweep_bytes(node_type);
        self.sweeps.choose(&*sweeper, nodes, (self.budget, memory)).then_some(sweeper)
    }

    fn compute_all(
        &self,
        stretch: Stretch<'_, impl Iterator<Item = u32>>,
        progress: &mut Progress<'_, L::Scratch>,
        keep: &mut (impl FnMut(usize, &[u32], &Tensor) -> Result<()> + Send),
    ) -> Result<()> {
        let Stretch { node_type, nodes, swept, memory } = stretch;
        let mut keep = |nodes: &[u32], rows: &Tensor| keep(node_type, nodes, rows);
        let mut ranges = self.ranges(node_type, nodes, memory);
        let mut gathered = self.gather(node_type, ranges.next(), swept, &mut progress.scratch)?;
        let mut made: Option<Range<Tensor>> = None;
        while let Some((nodes, inputs)) = gathered.take() {
            let next = ranges.next();
            let scratch = &mut progress.scratch;
            // All three are parallel themselves, and no thread of the pool waits for another to gather or to write.
            let ((rows, kept), ahead) = rayon::join(
                || rayon::join(|| self.compute(&nodes, inputs), || given(&mut keep, made.as_ref())),
                || self.gather(node_type, next, swept, scratch),
            );
            kept?;
            self.count(&mut progress.figures, node_type, &nodes);
            progress.meetings.after(nodes.len())?;
            made = Some((nodes, rows?));
            gathered = ahead?;
        }
        given(&mut keep, made.as_ref())
    }

    /// The ranges of `nodes`.
    fn ranges<'r>(
        &'r self,
        node_type: usize,
        nodes: impl Iterator<Item = u32> + 'r,
        memory: u64,
    ) -> impl Iterator<Item = Vec<u32>> + 'r {
        // Those gathered ahead, the one that is computed and its result share the memory of ranges.
        let most = (memory / (AHEAD as u64 + 2)).max(1) as usize;
        let mut copied = self.before.and_then(|before| Copied::new(self.layers, before));
        let most_nodes = match &copied {
            Some(_) => MostNodes::all(CHUNKED_NODES),
            None => MostNodes {
                usual: RANGE_NODES,
                large: BLOCKED_NODES * rayon::current_num_threads(),
                gains: Box::new(move |nodes| {
                    self.layers.reads_by_row_blocks(self.layer, node_type, nodes, self.before)
                }),
            },
        };
        let bytes = move |node, first| {
            let of = (self.layer, node_type, node);
            let copied = copied.as_mut().map_or(0, |copied| copied.bytes(self.layers, of, first));
            copied + self.layers.range_bytes(self.layer, node_type, node)
        };
        Ranges::new(nodes, bytes, most_nodes, most)
    }

    fn gather(
        &self,
        node_type: usize,
        nodes: Option<Vec<u32>>,
        swept: Option<&Swept>,
        scratch: &mut L::Scratch,
    ) -> Result<Option<Range<L::Inputs>>> {
        let Some(nodes) = nodes else { return Ok(None) };
        let (layers, layer) = (self.layers, self.layer);
        let inputs = match swept {
            None => layers.gather(layer, node_type, &nodes, self.before, scratch)?,
            Some(swept) => {
                layers.gather_beside(layer, node_type, &nodes, self.before, swept.of(&nodes))?
            }
        };
        Ok(Some((nodes, inputs)))
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
    keep: &mut impl FnMut(&[u32], &Tensor) -> Result<()>,
    made: Option<&Range<Tensor>>,
) -> Result<()> {
    made.map_or(Ok(()), |(nodes, rows)| keep(nodes, rows))
}
