//! Homogeneous models over the whole message graph.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use gnarl_common::Result;
use gnarl_common::threads::pool;
use gnarl_engine::Communicator;
use gnarl_graph::blocks::{Around, Block};
use gnarl_nn::models::{Model, Remembered, Slices};
use gnarl_nn::pool::trim;
use gnarl_nn::{Exchange, Tape, Tensor, Var};
use rayon::prelude::*;

use super::columns::Columns;
use super::counted::Counted;
use super::whole::{Purpose, WholeModel};
use crate::data::batch::{Input, gather};
use crate::data::edge_set::EdgeSet;
use crate::data::graph::Graph;

/// Features read per task.
const LOADED: usize = 4096;

/// Edges and rows of all passes over a part, of those over the whole graph, up to which it is worth its memory.
const LARGEST_PART: f64 = 0.75;

/// A model, the graph, and this rank's even share of the nodes.
pub(crate) struct HomoColumns<'a> {
    model: &'a dyn Model,
    graph: &'a Graph,
    /// All edges, as they are trained on.
    whole: Arc<Passes>,
    /// The part that the loss depends on.
    of_loss: Mutex<Option<Part>>,
    /// The part that scores depend on.
    of_scores: Mutex<Option<Part>>,
    /// All edges, as they are evaluated on where a part is trained on.
    evaluated: OnceLock<Arc<Passes>>,
    columns: Columns<'a>,
}

/// A part of the graph.
struct Part {
    /// The nodes whose outputs it is for.
    of: Vec<u32>,
    /// None where it would save little.
    passes: Option<Arc<Passes>>,
}

/// The edges of each pass, and the input.
pub(crate) struct Passes {
    blocks: Vec<Arc<Block>>,
    /// Own sources of the first block, and their dataset ids.
    nodes: Arc<[u32]>,
    ids: Arc<[u64]>,
    /// Their features, as long as they are needed.
    input: Mutex<Option<Input>>,
    /// The first layer's aggregate of the input; none where edges differ from step to step.
    first: Option<Remembered>,
}

impl Passes {
    fn new(
        blocks: Vec<Arc<Block>>,
        nodes: Arc<[u32]>,
        ids: Arc<[u64]>,
        first: Option<Remembered>,
    ) -> Self {
        Self { blocks, nodes, ids, input: Mutex::default(), first }
    }
}

impl<'a> HomoColumns<'a> {
    /// `model` over `graph` with `comm`.
    ///
    /// # Errors
    /// If the graph is partitioned, or too large for a block.
    pub fn new(model: &'a dyn Model, graph: &'a Graph, comm: &'a dyn Communicator) -> Result<Self> {
        let block = graph.whole_block()?;
        let columns = Columns::new(comm, block.num_src());
        let own = columns.rows();
        let ids = block.ids()[own.clone()].into();
        let nodes = (own.start as u32..own.end as u32).collect();
        let whole = Passes::new(vec![block], nodes, ids, Some(Remembered::default()));
        let whole = Arc::new(whole);
        Ok(Self {
            model,
            graph,
            whole,
            of_loss: Mutex::default(),
            of_scores: Mutex::default(),
            evaluated: OnceLock::new(),
            columns,
        })
    }

    /// Reads the features of `nodes`. At most a chunk of their file is in memory at a time.
    fn load(&self, nodes: &[u32]) -> Result<Input> {
        let features = &self.graph.features;
        if features.is_sparse() {
            return gather(features.as_ref(), nodes);
        }
        let width = features.width();
        let mut input = Tensor::scratch(nodes.len(), width);
        let pieces = input.data_mut().par_chunks_mut(LOADED * width.max(1));
        pieces.zip(nodes.par_chunks(LOADED)).try_for_each(|(out, nodes)| {
            features.gather_into(nodes, out)?;
            if let (Some(first), Some(last)) = (nodes.iter().min(), nodes.iter().max()) {
                features.forget(*first as usize..*last as usize + 1);
            }
            Ok(())
        })?;
        Ok(Input::Dense(input))
    }

    /// The part of the graph for `nodes`; `None` where it would save little, or there can be none: several ranks share the
    /// rows of the whole graph, and features of edges are numbered by it.
    fn make_part(&self, nodes: &[u32], first: Remembered) -> Option<Arc<Passes>> {
        let whole = &self.whole.blocks[0];
        let layered = self.model.is_layered(self.graph.features.is_sparse());
        if !layered || !self.columns.is_alone() || whole.edge_features().is_some() {
            return None;
        }
        let layers = self.model.num_layers();
        let around = Around::new(whole, nodes, layers);
        let part = around.size();
        let all = layers * (whole.num_dst() + whole.num_edges());
        let pays = part as f64 <= LARGEST_PART * all as f64;
        tracing::debug!(part, all, pays, "rows and edges of all passes");
        pays.then(|| {
            let blocks = around.blocks();
            let ids = blocks[0].ids().into();
            Arc::new(Passes::new(blocks, around.nodes().into(), ids, Some(first)))
        })
    }

    fn part(&self, purpose: Purpose) -> MutexGuard<'_, Option<Part>> {
        let part = match purpose {
            Purpose::Train => &self.of_loss,
            Purpose::Evaluate => &self.of_scores,
        };
        part.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WholeModel for HomoColumns<'_> {
    type Graph = Passes;

    fn exchange(&self) -> &dyn Exchange {
        &self.columns
    }

    fn counted(&self) -> &Counted {
        self.columns.counted()
    }

    fn graph(&self) -> Arc<Passes> {
        let trained = self.part(Purpose::Train);
        if trained.as_ref().is_none_or(|part| part.passes.is_none()) {
            return self.whole.clone();
        }
        let Passes { blocks, nodes, ids, .. } = &*self.whole;
        let evaluated = || {
            let first = Some(Remembered::of_evaluation());
            Arc::new(Passes::new(blocks.clone(), nodes.clone(), ids.clone(), first))
        };
        self.evaluated.get_or_init(evaluated).clone()
    }

    fn part_for(
        &self,
        nodes: &[u32],
        purpose: Purpose,
        threads: usize,
    ) -> Result<Option<Arc<Passes>>> {
        let serves_both = || self.part(Purpose::Train).as_ref().is_none_or(|p| p.passes.is_none());
        if purpose == Purpose::Evaluate && !nodes.is_empty() && serves_both() {
            return Ok(None);
        }
        let mut part = self.part(purpose);
        if let Some(part) = part.as_ref().filter(|part| part.of == nodes) {
            return Ok(part.passes.clone());
        }
        let first = match purpose {
            Purpose::Train => Remembered::default(),
            Purpose::Evaluate => Remembered::of_evaluation(),
        };
        let passes = pool(threads)?.install(|| self.make_part(nodes, first));
        if purpose == Purpose::Train && passes.is_some() {
            // Evaluation before the first step may have read it.
            *self.whole.input.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
        *part = Some(Part { of: nodes.to_vec(), passes: passes.clone() });
        Ok(passes)
    }

    fn without(&self, edges: &EdgeSet) -> Result<Arc<Passes>> {
        let Passes { blocks, nodes, ids, .. } = &*self.whole;
        let left = blocks[0].without(|src, dst| edges.contains(&(0, src, dst)));
        Ok(Arc::new(Passes::new(vec![Arc::new(left)], nodes.clone(), ids.clone(), None)))
    }

    fn prepare(&self, graph: &Passes) {
        // Models without stages pass messages over other edges, with self loops.
        if self.model.stages(self.graph.features.is_sparse()).is_none() {
            return;
        }
        // The first block of a part is its largest one, and without use where messages are the input itself.
        let is_part = graph.blocks.len() > 1;
        for block in graph.blocks.iter().skip(usize::from(is_part)) {
            block.out_lists();
        }
    }

    fn num_edges(&self, graph: &Passes) -> usize {
        let last = graph.blocks.len() - 1;
        let edges = |layer: usize| graph.blocks[layer.min(last)].num_edges();
        (0..self.model.num_layers()).map(edges).sum()
    }

    fn embedding_ids(&self) -> Arc<[Vec<u64>]> {
        Arc::new([])
    }

    fn own_nodes(&self) -> Range<usize> {
        self.columns.rows()
    }

    fn own_rows(&self, nodes: &[u32]) -> Vec<u32> {
        let first = self.columns.rows().start as u32;
        nodes.iter().map(|node| node - first).collect()
    }

    fn rows(&self, nodes: &[Vec<u32>]) -> Vec<u32> {
        nodes.concat()
    }

    fn forward<'t>(
        &'t self,
        tape: &mut Tape<'t>,
        graph: &'t Passes,
        _: Vec<Tensor>,
    ) -> Result<(Var, Vec<Var>)> {
        // Over edges that differ, only the input stays.
        let kept = graph.first.as_ref().map_or(&*self.whole, |_| graph);
        let mut input = kept.input.lock().unwrap_or_else(PoisonError::into_inner);
        let remembered = graph.first.as_ref().is_some_and(Remembered::suffices);
        let x = if remembered {
            tape.absent(graph.ids.len(), self.graph.width())
        } else {
            let loaded = input.take().map_or_else(|| self.load(&graph.nodes), Ok)?;
            input.insert(loaded).on(tape)
        };
        let slices = Slices {
            blocks: &graph.blocks,
            ids: &graph.ids,
            exchange: &self.columns,
            input: graph.first.as_ref().map(|first| (x, first)),
        };
        let rows = self.model.forward_sliced(tape, &slices, x)?;
        if !remembered && graph.first.as_ref().is_some_and(Remembered::suffices) {
            *input = None;
            // Releases free buffers, as no other is as large as the input.
            trim();
        }
        Ok((rows, Vec::new()))
    }
}
