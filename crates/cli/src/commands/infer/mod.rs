//! `gnarl infer`

mod args;
mod destination;
mod edge_source;
pub(super) mod edges;
mod figures;
mod ids;
pub(super) mod outputs;
mod ranked;
mod selection;

use std::time::Instant;

use gnarl_common::memory::peak_rss;
use gnarl_common::{Context, Error, Result};
use gnarl_infer::export::{Claim, Column, Table, Written};
use gnarl_infer::rows::After;
use gnarl_infer::{Budget, Figures, Needed};
use gnarl_nn::Tensor;
use gnarl_train::{OpenOptions, Output, Registry, TrainedRun};
use serde_json::{Value, json};

use crate::commands::objects;
use crate::output::while_busy;
pub use args::InferArgs;
use destination::Destination;
use figures::layers;
use ids::Ids;
use outputs::{Outputs, What, Widths};
use selection::Selection;

pub fn run(args: &InferArgs) -> Result<Value> {
    let start = Instant::now();
    // Two passes share the memory: rows of the first wait for the second.
    let twice = args.what.contains(&What::Embeddings) && args.what.len() > 1;
    let passes = if twice || args.edges.is_some() || args.top_k.is_some() { 2 } else { 1 };
    let memory = args.memory.map(|bytes| bytes / passes);
    let dataset = args.dataset.as_deref().map(objects::local).transpose()?;
    let options = OpenOptions { dataset, memory, fanouts: args.fanouts.clone(), unlabeled: true };
    let run = TrainedRun::open(&Registry::default(), &args.run_dir, &options)?;
    let dataset = run.dataset().ok_or_else(|| {
        Error::usage("the run was trained on parts, without a dataset")
            .hint("give the whole one with --dataset")
    })?;
    if let Some(k) = args.top_k {
        return ranked::run(args, (&run, dataset), k.get(), start);
    }
    if let Some(which) = &args.edges {
        return edges::run(args, (&run, dataset), which, start);
    }
    if args.relation.is_some() {
        return Err(Error::usage("--relation: nodes have none")
            .hint("it goes with --top-k, or with --edges FILE"));
    }
    let selection = Selection::of(args, &run, dataset)?;
    let outputs = Outputs::of(&args.what, &run, dataset, &selection.node_type)?;
    let columns = columns(&selection, &outputs, Widths { embedding: 1, last: 1 });
    // Before anything is computed.
    let destination = Destination::of(&args.out, args.force)?;
    let claim = destination.claim(&columns)?;
    let budget = memory.map_or_else(Budget::of_system, Budget::new);
    let work =
        || Inference { run: &run, selection: &selection, outputs: &outputs }.write(claim, &budget);
    let (written, figures) = while_busy("inferring", &args.out, work)
        .while_doing(|| format!("inference of {}", args.run_dir.display()))?;
    let files = destination.deliver(&written)?;
    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    Ok(json!({
        "out": args.out,
        "files": files,
        "bytes": written.bytes,
        "node_type": selection.node_type,
        "nodes": selection.nodes.len(),
        "columns": names,
        "seconds": start.elapsed().as_secs_f64(),
        "layers": layers(&figures),
        "peak_rss_bytes": peak_rss(),
    }))
}

/// The columns of the file: ids, then outputs.
fn columns(selection: &Selection, outputs: &Outputs, widths: Widths) -> Vec<Column> {
    let mut columns = vec![Column::new("id", ids::kind(&selection.ids))];
    columns.extend(outputs.columns(widths));
    columns
}

/// A trained run, the nodes it is asked for, and what is written of them.
struct Inference<'a> {
    run: &'a TrainedRun,
    selection: &'a Selection,
    outputs: &'a Outputs,
}

impl Inference<'_> {
    /// Computes all outputs and writes them beside the ids.
    fn write(&self, claim: Claim, budget: &Budget) -> Result<(Written, Vec<Figures>)> {
        let Self { run, selection, outputs } = self;
        let wanted = [(selection.of, selection.nodes.clone())];
        let mut file = File { selection, outputs, claim: Some(claim), table: None };
        let hidden = outputs.needs_hidden();
        if !(hidden && outputs.needs_last()) {
            let output = if hidden { Output::Hidden } else { Output::Last };
            let figures = run.infer(output, &wanted, &mut |_, nodes, rows| match hidden {
                true => file.append(nodes, Some(rows), None),
                false => file.append(nodes, None, Some(rows)),
            })?;
            return Ok((file.finish()?, vec![figures]));
        }
        // Logits wait, in memory or in a file, until the hidden rows of the same nodes are computed.
        let mut logits = After::new(budget, 1, budget.rows());
        let needed = Needed::some(selection.num_nodes, &selection.nodes);
        let first =
            run.infer(Output::Last, &wanted, &mut |_, _, rows| logits.append(0, &needed, rows))?;
        let (logits, _) = logits.finish()?;
        let second = run.infer(Output::Hidden, &wanted, &mut |_, nodes, rows| {
            let logits = logits.gather(0, nodes)?;
            file.append(nodes, Some(rows), Some(&logits))
        })?;
        Ok((file.finish()?, vec![first, second]))
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
