//! Planning of chunks within the memory budget.

use std::path::PathBuf;
use std::sync::Arc;

use bytesize::ByteSize;
use gnarl_common::rng::Key;
use gnarl_common::{Error, Result};
use gnarl_config::TensorSection;
use gnarl_graph::blocks::Block;
use gnarl_nn::models::Stages;
use gnarl_nn::models::stages::{Incoming, Pass};
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
        let (rows, column_block) = (available / 2 / need.row, available / 2 / need.column);
        if rows < FEWEST.min(longest) || column_block == 0 {
            let least = need.fixed + 8 * (FEWEST * need.row).max(need.column) / 3;
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
    /// Per column of a column block.
    column: usize,
}

impl Need {
    fn of(means: &Means<'_>, widths: &Widths) -> Self {
        let Means { model, params, block, rank: (_, ranks), .. } = means;
        let (nodes, own) = (block.num_src(), block.num_src().div_ceil(*ranks));
        let largest = |of: &[usize]| of.iter().copied().max().unwrap_or(0);
        let (sent, kept) = (largest(&widths.sent), largest(&widths.kept));
        let saved: usize = widths.sent.iter().chain(&widths.kept).sum();
        let repeats = (0..model.passes()).any(|index| match model.pass(index) {
            Pass::Linear(linear) => linear.times > 1,
            Pass::Max | Pass::Attention(_) => false,
        });
        let judged = means.evaluated * widths.out * 2;
        let weights = 6 * params.len();
        let parcels = if *ranks > 1 { 4 * sent } else { 0 };
        Self {
            fixed: BASE + block.bytes() + 4 * (8 * nodes + judged + weights),
            in_memory: 4 * (own * (saved + sent + 2 * kept) + 2 * nodes * sent.div_ceil(*ranks)),
            row: 4 * (4 * widths.worked_on + parcels).max(1),
            column: 4 * nodes * if repeats { 4 } else { 1 },
        }
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
            (passed, kept) = (widths.out, made.kept.map(|kept| tape.shape(kept).1));
            if index < means.model.passes() {
                widths.sent.push(passed);
                widths.kept.extend(kept);
            }
        }
        Ok(widths)
    }
}
