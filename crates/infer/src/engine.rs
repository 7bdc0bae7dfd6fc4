//! The passes over all layers: gather ahead, compute, keep.

use std::time::Instant;

use gnarl_common::{Error, Result};
use gnarl_nn::Tensor;

use crate::backwards::needed_by_layers;
use crate::budget::Budget;
use crate::layers::Layers;
use crate::needed::Needed;
use crate::ranges::Ranges;
use crate::rows::{After, Before};

/// Ranges gathered ahead of the one that is computed.
const AHEAD: usize = 1;
/// Most nodes of a range: enough for every thread to have work, and few enough for rows of some hundred values to stay in
/// caches between the operations of a layer.
const RANGE_NODES: usize = 1 << 12;

/// Measured figures of an inference.
#[derive(Debug, Clone, Default)]
pub struct Figures {
    /// Of each layer, the first one first.
    pub layers: Vec<LayerFigures>,
}

/// Measured figures of a layer.
#[derive(Debug, Clone, Default)]
pub struct LayerFigures {
    /// Nodes it was computed for, of all types.
    pub nodes: u64,
    /// Inputs of all of them: rows that were gathered, repeated ones included.
    pub inputs: u64,
    /// Ranges that it was computed in.
    pub ranges: u64,
    /// Seconds.
    pub seconds: f64,
    /// Bytes of its rows that went to a file.
    pub spilled: u64,
}

/// Computes the outputs of the last layer for the nodes `wanted` of some types, within `budget`, and hands them to
/// `keep` by ranges: a type, ascending nodes, and a row for each.
///
/// While a range is computed, the next one is gathered and the one before is kept, all on the threads of the current
/// rayon pool.
///
/// # Errors
/// Those of `layers` and of `keep`; if files cannot be written.
pub fn run<L: Layers>(
    layers: &L,
    wanted: &[(usize, Vec<u32>)],
    budget: &Budget,
    mut keep: impl FnMut(usize, &[u32], &Tensor) -> Result<()> + Send,
) -> Result<Figures> {
    let needed = needed_by_layers(layers, wanted);
    let types = layers.num_nodes().len();
    let mut figures = Figures::default();
    let mut before: Option<Before> = None;
    let last = layers.num_layers() - 1;
    for (layer, needed) in needed.iter().enumerate() {
        let start = Instant::now();
        // Two layers at a time: each has half of the memory for rows.
        let mut after = After::new(budget, types, budget.rows() / 2);
        let pass = Pass { layers, layer, needed, before: before.as_ref(), budget };
        let mut figures_now = match layer == last {
            true => pass.run(&mut keep)?,
            false => pass.run(&mut |node_type, _: &[u32], rows: &Tensor| {
                after.append(node_type, &needed[node_type], rows)
            })?,
        };
        let (made, spilled) = after.finish()?;
        before = Some(made);
        (figures_now.seconds, figures_now.spilled) = (start.elapsed().as_secs_f64(), spilled);
        figures.layers.push(figures_now);
    }
    Ok(figures)
}

/// One layer for the nodes `needed` of each type.
struct Pass<'a, L> {
    layers: &'a L,
    layer: usize,
    needed: &'a [Needed],
    before: Option<&'a Before>,
    budget: &'a Budget,
}

/// Nodes of one type, and what they have: gathered inputs, or rows.
type Range<T> = (usize, Vec<u32>, T);

impl<L: Layers> Pass<'_, L> {
    fn run(
        &self,
        keep: &mut (impl FnMut(usize, &[u32], &Tensor) -> Result<()> + Send),
    ) -> Result<LayerFigures> {
        let mut figures = LayerFigures::default();
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
            figures.add(self, node_type, &nodes);
            made = Some((node_type, nodes, rows?));
            gathered = ahead?;
        }
        given(keep, made.as_ref())?;
        Ok(figures)
    }

    /// The ranges of all types.
    fn ranges(&self) -> impl Iterator<Item = (usize, Vec<u32>)> {
        // Those gathered ahead, the one that is computed and its result share the memory of ranges.
        let most = (self.budget.ranges() / (AHEAD as u64 + 2)).max(1) as usize;
        self.needed.iter().enumerate().flat_map(move |(node_type, needed)| {
            let bytes = move |node| self.layers.range_bytes(self.layer, node_type, node);
            Ranges::new(needed.iter(), bytes, RANGE_NODES, most)
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
}

/// Hands the rows of a range over, if there is one.
fn given(
    keep: &mut impl FnMut(usize, &[u32], &Tensor) -> Result<()>,
    made: Option<&Range<Tensor>>,
) -> Result<()> {
    made.map_or(Ok(()), |(node_type, nodes, rows)| keep(*node_type, nodes, rows))
}

impl LayerFigures {
    /// Counts a range.
    fn add<L: Layers>(&mut self, pass: &Pass<'_, L>, node_type: usize, nodes: &[u32]) {
        let inputs = |&node: &u32| pass.layers.num_inputs(pass.layer, node_type, node) as u64;
        self.nodes += nodes.len() as u64;
        self.inputs += nodes.iter().map(inputs).sum::<u64>();
        self.ranges += 1;
    }
}
