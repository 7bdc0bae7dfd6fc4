//! Models as stages: dense work once per node, then sums of neighbors' messages.
//!
//! The first layer is the first stage, of each node alone; there is none if that stage sends features as they are. Each
//! further layer is one propagation; the last propagation of a pass is followed by the next stage. A row between two
//! layers has the messages, the values that propagations mix with their result, and those that the stage kept, side by
//! side. So a node's messages are made once, whatever the number of nodes that receive them (GLISP §IV-E).

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use gnarl_common::{Error, Result};
use gnarl_infer::rows::Before;
use gnarl_infer::{Layers, Sweeper};
use gnarl_nn::models::Stages;
use gnarl_nn::models::stages::{AttentionPropagation, Incoming, Linear, Outgoing, Pass};
use gnarl_nn::ops::list_sums::RowTable;
use gnarl_nn::{Mode, Params, SparseRows, Tape, Tensor, Var};
use gnarl_sample::{SampleGraph, Scratch};
use gnarl_store::FeatureStore;

use super::features::{dense, gather};
use super::propagation::Propagation;
use super::swept::{Coming, SweptPass};
use crate::data::batch::Input;

/// One layer: the first stage, or one propagation.
#[derive(Debug, Clone, Copy)]
enum Step {
    First,
    /// Propagation of a pass; the next stage follows the last one.
    Propagate {
        pass: usize,
        last: bool,
    },
}

/// Values of a node that a propagation reads beside its messages.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Own {
    Nothing,
    /// The messages that the node sends.
    Sent,
    /// So many columns of the row.
    Columns(usize),
}

/// The columns of a row.
#[derive(Debug, Clone, Copy)]
struct Layout {
    sent: usize,
    mixed: Own,
    kept: Own,
}

/// The layers of a model's stages.
pub(super) struct StagedLayers<'a> {
    model: Box<dyn Stages + 'a>,
    params: &'a Params,
    graph: &'a SampleGraph,
    features: &'a dyn FeatureStore,
    propagation: Propagation<'a>,
    steps: Vec<Step>,
    /// Of the input of each layer, once known; the first stage has none.
    layouts: Vec<OnceLock<Layout>>,
    width: usize,
}

/// The gathered inputs of a range.
pub(super) enum Inputs {
    First { ids: Vec<u64>, input: Input },
    Propagate { ids: Vec<u64>, passed: Tensor, mixed: Option<Tensor>, kept: Option<Tensor> },
}

impl<'a> StagedLayers<'a> {
    /// The layers of `model`, whose widest row has `width` values.
    ///
    /// # Errors
    /// If the graph cannot be sampled, or shapes disagree.
    pub fn new(
        model: Box<dyn Stages + 'a>,
        params: &'a Params,
        (graph, features): (&'a SampleGraph, &'a dyn FeatureStore),
        width: usize,
    ) -> Result<Self> {
        let propagation = Propagation::new(graph, features)?;
        let unchanged = sends_features(model.as_ref(), params, features)?;
        let mut steps = if unchanged.is_some() { Vec::new() } else { vec![Step::First] };
        for pass in 0..model.passes() {
            let times = match model.pass(pass) {
                Pass::Max | Pass::Attention(_) => 1,
                Pass::Linear(Linear { times, .. }) => times,
                Pass::Propagation(AttentionPropagation { times, .. }) => times,
            };
            steps.extend((1..=times).map(|time| Step::Propagate { pass, last: time == times }));
        }
        let layouts: Vec<OnceLock<Layout>> = steps.iter().map(|_| OnceLock::new()).collect();
        if let Some(kept) = unchanged {
            let mixed = mixed_of(model.pass(0));
            layouts[0].get_or_init(|| Layout { sent: features.width(), mixed, kept });
        }
        let mut all = Self { model, params, graph, features, propagation, steps, layouts, width };
        all.lay_out()?;
        // Scores lie beside messages, and several heads may be wider than a layer.
        let sent = all.layouts.iter().filter_map(OnceLock::get).map(|layout| layout.sent);
        all.width = sent.chain([width]).max().unwrap_or(width);
        Ok(all)
    }

    /// Finds the layouts of all rows, on no rows: a layer may be read that another process computed.
    fn lay_out(&self) -> Result<()> {
        for layer in 0..self.steps.len() {
            let Step::Propagate { pass, .. } = self.steps[layer] else {
                self.first(layer, &[], &gather(self.features, &[])?)?;
                continue;
            };
            let layout = self.layout(layer)?;
            let none = |columns: Range<usize>| Tensor::zeros(0, columns.len());
            let own = (layout.mixed().map(none), layout.kept().map(none));
            let passed = self.model.pass(pass).width(layout.sent);
            self.propagate(layer, &[], Tensor::zeros(0, passed), own)?;
        }
        Ok(())
    }

    /// The inputs of a propagation: the sums that were `passed`, and what is read of `nodes` themselves.
    fn beside(
        &self,
        layout: Layout,
        nodes: &[u32],
        before: Option<&Before>,
        passed: Tensor,
    ) -> Result<Inputs> {
        let own = |columns: Option<Range<usize>>| match (columns, before) {
            (None, _) => Ok(None),
            (Some(columns), Some(before)) => before.gather_columns(0, nodes, columns).map(Some),
            (Some(_), None) => dense(self.features, nodes).map(Some),
        };
        let mixed = own(layout.mixed())?;
        let kept = own(layout.kept())?;
        let ids = nodes.iter().map(|&node| self.graph.id(node)).collect();
        Ok(Inputs::Propagate { ids, passed, mixed, kept })
    }

    /// The layout of the input of layer `layer`.
    fn layout(&self, layer: usize) -> Result<Layout> {
        let known = self.layouts[layer].get().copied();
        known.ok_or_else(|| Error::invalid(format!("layer {layer} before the one it reads")))
    }

    /// Joins the columns of a row for the layer after `layer`.
    fn join(&self, tape: &mut Tape<'_>, layer: usize, made: Outgoing) -> Tensor {
        let Some(Step::Propagate { pass, .. }) = self.steps.get(layer + 1) else {
            return tape.take(made.sent);
        };
        let sent = densified(tape, made.sent);
        let (kept, own) = match made.kept {
            None => (Own::Nothing, None),
            Some(kept) if kept == made.sent => (Own::Sent, None),
            Some(kept) => {
                let kept = densified(tape, kept);
                (Own::Columns(tape.shape(kept).1), Some(kept))
            }
        };
        let mixed = mixed_of(self.model.pass(*pass));
        let layout = Layout { sent: tape.shape(sent).1, mixed, kept };
        self.layouts[layer + 1].get_or_init(|| layout);
        beside(tape, &[Some(sent), own])
    }

    /// The first stage.
    fn first(&self, layer: usize, ids: &[u64], input: &Input) -> Result<Tensor> {
        let mut tape = Tape::new(self.params, Mode::Eval);
        let passed = input.on(&mut tape);
        let made = self.model.stage(&mut tape, 0, ids, Incoming { passed, kept: None })?;
        Ok(self.join(&mut tape, layer, made))
    }

    /// The rest of a propagation, of which `passed` are the sums, and the next stage after the last one of a pass.
    fn propagate(
        &self,
        layer: usize,
        ids: &[u64],
        passed: Tensor,
        own: (Option<Tensor>, Option<Tensor>),
    ) -> Result<Tensor> {
        let Step::Propagate { pass, last } = self.steps[layer] else {
            return Err(Error::invalid("the first stage receives no messages"));
        };
        let layout = self.layout(layer)?;
        let mut tape = Tape::new(self.params, Mode::Eval);
        let passed = tape.dense(passed);
        let [mixed, kept] = [own.0, own.1].map(|rows| rows.map(|rows| tape.dense(rows)));
        let passed = match (self.model.pass(pass), mixed) {
            (Pass::Linear(linear), Some(first)) => {
                let passed = tape.scale(passed, 1.0 - linear.teleport);
                let first = tape.scale(first, linear.teleport);
                tape.add(passed, first)
            }
            _ => passed,
        };
        if last {
            let made = self.model.stage(&mut tape, pass + 1, ids, Incoming { passed, kept })?;
            return Ok(self.join(&mut tape, layer, made));
        }
        // The next propagation mixes and keeps the same values, which are no longer what is sent.
        let columns =
            |of: Option<Var>| of.map_or(Own::Nothing, |of| Own::Columns(tape.shape(of).1));
        let next = Layout { mixed: columns(mixed), kept: columns(kept), ..layout };
        self.layouts[layer + 1].get_or_init(|| next);
        Ok(beside(&mut tape, &[Some(passed), mixed, kept]))
    }
}

impl Layout {
    fn mixed(self) -> Option<Range<usize>> {
        self.columns(self.mixed, self.sent)
    }

    fn kept(self) -> Option<Range<usize>> {
        let mixed = if let Own::Columns(width) = self.mixed { width } else { 0 };
        self.columns(self.kept, self.sent + mixed)
    }

    /// The columns of `own`, which begin at `first` unless they are those that are sent.
    fn columns(self, own: Own, first: usize) -> Option<Range<usize>> {
        match own {
            Own::Nothing => None,
            Own::Sent => Some(0..self.sent),
            Own::Columns(width) => Some(first..first + width),
        }
    }
}

/// The values that the first propagation of a pass mixes with its result.
fn mixed_of(pass: Pass) -> Own {
    match pass {
        Pass::Linear(Linear { teleport, .. }) if teleport > 0.0 => Own::Sent,
        Pass::Linear(_) | Pass::Max | Pass::Attention(_) | Pass::Propagation(_) => Own::Nothing,
    }
}

/// The values that the first stage keeps, if it sends its input as it is; found on no rows.
fn sends_features(
    model: &dyn Stages,
    params: &Params,
    features: &dyn FeatureStore,
) -> Result<Option<Own>> {
    if model.passes() == 0 {
        return Ok(None);
    }
    let mut tape = Tape::new(params, Mode::Eval);
    let width = features.width();
    let passed = match features.is_sparse() {
        true => tape.sparse(Arc::new(SparseRows::new(width, vec![0], Vec::new(), Vec::new()))),
        false => tape.dense(Tensor::zeros(0, width)),
    };
    let made = model.stage(&mut tape, 0, &[], Incoming { passed, kept: None })?;
    Ok(match made {
        Outgoing { sent, kept: None } if sent == passed => Some(Own::Nothing),
        Outgoing { sent, kept: Some(kept) } if sent == passed && kept == passed => Some(Own::Sent),
        _ => None,
    })
}

fn densified(tape: &mut Tape<'_>, x: Var) -> Var {
    if tape.is_sparse(x) { tape.densify(x) } else { x }
}

/// Columns side by side.
fn beside(tape: &mut Tape<'_>, parts: &[Option<Var>]) -> Tensor {
    let parts: Vec<Var> = parts.iter().flatten().copied().collect();
    let all = match parts[..] {
        [only] => only,
        _ => tape.concat_cols(&parts),
    };
    tape.take(all)
}

impl Layers for StagedLayers<'_> {
    type Inputs = Inputs;
    type Scratch = Scratch;

    fn num_layers(&self) -> usize {
        self.steps.len()
    }

    fn num_nodes(&self) -> Vec<usize> {
        vec![self.graph.num_nodes()]
    }

    fn inputs_of(
        &self,
        layer: usize,
        _: usize,
        nodes: &[u32],
        visit: &mut dyn FnMut(usize, u32),
    ) -> Result<()> {
        nodes.iter().for_each(|&node| visit(0, node));
        if let Step::Propagate { .. } = self.steps[layer] {
            let csc = self.graph.csc();
            nodes.iter().flat_map(|&node| csc.sources(node)).for_each(|&source| visit(0, source));
        }
        Ok(())
    }

    fn num_inputs(&self, layer: usize, _: usize, node: u32) -> usize {
        match self.steps[layer] {
            Step::First => 1,
            Step::Propagate { .. } => 1 + self.graph.csc().sources(node).len(),
        }
    }

    fn reads_by_row_blocks(
        &self,
        layer: usize,
        node_type: usize,
        nodes: &[u32],
        before: Option<&Before>,
    ) -> bool {
        let (Step::Propagate { pass, .. }, Ok(layout)) = (self.steps[layer], self.layout(layer))
        else {
            return false;
        };
        let table = match before {
            None => self.features.stored().map(|rows| RowTable::stored(rows, layout.sent)),
            Some(before) => {
                let rows = before.table(0);
                rows.map(|(_, rows)| RowTable::new(rows, before.width(0), layout.sent))
            }
        };
        let is_linear = matches!(self.model.pass(pass), Pass::Linear(_));
        let inputs = || nodes.iter().map(|&node| self.num_inputs(layer, node_type, node)).sum();
        is_linear && table.is_some_and(|table| table.is_read_by_row_blocks(nodes.len(), inputs()))
    }

    fn range_bytes(&self, layer: usize, _: usize, node: u32) -> usize {
        // Sums, mixed and kept values, their products, and what is made of them.
        let rows = 4 * 6 * self.width;
        let copied = match layer {
            0 if self.features.stored().is_none() => self.features.width(),
            _ => 0,
        };
        match self.steps[layer] {
            Step::First => rows,
            Step::Propagate { .. } => rows + self.propagation.list_bytes(node, copied),
        }
    }

    fn gather(
        &self,
        layer: usize,
        _: usize,
        nodes: &[u32],
        before: Option<&Before>,
        scratch: &mut Scratch,
    ) -> Result<Inputs> {
        let ids = nodes.iter().map(|&node| self.graph.id(node)).collect();
        let Step::Propagate { pass, .. } = self.steps[layer] else {
            return Ok(Inputs::First { ids, input: gather(self.features, nodes)? });
        };
        let (layout, pass) = (self.layout(layer)?, self.model.pass(pass));
        if let Some(before) = before.filter(|before| before.is_chunked(0)) {
            let (passed, rows) =
                self.propagation.of_chunks(pass, nodes, (before, layout.sent), scratch)?;
            // The nodes' own rows are the first ones.
            let own = |columns: Range<usize>| {
                let values = (0..nodes.len()).flat_map(|row| &rows.row(row)[columns.clone()]);
                Tensor::from_vec(nodes.len(), columns.len(), values.copied().collect())
            };
            let (mixed, kept) = (layout.mixed().map(own), layout.kept().map(own));
            return Ok(Inputs::Propagate { ids, passed, mixed, kept });
        }
        let passed = match before {
            Some(before) => self.propagation.of_rows(pass, nodes, (before, layout.sent))?,
            None => self.propagation.of_features(pass, nodes, scratch)?,
        };
        self.beside(layout, nodes, before, passed)
    }

    fn sweeper<'s>(
        &'s self,
        layer: usize,
        _: usize,
        before: Option<&'s Before>,
    ) -> Option<Box<dyn Sweeper + 's>> {
        let Step::Propagate { pass, .. } = self.steps[layer] else { return None };
        let pass = self.model.pass(pass);
        let sent = self.layout(layer).ok()?.sent;
        let rows = match before {
            Some(before) => Coming::Before(before.in_order(0)?, sent),
            None if self.features.is_sparse() => return None,
            None => Coming::Features(self.features),
        };
        let swept = SweptPass { graph: self.graph, pass, rows };
        SweptPass::can(pass).then(|| Box::new(swept) as Box<dyn Sweeper>)
    }

    fn gather_beside(
        &self,
        layer: usize,
        _: usize,
        nodes: &[u32],
        before: Option<&Before>,
        sums: Tensor,
    ) -> Result<Inputs> {
        self.beside(self.layout(layer)?, nodes, before, sums)
    }

    fn compute(&self, layer: usize, inputs: Inputs) -> Result<Tensor> {
        match inputs {
            Inputs::First { ids, input } => self.first(layer, &ids, &input),
            Inputs::Propagate { ids, passed, mixed, kept } => {
                self.propagate(layer, &ids, passed, (mixed, kept))
            }
        }
    }
}
