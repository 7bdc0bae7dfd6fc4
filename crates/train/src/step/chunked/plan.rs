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

use super::layout::{Columns, Layout};
use super::matrix::Place;
use super::passes::scores_of;
use crate::data::graph::Graph;
use crate::evaluation::NodeScores;

/// Memory of a process before it has read any data, and of small allocations.
const BASE: usize = 64 << 20;
/// Default number of row blocks: enough to compute one while another is exchanged.
const PIECES: usize = 8;
/// Fewest rows of a row block: shorter ones are mostly overhead.
const FEWEST: usize = 64;
/// Most rows of a row block where memory is short.
const MOST: usize = 4096;

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
    /// The evaluation.
    pub scores: NodeScores<'a>,
    pub block: &'a Block,
    /// This rank and the number of ranks.
    pub rank: (usize, usize),
    /// Most ranks that share a machine's memory: the same on all ranks, which must make the same plan.
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
        let row = need.of_row(usize::MAX);
        let row_blocks = |rows: usize| longest.div_ceil(rows.max(1)).max(section.chunks).max(1);
        let free = Some(share.saturating_sub(need.fixed) / 16);
        let rows = available.saturating_sub(need.in_memory) / row;
        if rows >= FEWEST.min(longest) {
            return Ok(Self::of(section, means, Place::Memory, row_blocks(rows), usize::MAX, free));
        }
        // Wide column blocks are what time depends on: each reads all edges once more.
        let row = need.of_row(need.largest_block(available / 2).max(1));
        let rows = (available / 2 / row).min(MOST);
        let column_block = need.largest_block(available - rows * row);
        if rows < FEWEST.min(longest) || column_block == 0 {
            // Rows take half of what is available, or as many as there may be; a block takes the rest.
            let block = need.of_block(1);
            let least = (2 * FEWEST * row).max((2 * block).min(block + MOST * row));
            let least = need.fixed + least.div_ceil(6) * 8;
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
    /// Columns of all values of the widest stage.
    worked_on: usize,
    /// Columns that are split of the rows of each pass, and its scores.
    messages: Vec<Columns>,
    ranks: usize,
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

/// The columns of rows of so many values that a pass is given.
fn columns_of((&pass, &sent): (&Pass, &usize)) -> Columns {
    let scores = scores_of(pass);
    Columns { split: sent - scores.count(), scores }
}

/// Most values of a row of messages in all column blocks of so many columns, which have scores each.
fn most_values(messages: &[Columns], ranks: usize, column_block: usize) -> usize {
    let layout = Layout { nodes: 0, rank: 0, ranks, row_blocks: 1, column_block };
    messages.iter().map(|&columns| layout.values(columns)).max().unwrap_or(0)
}

/// Bytes of the lists and of the values of edges that a pass has in memory.
fn bytes_of_edges(pass: Pass, block: &Block) -> usize {
    let edges = block.num_edges();
    match pass {
        Pass::Linear(_) => 0,
        // The coefficients of the two longest lists and their gradients, in arrays that grew to twice as much.
        Pass::Attention(Attention { heads, .. }) => {
            let longest = block.indptr().windows(2).map(|ends| ends[1] - ends[0]).max();
            4 * longest.unwrap_or(0) as usize * 8 * heads
        }
        // The lists by source, also of symmetric graphs.
        Pass::Max => 8 * edges,
        // Lists with loops, in both directions, and four values an edge and head with their gradients, and two an edge.
        Pass::Propagation(propagation) => {
            let edges = edges + if propagation.self_loops() { block.num_dst() } else { 0 };
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
            Pass::Linear(Linear { times: 0 | 1, .. }) => (0, 0),
            Pass::Linear(_) => (0, values_of(pass, sent.div_ceil(*ranks))),
            pass => {
                let own = pass.width(sent).div_ceil(*ranks);
                (sent - pass.width(sent) + own, values_of(pass, own))
            }
        };
        let again = passes.iter().zip(&widths.sent).map(again);
        let slices = 2 * sent.div_ceil(*ranks)
            + again.clone().map(|(sent, _)| sent).sum::<usize>()
            + again.map(|(_, values)| values).max().unwrap_or(0);
        let messages: Vec<Columns> = passes.iter().zip(&widths.sent).map(columns_of).collect();
        let received = most_values(&messages, *ranks, usize::MAX);
        let of_edges = passes.iter().map(|pass| bytes_of_edges(*pass, block)).max().unwrap_or(0);
        let judged = means.scores.bytes((own, widths.out), *ranks);
        let weights = 6 * params.len();
        Self {
            fixed: BASE + block.bytes() + of_edges + judged + 4 * (8 * nodes + weights),
            in_memory: 4 * (own * (saved + received + 2 * kept) + nodes * slices),
            worked_on: widths.worked_on,
            messages,
            ranks: *ranks,
            passes,
            nodes,
            widest: sent,
        }
    }

    /// Bytes of a row of a row block. Several ranks have four in flight, with the scores of each column block.
    fn of_row(&self, column_block: usize) -> usize {
        let sent = most_values(&self.messages, self.ranks, column_block);
        let parcels = if self.ranks > 1 { 4 * sent } else { 0 };
        4 * (4 * self.worked_on + parcels).max(1)
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
        let empty = || SparseRows::new(features.width(), vec![0; ROWS + 1], vec![], vec![]);
        let mut widths = Self::default();
        let (mut passed, mut kept) = (features.width(), None);
        for index in 0..=means.model.passes() {
            let mut tape = Tape::new(means.params, Mode::train(Key::new(0)));
            let rows = |tape: &mut Tape<'_>, is_input: bool, cols: usize| match is_input {
                true if features.is_sparse() => tape.sparse(Arc::new(empty())),
                _ => tape.leaf(Tensor::zeros(ROWS, cols)),
            };
            let given = rows(&mut tape, index == 0, passed);
            let kept_before = kept.map(|(cols, is_input)| rows(&mut tape, is_input, cols));
            let incoming = Incoming { passed: given, kept: kept_before };
            let made = means.model.stage(&mut tape, index, &ids, incoming)?;
            widths.worked_on = widths.worked_on.max(tape.columns(made.sent) + passed);
            widths.out = tape.shape(made.sent).1;
            let keeps_input = index == 0 && made.kept == Some(given);
            if let Some(kept) = made.kept.filter(|_| !keeps_input)
                && tape.is_sparse(kept)
            {
                return Err(Error::usage(
                    "max-pooling does not train in chunks on sparse features with dropout",
                )
                .hint(
                    "set model.input_dropout = 0, or leave out tensor.memory and tensor.chunks",
                ));
            }
            kept = made.kept.map(|kept| (tape.shape(kept).1, keeps_input));
            if index < means.model.passes() {
                let pass = means.model.pass(index);
                check_scores(index, pass, widths.out)?;
                passed = pass.width(widths.out);
                widths.sent.push(widths.out);
                let stored = kept.filter(|(_, is_input)| !is_input);
                widths.kept.extend(stored.map(|(cols, _)| cols));
            }
        }
        Ok(widths)
    }
}

/// Checks that the rows of a stage have the scores that the pass after it reads.
fn check_scores(stage: usize, pass: Pass, cols: usize) -> Result<()> {
    let fits = match pass {
        Pass::Attention(attention) => attention.heads > 0 && cols == attention.cols(),
        Pass::Propagation(propagation) => cols >= propagation.scores(),
        Pass::Linear(_) | Pass::Max => true,
    };
    if fits {
        return Ok(());
    }
    let message = format!("stage {stage} sends rows of {cols} values, which do not fit {pass:?}");
    Err(Error::usage(message).hint("messages are followed by two scores a head"))
}
