//! `gnarl infer`

mod outputs;
mod selection;

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use gnarl_common::memory::peak_rss;
use gnarl_common::{Context, Error, Result};
use gnarl_graph::{Dataset, UserIdKind, UserIds};
use gnarl_infer::export::{self, Cells, Column, Kind, Table, Written};
use gnarl_infer::rows::After;
use gnarl_infer::{Budget, Figures, Needed};
use gnarl_nn::Tensor;
use gnarl_train::{OpenOptions, Output, Registry, TrainedRun};
use serde_json::{Value, json};

use super::parse::size;
use crate::allocator::hold_little;
use crate::output::while_busy;
use outputs::{Outputs, What, Widths};
use selection::Selection;

/// `gnarl infer`
#[derive(Debug, Args)]
pub struct InferArgs {
    /// The run's folder
    pub run_dir: PathBuf,
    /// The file of predictions: .parquet, .npy or .csv
    #[arg(long)]
    pub out: PathBuf,
    /// What to write of each node, of embeddings, logits, classes, probabilities and values; by default what the task
    /// predicts, or embeddings
    #[arg(long, value_delimiter = ',')]
    pub what: Vec<What>,
    /// Only the nodes of this split: train, valid or test
    #[arg(long, conflicts_with = "ids")]
    pub split: Option<String>,
    /// Only the nodes whose ids are in this file, one per line
    #[arg(long)]
    pub ids: Option<PathBuf>,
    /// The node type, where predicted edges join several
    #[arg(long)]
    pub node_type: Option<String>,
    /// Another dataset with the same types and features
    #[arg(long)]
    pub dataset: Option<PathBuf>,
    /// Memory of the inference, such as 2GiB; by default evaluate.memory of the run
    #[arg(long, value_parser = size)]
    pub memory: Option<u64>,
    /// Replace an existing file
    #[arg(long)]
    pub force: bool,
}

pub fn run(args: &InferArgs) -> Result<Value> {
    let start = Instant::now();
    hold_little(true);
    let options = OpenOptions { dataset: args.dataset.clone(), memory: args.memory };
    let run = TrainedRun::open(&Registry::default(), &args.run_dir, &options)?;
    let dataset = run.dataset().ok_or_else(|| {
        Error::usage("the run was trained on parts, without a dataset")
            .hint("give the whole one with --dataset")
    })?;
    let selection = Selection::of(args, &run, dataset)?;
    let outputs = Outputs::of(&args.what, &run, dataset, &selection.node_type)?;
    let writing = || format!("inference of {}", args.run_dir.display());
    let work = || write(args, &run, &selection, &outputs);
    let (written, figures) = while_busy("inferring", &args.out, work).while_doing(writing)?;
    Ok(json!({
        "out": args.out,
        "files": written.files,
        "bytes": written.bytes,
        "node_type": selection.node_type,
        "nodes": selection.nodes.len(),
        "columns": outputs.columns(Widths { embedding: 1, last: 1 }).iter().map(|column| column.name.clone()).collect::<Vec<_>>(),
        "seconds": start.elapsed().as_secs_f64(),
        "layers": layers(&figures),
        "peak_rss_bytes": peak_rss(),
    }))
}

/// Computes all outputs and writes them beside the ids.
fn write(
    args: &InferArgs,
    run: &TrainedRun,
    selection: &Selection,
    outputs: &Outputs,
) -> Result<(Written, Vec<Figures>)> {
    let wanted = [(selection.of, selection.nodes.clone())];
    let mut file = File { args, selection, outputs, table: None };
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
    let budget = args.memory.map_or_else(Budget::of_system, Budget::new);
    let mut logits = After::new(&budget, 1, budget.rows());
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

/// The file of predictions, created with the first rows, whose widths its columns have.
struct File<'a> {
    args: &'a InferArgs,
    selection: &'a Selection,
    outputs: &'a Outputs,
    table: Option<Box<dyn Table>>,
}

impl File<'_> {
    fn append(
        &mut self,
        nodes: &[u32],
        hidden: Option<&Tensor>,
        last: Option<&Tensor>,
    ) -> Result<()> {
        let ids = &self.selection.ids;
        if self.table.is_none() {
            let kind = match ids.kind() {
                UserIdKind::Integer => Kind::Integer,
                UserIdKind::Text => Kind::Text,
            };
            let widths = Widths {
                embedding: hidden.or(last).map_or(1, Tensor::cols),
                last: last.map_or(1, Tensor::cols),
            };
            let mut columns = vec![Column::new("id", kind)];
            columns.extend(self.outputs.columns(widths));
            let rows = self.selection.nodes.len() as u64;
            self.table = Some(export::create(&self.args.out, &columns, rows, self.args.force)?);
        }
        let integers: Vec<i64>;
        let texts: Vec<&str>;
        let nodes = nodes.iter().map(|&node| u64::from(node));
        let own = match ids.kind() {
            UserIdKind::Integer => {
                integers = nodes.map(|node| ids.integer(node)).collect();
                Cells::Integers(&integers)
            }
            UserIdKind::Text => {
                texts = nodes.map(|node| ids.text(node)).collect();
                Cells::Texts(&texts)
            }
        };
        let outputs = self.outputs;
        let Some(table) = &mut self.table else { return Ok(()) };
        outputs.cells(hidden, last, |cells| {
            let mut all = vec![own];
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

/// Figures of each layer, of one pass over the model after the other.
fn layers(figures: &[Figures]) -> Vec<Value> {
    let each = figures.iter().flat_map(|figures| &figures.layers);
    each.map(|layer| {
        json!({
            "nodes": layer.nodes,
            "inputs": layer.inputs,
            "ranges": layer.ranges,
            "seconds": layer.seconds,
            "file_bytes": layer.spilled,
        })
    })
    .collect()
}

/// The ids and nodes of a dataset's type.
fn ids_of(dataset: &Dataset, node_type: &str) -> Result<UserIds> {
    UserIds::open(dataset, node_type)
}
