//! Predictions and embeddings of nodes.

use std::time::Instant;

use gnarl_common::{Context, Error, Result};
use gnarl_graph::Dataset;
use gnarl_infer::export::{Claim, Column, Table, Written};
use gnarl_infer::rows::After;
use gnarl_infer::{Budget, Figures, Needed, Places};
use gnarl_nn::Tensor;
use gnarl_train::{Infer, Output, TrainedRun};
use serde_json::{Value, json};

use super::args::InferArgs;
use super::destination::Destination;
use super::figures::Finished;
use super::ids::{self, Ids};
use super::outputs::{Outputs, Widths};
use super::selection::Selection;
use crate::output::while_busy;

/// Writes predictions of nodes.
pub(super) fn run(
    args: &InferArgs,
    (run, by, dataset): (&TrainedRun, &dyn Infer, &Dataset),
    start: Instant,
) -> Result<Value> {
    if args.relation.is_some() {
        return Err(Error::usage("--relation: nodes have none")
            .hint("it goes with --top-k, or with --edges FILE"));
    }
    let selection = Selection::of(args, run, dataset)?;
    let outputs = Outputs::of(&args.what, run, dataset, &selection.node_type)?;
    let columns = columns(&selection, &outputs, Widths { embedding: 1, last: 1 });
    // Before anything is computed.
    let destination = Destination::of(&args.out, args.force)?;
    let claim = destination.claim(&columns)?;
    let budget = args.memory_of_pass().map_or_else(Budget::of_system, Budget::new);
    let work = || Inference { by, selection: &selection, outputs: &outputs }.write(claim, &budget);
    let (written, passes) = while_busy("inferring", &args.out, work)
        .while_doing(|| format!("inference of {}", args.run_dir.display()))?;
    let rows = selection.nodes.len() as u64;
    let finished = Finished { args, start, dataset, columns: &columns, rows, passes };
    let counts = json!({ "node_type": selection.node_type, "nodes": rows });
    finished.deliver((destination, written), counts)
}

/// The columns of the file: ids, then outputs.
fn columns(selection: &Selection, outputs: &Outputs, widths: Widths) -> Vec<Column> {
    let mut columns = vec![Column::new("id", ids::kind(&selection.ids))];
    columns.extend(outputs.columns(widths));
    columns
}

/// The nodes that a trained run is asked for, and what is written of them.
struct Inference<'a> {
    by: &'a dyn Infer,
    selection: &'a Selection,
    outputs: &'a Outputs,
}

impl Inference<'_> {
    /// Computes all outputs and writes them beside the ids.
    fn write(&self, claim: Claim, budget: &Budget) -> Result<(Written, Vec<(String, Figures)>)> {
        let Self { by, selection, outputs } = self;
        let wanted = [(selection.of, selection.nodes.clone())];
        let mut file = File { selection, outputs, claim: Some(claim), table: None };
        let hidden = outputs.needs_hidden();
        if !(hidden && outputs.needs_last()) {
            let output = if hidden { Output::Hidden } else { Output::Last };
            let figures = by.infer(output, &wanted, &mut |_, nodes, rows| match hidden {
                true => file.append(nodes, Some(rows), None),
                false => file.append(nodes, None, Some(rows)),
            })?;
            let name = if hidden { "embeddings" } else { "logits" };
            return Ok((file.finish()?, vec![(name.into(), figures)]));
        }
        // Logits wait, in memory or in a file, until the hidden rows of the same nodes are computed.
        let places = Places::from(Needed::some(selection.num_nodes, &selection.nodes));
        let mut logits = After::new(budget, vec![places], budget.rows());
        let first = by.infer(Output::Last, &wanted, &mut |_, _, rows| {
            logits.append(0, rows.data(), rows.cols())
        })?;
        let (logits, _) = logits.finish()?;
        let second = by.infer(Output::Hidden, &wanted, &mut |_, nodes, rows| {
            let logits = logits.gather(0, nodes)?;
            file.append(nodes, Some(rows), Some(&logits))
        })?;
        Ok((file.finish()?, vec![("logits".into(), first), ("embeddings".into(), second)]))
    }
}

/// The file of predictions: its columns have the widths of the first rows.
struct File<'a> {
    selection: &'a Selection,
    outputs: &'a Outputs,
    claim: Option<Claim>,
    table: Option<Box<dyn Table>>,
}

impl File<'_> {
    /// Appends some nodes, of which `hidden` and `last` are rows of the model.
    fn append(
        &mut self,
        nodes: &[u32],
        hidden: Option<&Tensor>,
        last: Option<&Tensor>,
    ) -> Result<()> {
        if let Some(claim) = self.claim.take() {
            let widths = Widths {
                embedding: hidden.or(last).map_or(0, Tensor::cols),
                last: last.map_or(0, Tensor::cols),
            };
            let columns = columns(self.selection, self.outputs, widths);
            self.table = Some(claim.create(&columns, self.selection.nodes.len() as u64)?);
        }
        let Some(table) = &mut self.table else {
            return Err(Error::invalid("rows after a failure"));
        };
        let ids = Ids::of(&self.selection.ids, nodes.iter().copied());
        self.outputs.cells(hidden, last, |cells| {
            let mut all = vec![ids.cells()];
            all.extend(cells);
            table.append(&all)
        })
    }

    fn finish(self) -> Result<Written> {
        match self.table {
            Some(table) => table.finish(),
            None => Err(Error::invalid("no rows were computed")),
        }
    }
}
