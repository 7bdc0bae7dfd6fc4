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
/// Most nodes of a range.
const RANGE_NODES: usize = 1 << 15;
/// Bytes of a value of a range: gathered, projected, and its result.
const BYTES_OF_VALUE: u64 = 12;

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
/// A range is gathered while the one before is computed, both on the threads of the current rayon pool.
///
/// # Errors
/// Those of `layers` and of `keep`; if files cannot be written.
pub fn run<L: Layers>(
    layers: &L,
    wanted: &[(usize, Vec<u32>)],
    budget: &Budget,
    mut keep: impl FnMut(usize, &[u32], &Tensor) -> Result<()>,
) -> Result<Figures> {
    let needed = needed_by_layers(layers, wanted);
    let types = layers.num_nodes().len();
    let mut figures = Figures::default();
    let mut before: Option<Before> = None;
    let last = layers.num_layers() - 1;
    for (layer, needed) in needed.iter().enumerate() {
        let start = Instant::now();
        let mut figures_now = LayerFigures::default();
        // Two layers at a time: each has half of the memory for rows.
        let mut after = After::new(budget, types, budget.rows() / 2);
        pass(
            layers,
            layer,
            needed,
            before.as_ref(),
            budget,
            &mut figures_now,
            |node_type, nodes, rows| {
                if layer == last {
                    return keep(node_type, nodes, rows);
                }
                after.append(node_type, &needed[node_type], rows)
            },
        )?;
        let (made, spilled) = after.finish()?;
        before = Some(made);
        (figures_now.seconds, figures_now.spilled) = (start.elapsed().as_secs_f64(), spilled);
        figures.layers.push(figures_now);
    }
    Ok(figures)
}

/// Computes one layer for the nodes `needed` of each type.
fn pass<L: Layers>(
    layers: &L,
    layer: usize,
    needed: &[Needed],
    before: Option<&Before>,
    budget: &Budget,
    figures: &mut LayerFigures,
    mut keep: impl FnMut(usize, &[u32], &Tensor) -> Result<()>,
) -> Result<()> {
    let most = most_inputs(layers, before, budget);
    let mut scratch = L::Scratch::default();
    let mut ranges = needed.iter().enumerate().flat_map(|(node_type, needed)| {
        let inputs = move |node| layers.num_inputs(layer, node_type, node);
        Ranges::new(needed.iter(), inputs, RANGE_NODES, most).map(move |nodes| (node_type, nodes))
    });
    let gather = |range: Option<(usize, Vec<u32>)>, scratch: &mut L::Scratch| {
        let gathered = range.map(|(node_type, nodes)| {
            let inputs = layers.gather(layer, node_type, &nodes, before, scratch)?;
            Ok::<_, Error>((node_type, nodes, inputs))
        });
        gathered.transpose()
    };
    let mut gathered = gather(ranges.next(), &mut scratch)?;
    while let Some((node_type, nodes, inputs)) = gathered.take() {
        let next = ranges.next();
        // Both are parallel themselves, and no thread of the pool waits for another to gather.
        let (rows, ahead) =
            rayon::join(|| layers.compute(layer, inputs), || gather(next, &mut scratch));
        let rows = rows?;
        gathered = ahead?;
        if rows.rows() != nodes.len() {
            let (found, nodes) = (rows.rows(), nodes.len());
            return Err(Error::invalid(format!("layer {layer}: {found} rows of {nodes} nodes")));
        }
        figures.nodes += nodes.len() as u64;
        figures.inputs +=
            nodes.iter().map(|&node| layers.num_inputs(layer, node_type, node) as u64).sum::<u64>();
        figures.ranges += 1;
        keep(node_type, &nodes, &rows)?;
    }
    Ok(())
}

/// Most inputs of a range: those gathered ahead and the one that is computed share the memory of ranges.
fn most_inputs<L: Layers>(layers: &L, before: Option<&Before>, budget: &Budget) -> usize {
    let widths = |before: &Before| (0..before.num_types()).map(|t| before.width(t)).max();
    let width = layers.input_width().max(before.and_then(widths).unwrap_or(0)).max(1) as u64;
    let ranges = AHEAD as u64 + 2;
    (budget.ranges() / (ranges * BYTES_OF_VALUE * width)).max(1) as usize
}
