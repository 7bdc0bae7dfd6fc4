//! Planning of chunks within the memory budget.

use std::path::PathBuf;
use std::sync::Arc;

use bytesize::ByteSize;
use gnarl_common::rng::Key;
use gnarl_common::{Error, Result};
use gnarl_config::TensorSection;
use gnarl_graph::blocks::Block;
use gnarl_nn::models::Stages;
use gnarl_nn::models::stages::{AttentionPropagation, Incoming, Linear, Pass};
use gnarl_nn::ops::list_attention::Attention;
use gnarl_nn::{Mode, Params, SparseRows, Tape, Tensor};

use super::layout::Layout;
use super::matrix::Place;
use crate::data::graph::Graph;

/// Memory of a process before it has read any data, and of small allocations.
const BASE: usize = 64 << 20;
/// Default number of row blocks: enough to compute one while another is exchanged.
const PIECES: usize = 8;
/// Fewest rows of a row block: shorter ones are mostly overhead.
const FEWEST: usize = 64;

/// The plan of a step in chunks.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(super) layout: Layout,
    pub(super) place: Place,
    /// True if exchanges overlap with computation.
    pub(super) overlap: bool,
    /// Limit of free buffers in bytes, if memory is limited.
    pub(super) free: Option<usize>,
}

/// Inputs of planning.
pub(crate) struct Means<'a> {
    pub model: &'a dyn Stages,
    pub params: &'a Params,
    pub graph: &'a Graph,
    /// Number of evaluated nodes.
    pub evaluated: usize,
    pub block: &'a Block,
    /// This rank and the number of ranks.
    pub rank: (usize, usize),
    /// Number of ranks that share this machine's memory.
    pub neighbors: usize,
    /// Folder of the run's files.
    pub dir: PathBuf,
}

/// Columns of the values that stages send, keep and compute.
#[derive(Debug, Default)]
struct Widths {
    sent: Vec<usize>,
    kept: Vec<usize>,
    /// Columns of all values of the widest stage.
    worked_on: usize,
    /// Columns of the last stage.
    out: usize,
}

impl Plan {
    /// The plan for `section`.
    ///
    /// # Errors
    /// A usage error if no plan fits into the memory.
    pub fn new(section: &TensorSection, means: &Means<'_>) -> Result<Self> {
        let widths = Widths::of(means)?;
        let Some(memory) = section.memory else {
            let row_blocks = if section.chunks == 0 { PIECES } else { section.chunks };
            return Ok(Self::of(section, means, Place::Memory, row_blocks, usize::MAX, None));
        };
        let need = Need::of(means, &widths);
        let share = memory.as_u64() as usize / means.neighbors.max(1);
        // Buffers come in sizes up to a quarter too large, and some of them are free.
        let available = share.saturating_sub(need.fixed) / 8 * 6;
        let longest = means.block.num_src().div_ceil(means.rank.1);
        let row_blocks = |rows: usize| longest.div_ceil(rows.max(1)).max(section.chunks).max(1);
        let free = Some(share.saturating_sub(need.fixed) / 16);
        let rows = available.saturating_sub(need.in_memory) / need.row;
        if rows >= FEWEST.min(longest) {
            return Ok(Self::of(section, means, Place::Memory, row_blocks(rows), usize::MAX, free));
        }
        let rows = available / 2 / need.row;
        let column_block = need.largest_block(available / 2);
        if rows < FEWEST.min(longest) || column_block == 0 {
            let least = need.fixed + 8 * (FEWEST * need.row).max(need.of_block(1)) / 3;
            let least = ByteSize((least * means.neighbors) as u64);
            return Err(Error::usage(format!("invalid tensor.memory '{memory}': too little"))
                .hint(format!("the graph and one column of all nodes require {least}")));
        }
        let dir = section.spill.clone().unwrap_or_else(|| means.dir.clone());
        Ok(Self::of(section, means, Place::Disk(dir), row_blocks(rows), column_block, free))
    }

    fn of(
        section: &TensorSection,
        means: &Means<'_>,
        place: Place,
        row_blocks: usize,
        column_block: usize,
        free: Option<usize>,
    ) -> Self {
        let ((rank, ranks), nodes) = (means.rank, means.block.num_src());
        let layout = Layout { nodes, rank, ranks, row_blocks, column_block };
        Self { layout, place, overlap: section.overlap, free }
    }

    /// A description for the log.
    pub fn describe(&self) -> String {
        let Layout { row_blocks, column_block, .. } = self.layout;
        match &self.place {
            Place::Memory => format!("{row_blocks} chunks in memory"),
            Place::Disk(dir) => {
                format!(
                    "{row_blocks} chunks, column blocks of {column_block} columns, the rest in {}",
                    dir.display()
                )
            }
        }
    }
}

/// Memory requirements of a rank in bytes.
struct Need {
    /// The graph, weights, and everything that does not depend on the plan.
    fixed: usize,
    /// All rows between stages, if none of them is on disk.
    in_memory: usize,
    /// Per row of a row block.
    row: usize,
    passes: Vec<Pass>,
    nodes: usize,
    /// Most columns that are sent.
    widest: usize,
}

/// Values of a node that a pass has in memory with a block of so many columns.
fn values_of(pass: Pass, columns: usize) -> usize {
    match pass {
        // The sent columns, and in the backward pass their gradients; the scores that are sent with them, a copy of those of
        // sources, and five values a destination.
        Pass::Attention(Attention { width, .. }) => 2 * columns + 8 * touched(columns, width),
        // What is sent, received, its largest entries, and both gradients.
        Pass::Max => 5 * columns,
        // The results of all propagations, and of what mixes them; the gradients of three, and of scores.
        Pass::Propagation(AttentionPropagation { heads, times, teleport, .. }) => {
            let each = if teleport > 0.0 { 3 } else { 1 };
            (4 + each * times) * columns + 10 * heads
        }
        Pass::Linear(Linear { times, .. }) => columns * if times > 1 { 4 } else { 1 },
    }
}

/// Bytes of the lists and of the values of edges that a pass has in memory.
fn bytes_of_edges(pass: Pass, block: &Block) -> usize {
    let (nodes, edges) = (block.num_dst(), block.num_edges());
    match pass {
        Pass::Linear(_) | Pass::Attention(_) => 0,
        // The lists by source, also of symmetric graphs.
        Pass::Max => 8 * edges,
        // Lists with loops, in both directions, and four values an edge and head with their gradients, and two an edge.
        Pass::Propagation(propagation) => {
            let edges = edges + if propagation.self_loops() { nodes } else { 0 };
            4 * edges * (3 + 8 * propagation.heads + 2)
        }
    }
}

/// Most heads of `width` columns that so many successive columns belong to.
fn touched(columns: usize, width: usize) -> usize {
    match columns {
        0 => 0,
        columns => (columns - 1).div_ceil(width.max(1)) + 1,
    }
}

impl Need {
    fn of(means: &Means<'_>, widths: &Widths) -> Self {
        let Means { model, params, block, rank: (_, ranks), .. } = means;
        let (nodes, own) = (block.num_src(), block.num_src().div_ceil(*ranks));
        let largest = |of: &[usize]| of.iter().copied().max().unwrap_or(0);
        let (sent, kept) = (largest(&widths.sent), largest(&widths.kept));
        let saved: usize = widths.sent.iter().chain(&widths.kept).sum();
        let passes: Vec<Pass> = (0..model.passes()).map(|index| model.pass(index)).collect();
        // What was sent is there for the backward pass, too.
        let again = |(&pass, &sent): (&Pass, &usize)| match pass {
            Pass::Linear(_) => (0, 0),
            pass => {
                let own = pass.width(sent).div_ceil(*ranks);
                (sent - pass.width(sent) + own, values_of(pass, own))
            }
        };
        let again = passes.iter().zip(&widths.sent).map(again);
        let slices = 2 * sent.div_ceil(*ranks)
            + again.clone().map(|(sent, _)| sent).sum::<usize>()
            + again.map(|(_, values)| values).max().unwrap_or(0);
        let of_edges = passes.iter().map(|pass| bytes_of_edges(*pass, block)).max().unwrap_or(0);
        let judged = means.evaluated * widths.out * 2;
        let weights = 6 * params.len();
        let parcels = if *ranks > 1 { 4 * sent } else { 0 };
        Self {
            fixed: BASE + block.bytes() + of_edges + 4 * (8 * nodes + judged + weights),
            in_memory: 4 * (own * (saved + sent + 2 * kept) + nodes * slices),
            row: 4 * (4 * widths.worked_on + parcels).max(1),
            passes,
            nodes,
            widest: sent,
        }
    }

    /// Bytes of all nodes' values in a column block of so many columns.
    fn of_block(&self, columns: usize) -> usize {
        let values = self.passes.iter().map(|pass| values_of(*pass, columns)).max();
        4 * self.nodes * values.unwrap_or(columns)
    }

    /// The most columns of a block that takes no more than so many bytes.
    fn largest_block(&self, bytes: usize) -> usize {
        let all = 0..=self.widest.max(1);
        all.take_while(|&columns| self.of_block(columns) <= bytes).last().unwrap_or(0)
    }
}

impl Widths {
    /// Requirements measured on stages with a few rows of zeros.
    fn of(means: &Means<'_>) -> Result<Self> {
        const ROWS: usize = 2;
        let ids = [0; ROWS];
        let features = means.graph.features.as_ref();
        let mut widths = Self::default();
        let (mut passed, mut kept) = (features.width(), None);
        for index in 0..=means.model.passes() {
            let mut tape = Tape::new(means.params, Mode::train(Key::new(0)));
            let given = if index == 0 && features.is_sparse() {
                tape.sparse(Arc::new(SparseRows::new(passed, vec![0; ROWS + 1], vec![], vec![])))
            } else {
                tape.leaf(Tensor::zeros(ROWS, passed))
            };
            let kept_before = kept.map(|cols| tape.leaf(Tensor::zeros(ROWS, cols)));
            let incoming = Incoming { passed: given, kept: kept_before };
            let made = means.model.stage(&mut tape, index, &ids, incoming)?;
            widths.worked_on = widths.worked_on.max(tape.columns(made.sent) + passed);
            widths.out = tape.shape(made.sent).1;
            kept = made.kept.map(|kept| tape.shape(kept).1);
            if index < means.model.passes() {
                passed = means.model.pass(index).width(widths.out);
                widths.sent.push(widths.out);
                widths.kept.extend(kept);
            }
        }
        Ok(widths)
    }
}
